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
    /// Lanes of `mask` meet; each gets the value of lane `what`, or with GATHER where the values of all are.
    emulated_u64 (*exchange)(unsigned mask, emulated_u64 value, unsigned what);
};
enum { GATHER = 32 };  // until the warp meets again

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
#define __global__
#define __launch_bounds__(...)
// Blocks run one after the other, so they can share it. The driver poisons the section before each launch.
#define __shared__ static __attribute__((section("emulated_shared")))

#define threadIdx (emulated_head.block->thread)
#define blockIdx (emulated_head.block->block)
#define gridDim (emulated_head.block->blocks)

// ---- Vectors, aligned as CUDA's --------------------------------------------------------------------

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) double2 { double x, y; };

// ---- Threads that wait for each other --------------------------------------------------------------

template <class To, class From> inline To emulated_bits(From from) {
    To to = To();
    __builtin_memcpy(&to, &from, sizeof(from) < sizeof(to) ? sizeof(from) : sizeof(to));
    return to;
}

inline void __syncthreads() { emulated_head.block->barrier(); }

inline unsigned emulated_lane() {
    const Block &b = *emulated_head.block;
    return (b.thread.x + b.threads.x * (b.thread.y + b.threads.y * b.thread.z)) % 32;
}

template <class T> inline T emulated_exchange(unsigned mask, T value, unsigned what) {
    return emulated_bits<T>(emulated_head.block->exchange(mask, emulated_bits<emulated_u64>(value), what));
}

template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int bits) {
    return emulated_exchange(mask, value, emulated_lane() ^ bits);
}

inline int __any_sync(unsigned mask, int value) {
    auto values = (const emulated_u64 *)emulated_head.block->exchange(mask, value != 0, GATHER);
    emulated_u64 any = 0;
    for (unsigned lane = 0; lane < 32; lane++) any |= mask >> lane & 1 ? values[lane] : 0;
    return any != 0;
}

/// mma.sync.m16n8k32 of bytes with a sign, columns down in two blocks of eight: a lane holds column lane / 4 of either side, four
/// rows in a word, and of the sums those of that column of each block with columns 2·(lane % 4) and the next.
inline void emulated_mma_m16n8k32(int *sums, const unsigned *first, const unsigned *second, const unsigned *right) {
    unsigned lane = emulated_lane(), all = 0xffffffffu;
    emulated_u64 words[3][32];
    const unsigned *sides[3] = {first, second, right};
    for (int side = 0; side < 3; side++) {
        emulated_u64 mine = sides[side][0] | (emulated_u64)sides[side][1] << 32;
        __builtin_memcpy(words[side], (const void *)emulated_head.block->exchange(all, mine, GATHER), sizeof(words[side]));
    }
    for (int block = 0; block < 2; block++)
        for (int next = 0; next < 2; next++)
            for (int four = 0; four < 4; four++) {
                const signed char *down = (const signed char *)(words[block] + (lane & ~3u) + four);
                const signed char *across = (const signed char *)(words[2] + 8 * (lane & 3) + 4 * next + four);
                for (int row = 0; row < 8; row++) sums[2 * block + next] += down[row] * across[row];
            }
}

// ---- Copies that come later ------------------------------------------------------------------------

// Only the wait carries them out, so that one which is missing or comes too late shows.
struct Copied { float4 *to; float4 value; };
static Copied emulated_copies[1024][16];
static unsigned emulated_copied[1024];

inline void emulated_copy(float4 *to, const float4 *from) {
    unsigned thread = threadIdx.x, at = emulated_copied[thread]++;
    if (at >= 16) __builtin_trap();
    emulated_copies[thread][at] = {to, *from};
}

inline void emulated_wait() {
    unsigned thread = threadIdx.x;
    for (unsigned at = 0; at < emulated_copied[thread]; at++) *emulated_copies[thread][at].to = emulated_copies[thread][at].value;
    emulated_copied[thread] = 0;
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

// ---- Arithmetic ------------------------------------------------------------------------------------

inline unsigned __float_as_uint(float x) { return emulated_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return emulated_bits<float>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned places) {
    emulated_u64 both = a | (emulated_u64)b << 32;
    unsigned result = 0;
    for (int at = 0; at < 4; at++) result |= (unsigned)(both >> (8 * (places >> (4 * at) & 7)) & 255) << (8 * at);
    return result;
}
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
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
