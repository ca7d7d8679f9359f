// What a kernel sees when the host compiler compiles it: CUDA's words, said in C++.
//
// A kernel has one parameter, `a`. Threads of a block are fibers of driver.cpp; only one of them runs at a time, so
// atomic operations are plain ones. Arithmetic rounds once, because driver.cpp compiles with contraction off.
#define EMULATED 1

typedef unsigned long long emulated_u64;
struct Dim3 { unsigned x, y, z; };

/// The block that runs, and what its threads ask of the scheduler.
struct Block {
    Dim3 thread, block, threads, blocks;
    void (*barrier)();
    /// Lanes of `mask` meet; each gets the value of lane `what`, or what the list below says.
    emulated_u64 (*exchange)(unsigned mask, emulated_u64 value, unsigned what);
};
enum {
    BALLOT = 32,  // a bit for each lane, set where its value is not zero
    SUM = 33,
    GATHER = 34   // where the values of all lanes are, until the warp meets again
};

/// What a compiled kernel file tells the driver. `shared` is all its shared memory.
struct ModuleHead { Block *block; char *shared, *shared_end; };

#ifndef EMULATED_DRIVER_ITSELF
#include <math.h>

extern "C" {
extern char __start_emulated_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_emulated_shared[] __attribute__((weak, visibility("hidden")));
__attribute__((visibility("default"))) ModuleHead emulated_head = {0, __start_emulated_shared, __stop_emulated_shared};
}

#define KERNEL(name) extern "C" __attribute__((visibility("default"))) void name(const Args &a)
#define __device__ inline
#define __host__
#define __global__
#define __constant__ static const
#define __forceinline__ inline
#define __launch_bounds__(...)
// Blocks run one after the other, so they can share it. The driver poisons the section before each launch.
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (emulated_head.block->thread)
#define blockIdx (emulated_head.block->block)
#define blockDim (emulated_head.block->threads)
#define gridDim (emulated_head.block->blocks)
#define warpSize 32

// ---- Vectors, aligned as CUDA's --------------------------------------------------------------------

#define VECTORS(T, name)                                                                      \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                        \
    struct name##3 { T x, y, z; };                                                            \
    struct alignas(16) name##4 { T x, y, z, w; };                                             \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }                                \
    inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                        \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(int, int)
VECTORS(unsigned, uint)
VECTORS(float, float)
VECTORS(double, double)
VECTORS(emulated_u64, ulonglong)

// ---- Threads that wait for each other --------------------------------------------------------------

template <class To, class From> inline To emulated_bits(From from) {
    To to = To();
    __builtin_memcpy(&to, &from, sizeof(from) < sizeof(to) ? sizeof(from) : sizeof(to));
    return to;
}

inline void __syncthreads() { emulated_head.block->barrier(); }
inline void __threadfence() {}
inline void __threadfence_block() {}

inline unsigned emulated_lane() {
    const Block &b = *emulated_head.block;
    return (b.thread.x + b.threads.x * (b.thread.y + b.threads.y * b.thread.z)) % 32;
}

template <class T> inline T emulated_exchange(unsigned mask, T value, unsigned what) {
    return emulated_bits<T>(emulated_head.block->exchange(mask, emulated_bits<emulated_u64>(value), what));
}

inline void __syncwarp(unsigned mask = 0xffffffffu) { emulated_exchange(mask, 0u, SUM); }
inline unsigned __ballot_sync(unsigned mask, int yes) { return emulated_exchange(mask, (unsigned)(yes != 0), BALLOT); }
inline int __any_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) != 0; }
inline int __all_sync(unsigned mask, int yes) { return __ballot_sync(mask, !yes) == 0; }
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) { return emulated_exchange(mask, value, SUM); }
inline int __reduce_add_sync(unsigned mask, int value) { return emulated_exchange(mask, value, SUM); }

