// Arithmetic, and addresses of values in memory.

#define ONE_BITS 0x3f800000u
#define ROUND 12582912.0f
#define COORDINATE_LIMIT 17592186044416.0  // 2⁴⁴
#define WHOLE 6755399441055744.0           // 1.5·2⁵²: adding it rounds to a whole number
#define FLOOR 9.31322574615478515625e-10f  // 2⁻³⁰
#define HIGH 0x43380000u   // upper half of WHOLE; adding an unsigned 32-bit number keeps it

/// Adds to a 128-bit sum. The carry depends on this addition alone, even if other threads add at
/// the same time.
__device__ void add128(u64 *sum, i128 value) {
    u64 low = (u64)value, high = (u64)(value >> 64);
    if (low) {
        u64 old = atomicAdd(sum, low);
        high += (u64)(old + low < old);
    }
    if (high) atomicAdd(sum + 1, high);
}

__device__ u64 warp_sum(u64 value) {
    for (int lanes = 16; lanes > 0; lanes >>= 1) value += __shfl_xor_sync(0xffffffffu, value, lanes);
    return value;
}

/// Adds the values of all lanes of a warp to a sum; one lane adds the total. Not inlined: it is
/// called for each sum of a thread, but rarely, and inlined copies would dominate the compile time.
__device__ __attribute__((noinline)) void add_of_warp(u64 *sum, long long value) {
    u64 low = warp_sum((u64)value & 0xffffffffu);
    long long high = (long long)warp_sum((u64)(value >> 32));
    if ((threadIdx.x & 31) == 0) add128(sum, ((i128)high << 32) + (i128)low);
}

// Half precision, as bits: eight or five bits of exponent. Both are exact in single precision.
struct bf16 {
    unsigned short bits;
};
struct f16 {
    unsigned short bits;
};

__device__ double widened(double x) { return x; }
__device__ double widened(float x) { return x; }
__device__ double widened(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ double widened(f16 x) {
    u32 bits = (x.bits & 0x7fffu) << 13;
    bool finite = (x.bits & 0x7c00u) != 0x7c00u;
    float size = finite ? __fmul_rn(__uint_as_float(bits), 5.192296858534828e33f) : __uint_as_float(bits | 0x7f800000u);
    return x.bits & 0x8000u ? -size : size;
}

/// Address of the first value of a column.
__device__ const ELEMENT *values_of(const Args &a, u32 k) { return (const ELEMENT *)a.values + (long long)k * a.column_stride; }

/// The address `rows` rows further down.
__device__ const ELEMENT *below(const Args &a, const ELEMENT *value, u32 rows) {
    return (const ELEMENT *)((const char *)value + (long long)(int)rows * a.row_bytes);
}

/// A value as stored in memory.
__device__ ELEMENT element(const Args &a, u32 row, u32 k) { return *below(a, values_of(a, k), row); }

#define PER_LINE (64 / sizeof(ELEMENT)) // smallest number of values in one memory transaction

/// Prefetches a value.
__device__ void prefetch(const ELEMENT *value) {
#ifndef EMULATED
    asm volatile("prefetch.global.L2 [%0];" ::"l"(value));
#endif
}

/// Starts a copy from global to shared memory.
__device__ void copy(float4 *to, const float4 *from) {
#ifdef EMULATED
    emulated_copy(to, from);
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], \
        16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#endif
}

/// Waits for the copies that this thread has started.
__device__ void wait_for_copies() {
#ifdef EMULATED
    emulated_wait();
#else
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// The value of a column, clipped to the bounds of a private plan.
__device__ double bounded(const Args &a, ELEMENT value, u32 k) {
    double x = widened(value);
#if PRIVATE
    if (fabs(x) <= 1.7976931348623157e308) x = x < a.low[k] ? a.low[k] : x > a.high[k] ? a.high[k] : x;
#endif
    return x;
}

__device__ double value(const Args &a, u64 row, u32 k) { return bounded(a, element(a, row, k), k); }

/// The conversion of a column's values for its sums. 2⁻ᵉ is a power of two, so (x − c)·(1/s)·2⁻ᵉ
/// can be rounded in one step.
struct Column {
    double centre, units;

    __device__ double scaled(double x) const { return __dmul_rn(__dsub_rn(x, centre), units); }

    /// The coordinate in whole units, as summed.
    __device__ double quantised(double x) const { return __dsub_rn(__dadd_rn(scaled(x), WHOLE), WHOLE); }

    /// Whether the rounded coordinate is within the limit, where a half is rounded to even. The
    /// comparison is false for NaN.
    __device__ bool has(double x) const { return fabs(scaled(x)) <= COORDINATE_LIMIT + 0.5; }
};

__device__ Column column_of(const Args &a, u32 k) { return {a.centre[k], a.units[k]}; }

/// The integer value of a whole number below 2⁵¹.
__device__ long long integer(double whole) {
    return (long long)(__double_as_longlong(__dadd_rn(whole, WHOLE)) - __double_as_longlong(WHOLE));
}

/// 2^(ab), −126 < ab ≤ 0.
__device__ float exp2_product(float a, float b) {
    float rounded = __fmaf_rn(a, b, ROUND);
    float f = __fmaf_rn(a, b, -__fsub_rn(rounded, ROUND));
    float p = __uint_as_float(0x3aaddd0au);
    p = __fmaf_rn(p, f, __uint_as_float(0x3c1e7545u));
    p = __fmaf_rn(p, f, __uint_as_float(0x3d635baau));
    p = __fmaf_rn(p, f, __uint_as_float(0x3e75fcdfu));
    p = __fmaf_rn(p, f, __uint_as_float(0x3f317214u));
    p = __fmaf_rn(p, f, 1.0f);
    return __uint_as_float(__float_as_uint(p) + (__float_as_uint(rounded) << 23));
}

/// Bits of κ + 1: the bits of 1 plus κ in units of 2⁻²³.
__device__ u32 one_and_units(float kappa) { return __float_as_uint(__fadd_rn(kappa, 1.0f)); }

/// Cosine and sine in units of 2⁻²³.
__device__ void cos_sin_units(float phase, float quarter_turns, int *cosine, int *sine) {
    float angle = fminf(fmaxf(__fmul_rn(phase, quarter_turns), -4194304.0f), 4194304.0f);
    float rounded = __fadd_rn(angle, ROUND);
    float r = __fsub_rn(angle, __fsub_rn(rounded, ROUND));
    float r2 = __fmul_rn(r, r);
    float s = __fmaf_rn(-0.00459229f, r2, 0.0796759f);
    s = __fmaf_rn(s, r2, -0.64596294f);
    s = __fmul_rn(__fmaf_rn(s, r2, 1.5707963f), r);
    float c = __fmaf_rn(0.00090402164f, r2, -0.020860288f);
    c = __fmaf_rn(c, r2, 0.25366924f);
    c = __fmaf_rn(c, r2, -1.2337005f);
    c = __fmaf_rn(c, r2, 1.0f);
    u32 quarter = __float_as_uint(rounded) & 3;
    int is = __float2int_rn(__fmul_rn(s, 8388608.0f)), ic = __float2int_rn(__fmul_rn(c, 8388608.0f));
    int x = quarter & 1 ? is : ic, y = quarter & 1 ? ic : is;
    *cosine = (quarter + 1) & 2 ? -x : x;
    *sine = quarter & 2 ? -y : y;
}