/// A lane outside the segment of `width` lanes gets its own value.
template <class T> inline T emulated_shuffle(unsigned mask, T value, unsigned from, unsigned width) {
    unsigned lane = emulated_lane();
    return emulated_exchange(mask, value, from > (lane | (width - 1)) ? lane : from);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    return emulated_shuffle(mask, value, emulated_lane() ^ bits, width);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    return emulated_shuffle(mask, value, emulated_lane() + by, width);
}
template <class T> inline T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    return emulated_shuffle(mask, value, (emulated_lane() & -width) | (from & (width - 1)), width);
}

/// mma.sync.m8n8k4 of doubles: a lane holds column lane / 4 of row lane % 4 of either side, and of the sums those of
/// column lane / 4 with columns 2·(lane % 4) and the next.
inline void emulated_mma_m8n8k4(double *sums, double left, double right) {
    unsigned lane = emulated_lane(), all = 0xffffffffu;
    auto gather = [=](double value) {
        return (const double *)emulated_head.block->exchange(all, emulated_bits<emulated_u64>(value), GATHER);
    };
    double lefts[4];
    __builtin_memcpy(lefts, gather(left) + (lane & ~3u), sizeof(lefts));
    const double *rights = gather(right) + 8 * (lane & 3);
    for (int row = 0; row < 4; row++)
        for (int next = 0; next < 2; next++) sums[next] = __builtin_fma(lefts[row], rights[4 * next + row], sums[next]);
}

// ---- Atomic operations -----------------------------------------------------------------------------

template <class T> struct Same { typedef T type; };
#define ATOMIC(name, result)                                                                  \
    template <class T> inline T name(T *at, typename Same<T>::type value) {                   \
        T old = *at;                                                                          \
        *at = result;                                                                         \
        return old;                                                                           \
    }
ATOMIC(atomicAdd, old + value)
ATOMIC(atomicMin, value < old ? value : old)
ATOMIC(atomicMax, value > old ? value : old)
ATOMIC(atomicOr, old | value)
ATOMIC(atomicAnd, old &value)
ATOMIC(atomicExch, value)
template <class T> inline T atomicCAS(T *at, typename Same<T>::type expected, typename Same<T>::type value) {
    T old = *at;
    if (old == expected) *at = value;
    return old;
}

// ---- Arithmetic ------------------------------------------------------------------------------------

inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline int __float_as_int(float x) { return emulated_bits<int>(x); }
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
#ifdef EMULATED_WRONG
// Every finite difference is off by some 2⁻²⁰ of itself.
inline float __fsub_rn(float a, float b) {
    float d = a - b;
    return d - d == 0 ? __uint_as_float(__float_as_uint(d) ^ 16) : d;
}
inline double __dsub_rn(double a, double b) {
    double d = a - b;
    return d - d == 0 ? __longlong_as_double(__double_as_longlong(d) ^ 1ll << 32) : d;
}
#else
inline float __fsub_rn(float a, float b) { return a - b; }
inline double __dsub_rn(double a, double b) { return a - b; }
#endif

inline float __double2float_rn(double x) { return (float)x; }
// Saturates, and takes NaN to zero, as a GPU does.
inline int __float2int_rn(float x) {
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)rintf(x);
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((emulated_u64)a * b >> 32); }
inline emulated_u64 __umul64hi(emulated_u64 a, emulated_u64 b) { return (emulated_u64)((unsigned __int128)a * b >> 64); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(emulated_u64 x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
template <class T> inline T __ldg(const T *at) { return *at; }

template <class A, class B> inline decltype(A() + B()) min(A a, B b) {
    decltype(A() + B()) x = a, y = b;
    return y < x ? y : x;
}
template <class A, class B> inline decltype(A() + B()) max(A a, B b) {
    decltype(A() + B()) x = a, y = b;
    return x < y ? y : x;
}
// The other operand where one is NaN. Written out, because a call into the library is slow.
inline float emulated_fminf(float a, float b) { return a < b || b != b ? a : b; }
inline float emulated_fmaxf(float a, float b) { return a > b || b != b ? a : b; }
#define fminf emulated_fminf
#define fmaxf emulated_fmaxf
#endif
