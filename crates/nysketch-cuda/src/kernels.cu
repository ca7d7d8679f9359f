// The pass on a GPU: every sum of FORMAT.md, to the last bit.
//
// Floating-point operations are written as intrinsics that round once and are never fused or flushed to
// zero, in the order that FORMAT.md gives. Everything after them is integers, so neither the order of threads
// nor that of atomic additions shows in a sum.
//
// Compiled for a plan, with
//   METRIC      0 squared differences, 1 absolute ones, 2 phases of Fourier features
//   RUNGS       bandwidths of this program; 0 where only the nearest landmark is wanted
//   SQUARINGS   two bits for each of them: 0 for an exponential, else how often the last value is squared
//   PER_THREAD  landmarks of a thread
//   NEAREST, WEIGHTED, HOLES, PRIVATE   0 or 1; rows with holes always come with weights
//   SECOND      0 or 1: the second nearest point, too, of rows that come as coordinates; only with NEAREST
//   CHECKS      0 or 1: the first kernel that rows go through notes whether they are valid; not with WEIGHTED
//   EDGE, NARROW  columns of a tile of the matrix of moments, and whether there is one tile only
//   ELEMENT     type of a value: double, float, f16 or bf16
// and with the numbers of grid.rs: THREADS, GROUPS, TILE, SPAN, PER_LANE, WEIGHTED_EDGE, MULTIPLIED.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef __int128 i128;

#ifndef KERNEL
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ Args a)
// The same with registers for two blocks at a time.
#define KERNEL_OF_TWO(name) extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ Args a)
// The same with fewer threads, and registers for three blocks.
#define KERNEL_OF_DIGITS(name) extern "C" __global__ void __launch_bounds__(MULTIPLIED, 3) name(const __grid_constant__ Args a)
#else
#define KERNEL_OF_TWO KERNEL
#define KERNEL_OF_DIGITS KERNEL
#endif
#define BATCH 8      // values that a thread asks memory for before it looks at the first
#define DEPTH (SECOND ? 12 : 20) // most columns that are in shared memory all the time
#define PART (SECOND ? 12 : 16)  // else columns that are there at a time, while others are on their way
#define STRIDE (TILE + 4)
#define QUADS ((PER_THREAD + 3) / 4)
#define ONE_BITS 0x3f800000u
#define ROUND 12582912.0f
#define COORDINATE_LIMIT 17592186044416.0  // 2⁴⁴
#define WHOLE 6755399441055744.0           // 1.5·2⁵²: added, it rounds to a whole number and leaves it in the low bits
#define FLOOR 9.31322574615478515625e-10f  // 2⁻³⁰
#define HIGH 0x43380000u   // upper half of WHOLE, also with a number of 32 bits without a sign added to it
#define SHORT 0x10000000u  // added to a number of 29 bits, it leaves one without a sign; eight of these have 32 bits together

/// All that a kernel is given. The same struct, field by field, is `Args` of args.rs.
struct Args {
    const void *values;        // in the table's units
    const u32 *codes;          // [row][category]
    const u32 *given;          // [row]: weights before rows were looked at; none where each counts once
    u32 *weights;              // [row], zero where it is invalid
    u32 *complete;             // [row], zero where a number is absent, too
    const double *centre;      // [column]
    const double *units;       // units of fixed point in one of the table's
    const double2 *frame;      // [column][2]: centre and 1/scale; up to which size a coordinate is valid
    const float4 *points;      // [panel][column][group][QUADS]
    const float *levels;       // [level][point, filled up]
    const u32 *starts;         // [category]
    const double *anchors;     // [cell][column]
    const double *low;         // [column]: bounds of a private plan
    const double *high;
    const float2 *cover;       // [rung]: factor and limit of κ² of the nearest landmark
    u64 *keys;                 // [row]: bits of the least distance, then the landmark; with SECOND [panel][row]
    float *seconds;            // [panel][row]: the second least distance
    u32 *ranks;                // [row] bits of the least distance, [row] its point, [row] bits of the second least
    u32 *bins;                 // [window][cell]: rows, then where the next one goes
    u32 *order;                // row numbers by cell
    double *shorten;           // [row]: what brings it within the radius, or −1
    u32 *stop;                 // not zero where an invalid row was found: then nothing more is added
    u64 *found;                // the first invalid row, the rows left out, and the columns that cost them
    u64 *sums;                 // 128-bit integers, low half first
    u64 features, coverage, cell_rows, cell_sum, cell_square, cell_absent, cell_levels, whole, sum, outer;
    u64 rows;
    long long column_stride;   // in elements
    u32 dims, count, filled, categories, all_levels, cover_rungs, least_present;
    u32 window;                // log2 of how many rows are sorted by cell together
    int row_bytes;             // from one row to the next
    int sign;                  // −1 to take out again what the first kernel has added
    double radius;
    float factor[8], limit[8]; // [rung]; factor only, for Fourier features
};

// ---- Arithmetic --------------------------------------------------------------------------------

/// Adds to a 128-bit sum. The carry is that of this addition alone, whatever others do meanwhile.
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

/// The sum of what all lanes of a warp hold, added by one of them. Not inlined: it is called for each sum of a thread, but seldom,
/// and copies of it would take most of the time to compile.
__device__ __attribute__((noinline)) void add_of_warp(u64 *sum, long long value) {
    u64 low = warp_sum((u64)value & 0xffffffffu);
    long long high = (long long)warp_sum((u64)(value >> 32));
    if ((threadIdx.x & 31) == 0) add128(sum, ((i128)high << 32) + (i128)low);
}

// Half precision, as bits: eight or five of exponent. Both are exact in single precision.
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

/// Where the values of a column start.
__device__ const ELEMENT *values_of(const Args &a, u32 k) { return (const ELEMENT *)a.values + (long long)k * a.column_stride; }

/// So many rows further down.
__device__ const ELEMENT *below(const Args &a, const ELEMENT *value, u32 rows) {
    return (const ELEMENT *)((const char *)value + (long long)(int)rows * a.row_bytes);
}

/// A value as it lies in memory.
__device__ ELEMENT element(const Args &a, u32 row, u32 k) { return *below(a, values_of(a, k), row); }

#define PER_LINE (64 / sizeof(ELEMENT)) // values of memory that come together, at least

/// Brings a value nearer that is wanted soon.
__device__ void prefetch(const ELEMENT *value) {
#ifndef EMULATED
    asm volatile("prefetch.global.L2 [%0];" ::"l"(value));
#endif
}

/// Starts to copy from global to shared memory.
__device__ void copy(float4 *to, const float4 *from) {
#ifdef EMULATED
    emulated_copy(to, from);
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory");
#endif
}

/// Waits for what this thread has started to copy.
__device__ void wait_for_copies() {
#ifdef EMULATED
    emulated_wait();
#else
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

/// The value of a column, within the bounds of a private plan.
__device__ double bounded(const Args &a, ELEMENT value, u32 k) {
    double x = widened(value);
#if PRIVATE
    if (fabs(x) <= 1.7976931348623157e308) x = x < a.low[k] ? a.low[k] : x > a.high[k] ? a.high[k] : x;
#endif
    return x;
}

__device__ double value(const Args &a, u64 row, u32 k) { return bounded(a, element(a, row, k), k); }

/// A column as sums of its coordinates see it. 2⁻ᵉ is a power of two, so that (x − c)·(1/s)·2⁻ᵉ may be rounded in one go.
struct Column {
    double centre, units;

    __device__ double scaled(double x) const { return __dmul_rn(__dsub_rn(x, centre), units); }

    /// The whole number of units that a coordinate is summed as.
    __device__ double quantised(double x) const { return __dsub_rn(__dadd_rn(scaled(x), WHOLE), WHOLE); }

    /// Whether it is within the limit as a whole number: a half is rounded to the even one. Written so that NaN fails.
    __device__ bool has(double x) const { return fabs(scaled(x)) <= COORDINATE_LIMIT + 0.5; }
};

__device__ Column column_of(const Args &a, u32 k) { return {a.centre[k], a.units[k]}; }

/// The integer of a whole number below 2⁵¹.
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

/// Bits of κ + 1: those of 1 and κ in units of 2⁻²³.
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

// ---- Which rows are valid ----------------------------------------------------------------------

/// Weighs rows: those that are invalid or lack too much count nothing, and are counted by what is wrong with them.
KERNEL(weigh) {
    u64 step = (u64)gridDim.x * THREADS;
    for (u64 row = (u64)blockIdx.x * THREADS + threadIdx.x; row < a.rows; row += step) {
        u32 absent = 0, invalid = 0;
        for (u32 k = 0; k < a.dims; k++) {
            double x = value(a, row, k);
            if (HOLES && x != x)
                absent++;
            else if (!column_of(a, k).has(x))
                invalid++;
        }
        bool lacks = a.dims - absent < a.least_present, out = invalid || lacks;
        u32 weight = out ? 0 : a.given ? a.given[row] : 1;
        a.weights[row] = weight;
        a.complete[row] = absent ? 0 : weight;
        if (!out) continue;
        if (invalid) atomicMin(a.found, row);
        atomicAdd(a.found + 1, (u64)1);
        for (u32 k = 0; k < a.dims; k++) {
            double x = value(a, row, k);
            // Numbers that are absent are to blame only if nothing else is.
            if (HOLES && x != x ? !invalid : !column_of(a, k).has(x)) atomicAdd(a.found + 2 + k, (u64)1);
        }
    }
}

// ---- Features and nearest landmarks ------------------------------------------------------------

#define KINDS (METRIC == 2 ? 2 : 1)
#define SUMS (RUNGS * KINDS * PER_THREAD)
#if WEIGHTED
typedef u64 Held;
#else
typedef u32 Held;
#endif
// Tiles, of four rows a thread, until a held sum might overflow: 2²³ for each row in 32 bits, or for each unit of
// weight, of which a row has less than 2³², in 64; half of it where values have a sign.
#if WEIGHTED || METRIC == 2
#define MOST_TILES 60
#else
#define MOST_TILES 125
#endif

/// One more coordinate of a row and a point.
__device__ float step(float sum, float x, float point) {
#if METRIC == 2
    return __fmaf_rn(point, x, sum);
#else
    float t = __fsub_rn(x, point);
#if HOLES
    t = x == x ? t : 0.0f;
#endif
#if METRIC == 1
    return __fadd_rn(sum, fabsf(t));
#else
    return __fmaf_rn(t, t, sum);
#endif
#endif
}

#if SECOND
/// The least key of two, and the second least distance among all points behind either. What is not a number is none.
__device__ void join(u64 *key, float *second, u64 other_key, float other_second) {
    float farther = __uint_as_float((u32)(max(*key, other_key) >> 32));
    *second = fminf(fminf(*second, other_second), farther);
    *key = min(*key, other_key);
}
#endif

/// Moves what the threads of a warp hold into the sums.
__device__ void fold(const Args &a, Held *held, u32 first, u32 tiles) {
#pragma unroll
    for (int at = 0; at < SUMS; at++) {
        u32 line = at / PER_THREAD, j = first + at % PER_THREAD;
#if WEIGHTED
        long long value = (long long)held[at];
#elif METRIC == 2
        long long value = (int)held[at];
#else
        long long value = held[at] - 4u * tiles * ONE_BITS;
#endif
        u64 *sum = a.sums + 2 * (a.features + (u64)line * a.count + j);
        if (j < a.count) add_of_warp(sum, a.sign * value);
        held[at] = 0;
    }
}

/// How columns are dealt to stages: as evenly as can be.
struct Stages {
    u32 count, least, more; // the first `more` of them have one more than the least

    __device__ Stages(const Args &a) : count(a.dims <= DEPTH ? 1 : (a.dims + PART - 1) / PART) {
        least = a.dims / count;
        more = a.dims % count;
    }
};

/// Columns of a tile of rows: what is in shared memory together.
struct Stage {
    u32 start, number; // the first row, and which stage of the tile it is
    u32 from, depth;   // columns

    __device__ static Stage first(const Stages &of, u32 start) { return {start, 0, 0, of.least + (of.more > 0)}; }

    /// The one after it: of the same rows, or of the next tile of this block.
    __device__ Stage next(const Stages &of) const {
        if (ends(of)) return first(of, start + gridDim.x * TILE);
        return {start, number + 1, from + depth, of.least + (number + 1 < of.more)};
    }

    __device__ bool ends(const Stages &of) const { return number + 1 == of.count; }
};

#define ACROSS 4                   // columns of which a warp brings values at a time
#define SIDE (32 / ACROSS)         // rows of them, and as many again
#define TWICE (TILE / GROUPS / SIDE) // how often: all warps together bring a tile

/// Coordinates of a stage on their way into shared memory. A thread has every SIDE-th of the rows of its warp, and every ACROSS-th
/// column.
struct Incoming {
    const ELEMENT *from;
    float *to;
    u32 column, end; // which comes next, and where the stage ends
    u32 row;
    ELEMENT values[TWICE];

    __device__ Incoming(const Args &a, const Stage &stage, float *rows) {
        u32 r = threadIdx.x / 32 * (TILE / GROUPS) + threadIdx.x % SIDE, k = threadIdx.x % 32 / SIDE;
        row = stage.start + r;
        column = stage.from + k;
        end = stage.start < a.rows ? stage.from + stage.depth : 0;
        from = below(a, values_of(a, column), row);
        to = rows + k * STRIDE + r;
        ask(a);
    }

    __device__ bool comes() const { return column < end; }

    __device__ void ask(const Args &a) {
#pragma unroll
        for (u32 i = 0; i < TWICE; i++)
            if (comes() && row + i * SIDE < a.rows) values[i] = *below(a, from, i * SIDE);
    }

    /// Puts down what has come, and asks for the next. Rows beyond the last are infinitely far from everything, which adds
    /// nothing. Notes where a value is invalid.
    __device__ void step(const Args &a, bool &valid) {
        if (!comes()) return;
#if !SECOND
        double2 frame = a.frame[2 * column];
        double reach = a.frame[2 * column + 1].x;
#endif
#pragma unroll
        for (u32 i = 0; i < TWICE; i++) {
            double y = bounded(a, values[i], column);
            bool exists = row + i * SIDE < a.rows;
#if !SECOND
            y = __dmul_rn(__dsub_rn(y, frame.x), frame.y);
            if (CHECKS && exists && !(fabs(y) <= reach)) valid = false;
#endif
            float z = __double2float_rn(y);
            to[i * SIDE] = exists ? z : METRIC == 2 ? 0.0f : __uint_as_float(0x7f800000u);
        }
        column += ACROSS;
        to += ACROSS * STRIDE;
        from += ACROSS * a.column_stride;
        ask(a);
    }
};

/// Starts to copy the points of its columns.
__device__ void bring_points(const Args &a, const Stage &stage, float4 *points) {
    const float4 *panel = a.points + ((u64)blockIdx.y * a.dims + stage.from) * GROUPS * QUADS;
    for (u32 i = threadIdx.x; i < stage.depth * GROUPS * QUADS; i += THREADS) copy(points + i, panel + i);
}

/// Brings the values of a stage nearer that comes later: all of them, if the columns of a row lie side by side.
__device__ void announce(const Args &a, const Stage &stage) {
    if (threadIdx.x >= TILE || stage.start + threadIdx.x >= a.rows) return;
    const ELEMENT *row = below(a, values_of(a, stage.from), stage.start + threadIdx.x);
    for (u32 k = 0; k < stage.depth; k += PER_LINE) prefetch(row + k * a.column_stride);
}

/// What each warp found nearest to the rows of a tile: four rows in a word.
struct Near {
#if NEAREST
    float4 least[GROUPS][32];
    u32 places[GROUPS][32]; // among the points of the warp, a byte each
#endif
#if SECOND
    float4 second[GROUPS][32];
#endif
};

/// Takes down the nearest of all points of the block.
__device__ void take(const Args &a, u32 start, const Near &near) {
#if NEAREST
    u32 i = threadIdx.x;
    if (i < TILE && start + i < a.rows) {
        u64 least = ~(u64)0;
#if SECOND
        float second = __uint_as_float(0x7f800000u);
#endif
        for (u32 group = 0; group < GROUPS; group++) {
            u32 point = (blockIdx.y * GROUPS + group) * PER_THREAD + ((const unsigned char *)near.places[group])[i];
            u64 key = (u64)__float_as_uint(((const float *)near.least[group])[i]) << 32 | point;
#if SECOND
            join(&least, &second, key, ((const float *)near.second[group])[i]);
#else
            least = min(least, key);
#endif
        }
#if SECOND
        u64 place = (u64)blockIdx.y * a.rows + start + i;
        a.keys[place] = least;
        a.seconds[place] = second;
#else
        if (gridDim.y == 1)
            a.keys[start + i] = least;
        else
            atomicMin(a.keys + start + i, least);
#endif
    }
#endif
}

/// A column of four rows and of the points of a warp, added to their distances.
__device__ void add_column(float (*distance)[PER_THREAD], const float4 *row4, const float4 *point4) {
    float x[4] = {row4->x, row4->y, row4->z, row4->w};
#pragma unroll
    for (int quad = 0; quad < QUADS; quad++) {
        float point[4] = {point4[quad].x, point4[quad].y, point4[quad].z, point4[quad].w};
#pragma unroll
        for (int c = 4 * quad; c < 4 * quad + 4; c++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                if (c < PER_THREAD) distance[r][c] = step(distance[r][c], x[r], point[c & 3]);
    }
}

/// Sums of kernel values or Fourier features, and the nearest landmark of each row. A block takes every gridDim.x-th
/// tile of rows and one panel of points; a thread four rows and PER_THREAD points. While the columns of one stage are worked on, those
/// of the next one come.
KERNEL_OF_TWO(pass) {
    if (!CHECKS && *a.stop) return;
    __shared__ float4 rows4[2][DEPTH * STRIDE / 4];
    __shared__ float4 points4[2 * PART * GROUPS * QUADS];
    __shared__ Near near[2];
    static_assert(PART <= DEPTH && DEPTH <= 2 * PART, "one stage has room for its points, and each of several for its rows");
    static_assert(sizeof(rows4) + sizeof(points4) + sizeof(near) <= 48 << 10, "what a block has without asking for more");
    const Stages stages(a);
    Stage stage = Stage::first(stages, blockIdx.x * TILE);
    u32 lane = threadIdx.x & 31, group = threadIdx.x >> 5, half = 0, turn = 0;
    u32 first = (blockIdx.y * GROUPS + group) * PER_THREAD;
    bool valid = true;
    // Points of few columns stay from tile to tile.
    bring_points(a, stage, points4);
    for (Incoming incoming(a, stage, (float *)rows4[0]); incoming.comes();) incoming.step(a, valid);
    wait_for_copies();
    Held held[SUMS + 1];
#pragma unroll
    for (int at = 0; at < SUMS; at++) held[at] = 0;
    u32 tiles = 0;
    float distance[4][PER_THREAD];
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < PER_THREAD; c++) distance[r][c] = 0.0f;
    while (stage.start < a.rows) {
        __syncthreads();
        if (stage.number == 0 && stage.start >= gridDim.x * TILE) take(a, stage.start - gridDim.x * TILE, near[turn ^ 1]);
        Stage next = stage.next(stages);
        announce(a, next.next(stages));
        if (next.start < a.rows && stages.count > 1) bring_points(a, next, points4 + (half ^ 1) * PART * GROUPS * QUADS);
        Incoming incoming(a, next, (float *)rows4[half ^ 1]);
        const float4 *row4 = rows4[half] + lane;
        const float4 *point4 = points4 + ((stages.count > 1 ? half : 0) * PART * GROUPS + group) * QUADS;
#pragma unroll 4
        for (u32 k = 0; k < stage.depth; k++) {
            if (k % ACROSS == 0) incoming.step(a, valid);
            add_column(distance, row4, point4);
            row4 += STRIDE / 4;
            point4 += GROUPS * QUADS;
        }
        while (incoming.comes()) incoming.step(a, valid);
        wait_for_copies();
        half ^= 1;
        u32 start = stage.start;
        bool ends = stage.ends(stages);
        stage = next;
        if (!ends) continue;
        for (u32 category = 0; category < a.categories; category++) {
#pragma unroll
            for (int r = 0; r < 4; r++) {
                u64 row = start + 4 * lane + r;
                if (row >= a.rows) continue;
                u32 level = a.starts[category] + a.codes[row * a.categories + category];
                const float *line = a.levels + (u64)level * a.filled + first;
#pragma unroll
                for (int c = 0; c < PER_THREAD; c++) distance[r][c] = __fadd_rn(distance[r][c], line[c]);
            }
        }
#if NEAREST
        float least[4];
        u32 places = 0;
#if SECOND
        float second[4];
#endif
#pragma unroll
        for (int r = 0; r < 4; r++) {
            least[r] = distance[r][0];
            u32 place = 0;
#if SECOND
            second[r] = __uint_as_float(0x7f800000u);
#endif
#pragma unroll
            for (int c = 1; c < PER_THREAD; c++) {
#if SECOND
                second[r] = fminf(second[r], fmaxf(distance[r][c], least[r]));
#endif
                if (distance[r][c] < least[r]) {
                    least[r] = distance[r][c];
                    place = c;
                }
            }
            places |= place << (8 * r);
        }
        near[turn].least[group][lane] = {least[0], least[1], least[2], least[3]};
        near[turn].places[group][lane] = places;
#if SECOND
        near[turn].second[group][lane] = {second[0], second[1], second[2], second[3]};
#endif
        turn ^= 1;
#endif
#if RUNGS
#pragma unroll
        for (int r = 0; r < 4; r++) {
            u64 row = start + 4 * lane + r;
#if WEIGHTED
            u64 weight = row < a.rows ? a.complete[row] : 0;
#endif
#pragma unroll
            for (int c = 0; c < PER_THREAD; c++) {
#if METRIC == 2
#pragma unroll
                for (int rung = 0; rung < RUNGS; rung++) {
                    int cosine, sine;
                    cos_sin_units(distance[r][c], a.factor[rung], &cosine, &sine);
#if WEIGHTED
                    held[2 * rung * PER_THREAD + c] += (u64)((long long)cosine * (long long)weight);
                    held[(2 * rung + 1) * PER_THREAD + c] += (u64)((long long)sine * (long long)weight);
#else
                    held[2 * rung * PER_THREAD + c] += row < a.rows ? (u32)cosine : 0;
                    held[(2 * rung + 1) * PER_THREAD + c] += row < a.rows ? (u32)sine : 0;
#endif
                }
#else
                float kappa = 0.0f;
#pragma unroll
                for (int rung = 0; rung < RUNGS; rung++) {
                    const int squarings = (SQUARINGS >> (2 * rung)) & 3;
                    if (squarings == 0) kappa = exp2_product(fminf(distance[r][c], a.limit[rung]), a.factor[rung]);
                    if (squarings >= 1) kappa = __fmul_rn(kappa, kappa);
                    if (squarings == 2) kappa = __fmul_rn(kappa, kappa);
                    if (squarings >= 1) kappa = fmaxf(kappa, FLOOR);
#if WEIGHTED
                    held[rung * PER_THREAD + c] += (one_and_units(kappa) - ONE_BITS) * weight;
#else
                    held[rung * PER_THREAD + c] += one_and_units(kappa);
#endif
                }
#endif
            }
        }
        if (++tiles == MOST_TILES) {
            fold(a, held, first, tiles);
            tiles = 0;
        }
#endif
#pragma unroll
        for (int r = 0; r < 4; r++)
#pragma unroll
            for (int c = 0; c < PER_THREAD; c++) distance[r][c] = 0.0f;
    }
#if RUNGS
    fold(a, held, first, tiles);
#endif
    __syncthreads();
    if (stage.start >= gridDim.x * TILE) take(a, stage.start - gridDim.x * TILE, near[turn ^ 1]);
    if (CHECKS && !valid) *a.stop = 1;
}

/// The two nearest points of each row, from those of every panel.
KERNEL(rank) {
#if SECOND
    u64 step = (u64)gridDim.x * THREADS, end = (u64)(a.filled / (GROUPS * PER_THREAD)) * a.rows;
    for (u64 row = (u64)blockIdx.x * THREADS + threadIdx.x; row < a.rows; row += step) {
        u64 key = a.keys[row];
        float second = a.seconds[row];
        for (u64 at = row + a.rows; at < end; at += a.rows) join(&key, &second, a.keys[at], a.seconds[at]);
        a.ranks[row] = (u32)(key >> 32);
        a.ranks[a.rows + row] = (u32)key;
        a.ranks[2 * a.rows + row] = __float_as_uint(second);
    }
#endif
}

// ---- Coverage and cells ------------------------------------------------------------------------

#define TOGETHER 4 // bandwidths whose coverage is summed in one reading

/// κ² of the nearest landmark, and how much of the weight lacks nothing. A thread has at most 64 rows.
KERNEL(coverage) {
    if (*a.stop) return;
    u64 from = (u64)blockIdx.x * THREADS + threadIdx.x, stride = (u64)gridDim.x * THREADS;
    for (u32 rung = 0; rung < a.cover_rungs; rung += TOGETHER) {
        u64 totals[TOGETHER] = {};
        for (u64 row = from; row < a.rows; row += stride) {
            float least = __uint_as_float((u32)(a.keys[row] >> 32));
#pragma unroll
            for (u32 i = 0; i < TOGETHER; i++) {
                float2 cover = a.cover[min(rung + i, a.cover_rungs - 1)];
                u64 units = one_and_units(exp2_product(fminf(least, cover.y), cover.x)) - ONE_BITS;
                totals[i] += WEIGHTED ? units * a.complete[row] : units;
            }
        }
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i++)
            if (rung + i < a.cover_rungs) add_of_warp(a.sums + 2 * (a.coverage + rung + i), (long long)totals[i]);
    }
#if HOLES
    u64 total = 0;
    for (u64 row = from; row < a.rows; row += stride) total += a.complete[row];
    add_of_warp(a.sums + 2 * a.whole, (long long)total);
#endif
}

#define MOST_BINS 4096 // cells that are counted in shared memory

/// The bins of the window that a row is in. Rows are sorted within windows, so that those that are added up at the same time lie near
/// one another in memory.
__device__ u32 *bins_of(const Args &a, u64 row) { return a.bins + (row >> a.window) * a.count; }

/// Counts the rows of each cell and their levels, and finds what brings rows within the radius.
KERNEL(count) {
    if (*a.stop) return;
    __shared__ u32 bins[MOST_BINS];
    bool few = a.count <= MOST_BINS;
    for (u64 start = (u64)blockIdx.x * SPAN; start < a.rows; start += (u64)gridDim.x * SPAN) {
        u64 end = min(a.rows, start + SPAN);
        u32 *all = bins_of(a, start);
        for (u32 bin = threadIdx.x; few && bin < a.count; bin += THREADS) bins[bin] = 0;
        __syncthreads();
        for (u64 row = start + threadIdx.x; row < end; row += THREADS) {
            u32 cell = (u32)a.keys[row];
            if (few)
                atomicAdd(bins + cell, 1u);
            else
                atomicAdd(all + cell, 1u);
            u64 weight = WEIGHTED ? a.weights[row] : 1;
            for (u32 category = 0; category < a.categories; category++) {
                u64 level = a.starts[category] + a.codes[row * a.categories + category];
                add128(a.sums + 2 * (a.cell_levels + (u64)cell * a.all_levels + level), weight);
            }
#if PRIVATE
            double square = 0.0;
            for (u32 k = 0; k < a.dims; k++) {
                double u = __dsub_rn(column_of(a, k).quantised(value(a, row, k)), a.anchors[(u64)cell * a.dims + k]);
                square = __dadd_rn(square, __dmul_rn(u, u));
            }
            bool beyond = square > __dmul_rn(a.radius, a.radius);
            a.shorten[row] = beyond ? __ddiv_rn(a.radius, __dsqrt_rn(square)) : -1.0;
#endif
        }
        __syncthreads();
        for (u32 bin = threadIdx.x; few && bin < a.count; bin += THREADS)
            if (bins[bin]) atomicAdd(all + bin, bins[bin]);
        __syncthreads();
    }
}

/// Turns counts into where each cell starts. One block.
KERNEL(scan) {
    __shared__ u32 totals[THREADS];
    u32 count = (u32)(bins_of(a, a.rows - 1) - a.bins) + a.count;
    u32 each = (count + THREADS - 1) / THREADS;
    u32 from = min(count, threadIdx.x * each), to = min(count, from + each);
    u32 total = 0;
    for (u32 bin = from; bin < to; bin++) total += a.bins[bin];
    totals[threadIdx.x] = total;
    __syncthreads();
    u32 at = 0;
    for (u32 before = 0; before < threadIdx.x; before++) at += totals[before];
    for (u32 bin = from; bin < to; bin++) {
        u32 rows = a.bins[bin];
        a.bins[bin] = at;
        at += rows;
    }
}

#define EACH (SPAN / THREADS) // rows of a thread in a span

static_assert((SPAN & (SPAN - 1)) == 0, "a window, which is a power of two, has whole spans");
static_assert((u64)MOST_BINS * SPAN <= (u64)1 << 32, "a cell and a row of the span have room in one word");

/// Row numbers by cell, in any order within it. A block sorts those of a span first, so that it writes many side by side.
KERNEL(scatter) {
    if (*a.stop) return;
    __shared__ u32 bins[MOST_BINS], sorted[SPAN], totals[THREADS];
    // Each thread has some bins.
    u32 each = (a.count + THREADS - 1) / THREADS, first = min(a.count, threadIdx.x * each), last = min(a.count, first + each);
    for (u32 start = blockIdx.x * SPAN; start < a.rows; start += gridDim.x * SPAN) {
        u32 *all = bins_of(a, start);
        u32 rows = min((u32)SPAN, (u32)a.rows - start), cells[EACH], places[EACH] = {};
#pragma unroll
        for (int i = 0; i < EACH; i++) cells[i] = (u32)a.keys[start + min(threadIdx.x + i * THREADS, rows - 1)];
        if (a.count > MOST_BINS) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                u32 row = threadIdx.x + i * THREADS;
                if (row < rows) a.order[atomicAdd(all + cells[i], 1u)] = start + row;
            }
            continue;
        }
        for (u32 bin = first; bin < last; bin++) bins[bin] = 0;
        __syncthreads();
        // The place of each row in its cell, then those of the cells in the span.
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (threadIdx.x + i * THREADS < rows) places[i] = atomicAdd(bins + cells[i], 1u);
        __syncthreads();
        u32 at = 0;
        for (u32 bin = first; bin < last; bin++) at += bins[bin];
        totals[threadIdx.x] = at;
        __syncthreads();
        at = 0;
        for (u32 before = 0; before < threadIdx.x && before * each < a.count; before++) at += totals[before];
        for (u32 bin = first; bin < last; bin++) {
            u32 here = bins[bin];
            bins[bin] = at;
            at += here;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            u32 row = threadIdx.x + i * THREADS;
            if (row < rows) sorted[bins[cells[i]] + places[i]] = cells[i] * SPAN + row;
        }
        __syncthreads();
        // How much further a cell starts among all rows than in the span.
        for (u32 bin = first; bin < last; bin++) {
            u32 here = (bin + 1 < last ? bins[bin + 1] : at) - bins[bin];
            if (here) bins[bin] = atomicAdd(all + bin, here) - bins[bin];
        }
        __syncthreads();
        for (u32 place = threadIdx.x; place < rows; place += THREADS)
            a.order[bins[sorted[place] / SPAN] + place] = start + sorted[place] % SPAN;
        __syncthreads();
    }
}

/// What a thread has added up of one column in one cell.
struct Sums {
#if WEIGHTED
    i128 sum;
#else
    long long sum; // of PER_LANE numbers up to 2⁴⁴
#endif
    i128 square;
    u64 rows, absent;

    __device__ void add(const Args &a, const Column &column, u32 row, u32 cell, u32 k, double x) {
        u64 weight = WEIGHTED ? a.weights[row] : 1;
        rows += weight;
#if HOLES
        if (x != x) {
            absent += weight;
            return;
        }
#endif
        double q = column.scaled(x);
#if PRIVATE
        q = column.quantised(x);
        if (a.shorten[row] >= 0.0) {
            double anchor = a.anchors[(u64)cell * a.dims + k];
            q = __dadd_rn(anchor, trunc(__dmul_rn(__dsub_rn(q, anchor), a.shorten[row])));
        }
#endif
        long long whole = integer(q);
#if WEIGHTED
        sum += (i128)whole * (i128)weight;
        square += (i128)whole * whole * (i128)weight;
#else
        sum += whole;
        square += (i128)whole * whole;
#endif
    }

#if !WEIGHTED && !PRIVATE
    /// Adds some numbers if each has 29 bits, as nearly all do; else none, and says so.
    __device__ bool add_short(const Column &column, const ELEMENT *values) {
        // Of numbers q + 2²⁸ without a sign: Σq² is Σ(q + 2²⁸)² − 2²⁹·Σ(q + 2²⁸) + 2⁵⁶ for each.
        u32 part = 0, more = 0;
        u64 squares = 0;
#pragma unroll
        for (int b = 0; b < BATCH; b++) {
            u64 bits = __double_as_longlong(__dadd_rn(column.scaled(widened(values[b])), WHOLE + SHORT));
            more |= ((u32)(bits >> 32) ^ HIGH) | ((u32)bits & ~(2 * SHORT - 1));
            part += (u32)bits;
            squares += (u64)(u32)bits * (u32)bits;
        }
        if (more) return false;
        sum += (long long)part - (long long)BATCH * SHORT;
        square += squares - (u64)part * (2 * SHORT) + (u64)BATCH * SHORT * SHORT;
        rows += BATCH;
        return true;
    }
#else
    __device__ bool add_short(const Column &, const ELEMENT *) { return false; }
#endif

    /// Adds it to the sums of the cell, and starts again.
    __device__ void leave(const Args &a, u32 cell, u32 k) {
        u64 place = (u64)cell * a.dims + k;
        add128(a.sums + 2 * (a.cell_sum + place), sum);
        add128(a.sums + 2 * (a.cell_square + place), square);
        if (k == 0) add128(a.sums + 2 * (a.cell_rows + cell), (i128)rows);
#if HOLES
        add128(a.sums + 2 * (a.cell_absent + place), (i128)absent);
#endif
        sum = 0;
        square = 0;
        rows = absent = 0;
    }
};

/// Moments of cells. A thread walks along rows in the order of their cells, with one column at a time.
KERNEL(cells) {
    if (*a.stop) return;
    u32 wide = min(a.dims, (u32)THREADS), lanes = THREADS / wide;
    u32 lane = threadIdx.x / wide, from = (blockIdx.x * lanes + lane) * PER_LANE;
    if (lane >= lanes || from >= a.rows) return;
    u32 to = min((u32)a.rows, from + PER_LANE);
    for (u32 k = threadIdx.x % wide; k < a.dims; k += THREADS) {
        const ELEMENT *first = values_of(a, k);
        Column column = column_of(a, k);
        u32 row = a.order[from], cell = (u32)a.keys[row], end = bins_of(a, row)[cell];
        Sums sums = {};
        // While some values are worked on, the next ones come, and the numbers of the rows after those.
        ELEMENT next[BATCH];
        u32 after[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; b++) next[b] = *below(a, first, a.order[min(from + b, to - 1)]);
#pragma unroll
        for (int b = 0; b < BATCH; b++) after[b] = a.order[min(from + BATCH + b, to - 1)];
        for (u32 at = from; at < to; at += BATCH) {
            ELEMENT values[BATCH];
#pragma unroll
            for (int b = 0; b < BATCH; b++) values[b] = next[b];
#pragma unroll
            for (int b = 0; b < BATCH; b++) next[b] = *below(a, first, after[b]);
#pragma unroll
            for (int b = 0; b < BATCH; b++) after[b] = a.order[min(at + 2 * BATCH + b, to - 1)];
            if (at + BATCH <= min(end, to) && sums.add_short(column, values)) continue;
#pragma unroll
            for (int b = 0; b < BATCH; b++) {
                if (at + b >= to) break;
                u32 row = a.order[at + b];
                if (at + b == end) {
                    sums.leave(a, cell, k);
                    cell = (u32)a.keys[row];
                    end = bins_of(a, row)[cell];
                }
                sums.add(a, column, row, cell, k, bounded(a, values[b], k));
            }
        }
        sums.leave(a, cell, k);
    }
}

// ---- Moments of all rows -----------------------------------------------------------------------

// Σqqᵀ with a column of ones after the last, which gives Σq. blockIdx.x is a tile of the lower triangle: there may be more of these than 65,535.

/// Which tile of a lower triangle comes at a place, row by row.
__device__ void tile_at(u32 place, u32 *down, u32 *across) {
    *down = 0;
    while (place > *down) place -= ++*down;
    *across = place;
}

/// Adds to an entry of the matrix; those above the diagonal, or beyond the last column, are left out.
__device__ void add_product(const Args &a, u64 p, u64 q, i128 total) {
    if (p > a.dims || q >= a.dims || q > p) return;
    add128(a.sums + 2 * (p < a.dims ? a.outer + p * (p + 1) / 2 + q : a.sum + q), a.sign * total);
}

#if !WEIGHTED
KERNEL(gram) {}
#else

#define CHUNK 16 // rows in shared memory at a time

/// Where rows have weights. A thread has two by two entries and, where a tile has fewer of those than a block has threads, every lanes-th row.
KERNEL(gram) {
    __shared__ double columns[2][CHUNK][WEIGHTED_EDGE + 1];
    __shared__ u32 weights[CHUNK];
    if (*a.stop) return;
    u32 down, across;
    tile_at(blockIdx.x, &down, &across);
    u32 height = min((u32)WEIGHTED_EDGE, a.dims + 1 - down * WEIGHTED_EDGE), width = min((u32)WEIGHTED_EDGE, a.dims + 1 - across * WEIGHTED_EDGE);
    u32 broad = (width + 1) / 2, pairs = (height + 1) / 2 * broad, lanes = THREADS / pairs;
    u32 lane = threadIdx.x / pairs, i = threadIdx.x % pairs / broad, j = threadIdx.x % pairs % broad;
    i128 total[2][2] = {{0, 0}, {0, 0}};
    for (u64 start = (u64)blockIdx.y * CHUNK; start < a.rows; start += (u64)gridDim.y * CHUNK) {
        __syncthreads();
        if (threadIdx.x < CHUNK) weights[threadIdx.x] = start + threadIdx.x < a.rows ? a.complete[start + threadIdx.x] : 0;
        for (u32 at = threadIdx.x; at < 2 * CHUNK * WEIGHTED_EDGE; at += THREADS) {
            u32 side = at / (CHUNK * WEIGHTED_EDGE), r = at / WEIGHTED_EDGE % CHUNK, k = at % WEIGHTED_EDGE;
            u32 column = (side ? across : down) * WEIGHTED_EDGE + k;
            u64 row = start + r;
            double q = column == a.dims ? 1.0 : 0.0;
            if (row < a.rows && column < a.dims) q = column_of(a, column).quantised(value(a, row, column));
            columns[side][r][k] = q;
        }
        __syncthreads();
        for (u32 r = lane; lane < lanes && r < CHUNK; r += lanes) {
            // A row that lacks numbers has no weight here; what stands in it is not looked at.
            if (weights[r] == 0) continue;
#pragma unroll
            for (int x = 0; x < 2; x++)
#pragma unroll
                for (int y = 0; y < 2; y++) {
                    long long left = integer(columns[0][r][2 * i + x]), right = integer(columns[1][r][2 * j + y]);
                    total[x][y] += (i128)left * right * (i128)weights[r];
                }
        }
    }
    if (lane >= lanes) return;
    for (u32 x = 0; x < 2; x++)
        for (u32 y = 0; y < 2; y++)
            if (2 * i + x < height && 2 * j + y < width)
                add_product(a, down * WEIGHTED_EDGE + 2 * i + x, across * WEIGHTED_EDGE + 2 * j + y, total[x][y]);
}

#endif

#if WEIGHTED
KERNEL_OF_DIGITS(digits) {}
#else

#define FIRST (CHECKS && RUNGS == 0 && !NEAREST) // whether no pass comes before
#define BLOCKS (EDGE / 8) // of eight columns, of a tile
#define SIDES (NARROW ? 1 : 2) // whether the columns across a tile are others than those down
#define ROWS 32       // that are multiplied at a time
#define DIGITS 4      // of a number: bytes with a sign
#define PLACES (2 * DIGITS - 1)
#define BIAS 0x80808080u  // added to a number, it leaves digits that are bytes without a sign, 128 too large
#define MOST_STEPS 1000   // of 32 rows, after which sums are folded: at a place four products of digits a row, up to 2¹⁴ each

/// Adds the products of 16 columns with eight others over 32 rows. A lane holds digits of column lane / 4 of each eight: of four
/// rows in each word, the same ones on either side. Of the sums it has those of that column of the first eight with columns
/// 2·(lane % 4) and the next, then those of the second eight.
__device__ void multiply(int *sums, const u32 *first, const u32 *second, const u32 *right) {
#ifdef EMULATED
    emulated_mma_m16n8k32(sums, first, second, right);
#else
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                 : "r"(first[0]), "r"(second[0]), "r"(first[1]), "r"(second[1]), "r"(right[0]), "r"(right[1]));
#endif
}

/// From four numbers with BIAS to their digits, those of the same place in one word, as far as the numbers count.
__device__ void digits_of(u32 (*digits)[2], const u32 *numbers, u32 at, u32 counts) {
    u32 lower[2], upper[2];
#pragma unroll
    for (int pair = 0; pair < 2; pair++) {
        lower[pair] = __byte_perm(numbers[2 * pair], numbers[2 * pair + 1], 0x5140);
        upper[pair] = __byte_perm(numbers[2 * pair], numbers[2 * pair + 1], 0x7362);
    }
    digits[0][at] = (__byte_perm(lower[0], lower[1], 0x5410) ^ BIAS) & counts;
    digits[1][at] = (__byte_perm(lower[0], lower[1], 0x7632) ^ BIAS) & counts;
    digits[2][at] = (__byte_perm(upper[0], upper[1], 0x5410) ^ BIAS) & counts;
    digits[3][at] = (__byte_perm(upper[0], upper[1], 0x7632) ^ BIAS) & counts;
}

/// The column that a lane has of a block: of those down the tile, then of those across it.
__device__ u32 column_at(u32 down, u32 across, int block) {
    return (block < BLOCKS ? down : across) * EDGE + block % BLOCKS * 8 + (threadIdx.x & 31) / 4;
}

/// Asks memory for what a lane has of 32 rows: every fourth. The last row stands for those beyond it.
__device__ void ask(const Args &a, ELEMENT (*values)[8], u32 start, const ELEMENT *const *columns) {
    u32 last = (u32)a.rows - 1;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        u32 row = min(start + 4 * i + (threadIdx.x & 3), last);
#pragma unroll
        for (int block = 0; block < SIDES * BLOCKS; block++) values[block][i] = *below(a, columns[block], row);
    }
}

/// Brings 32 rows nearer, a lane one of them, if their columns lie side by side.
__device__ void announce(const Args &a, u32 start, u32 down, u32 across) {
    u32 row = min(start + (threadIdx.x & 31), (u32)a.rows - 1);
#pragma unroll
    for (u32 side = 0; side < SIDES; side++) {
        u32 from = (side ? across : down) * EDGE;
        for (u32 k = from; k < min(a.dims, from + EDGE); k += PER_LINE) prefetch(below(a, values_of(a, k), row));
    }
}

/// Adds what a warp has multiplied to the sums, and starts again.
__device__ void fold(const Args &a, int (*sums)[PLACES][4], u32 down, u32 across) {
    u32 lane = threadIdx.x & 31;
#pragma unroll
    for (int y = 0; y < BLOCKS; y++)
#pragma unroll
        for (int entry = 0; entry < 4; entry++) {
            long long low = 0, high = 0;
#pragma unroll
            for (int place = 0; place < PLACES; place++) {
                (place < 4 ? low : high) += (long long)sums[y][place][entry] << (8 * (place & 3));
                sums[y][place][entry] = 0;
            }
            int other = entry >> 1;
            u64 p = down * EDGE + (y + other) % BLOCKS * 8 + lane / 4, q = across * EDGE + y * 8 + 2 * (lane & 3) + (entry & 1);
            // Of three blocks the last is multiplied with the first, of two the first with the second is there already.
            bool turned = NARROW && other && q > p;
            add_product(a, turned ? q : p, turned ? p : q, ((i128)high << 32) + low);
        }
}

/// Multiplies 32 rows of which one has a number of more digits. Returns whether all are valid.
__device__ __attribute__((noinline)) bool one_by_one(const Args &a, u32 start, u32 down, u32 across) {
    bool valid = true;
    for (u32 at = threadIdx.x & 31; at < EDGE * EDGE; at += 32) {
        u32 p = down * EDGE + at / EDGE, q = across * EDGE + at % EDGE;
        if (p > a.dims || q >= a.dims || q > p) continue;
        i128 total = 0;
        for (u32 row = start; row < min(start + ROWS, (u32)a.rows); row++) {
            double left = p < a.dims ? column_of(a, p).quantised(value(a, row, p)) : 1.0;
            double right = column_of(a, q).quantised(value(a, row, q));
            bool both = fabs(left) <= COORDINATE_LIMIT && fabs(right) <= COORDINATE_LIMIT;
            if (both) total += (i128)integer(left) * integer(right);
            valid &= both;
        }
        add_product(a, p, q, total);
    }
    return valid;
}

/// Where rows have no weights. A warp takes 32 rows at a time. A whole number from −2155905152 to 2139062143 is taken apart into four digits from −128 to 127,
/// whose products the units for matrices add up in integers; those of the same place, i + j for digits i and j, together.
KERNEL_OF_DIGITS(digits) {
    if (!FIRST && *a.stop) return;
    bool valid = true;
    u32 down, across;
    tile_at(blockIdx.x, &down, &across);
    u32 step = MULTIPLIED * gridDim.y, start = MULTIPLIED * blockIdx.y + (threadIdx.x & ~31u);
    // Of each block of columns across with the block of the same place down, and with the next one.
    int sums[BLOCKS][PLACES][4] = {};
    u32 steps = 0;
    const ELEMENT *from[SIDES * BLOCKS];
#pragma unroll
    for (int block = 0; block < SIDES * BLOCKS; block++) from[block] = values_of(a, min(column_at(down, across, block), a.dims - 1));
    ELEMENT values[SIDES * BLOCKS][8];
    ask(a, values, start, from);
    for (; start < a.rows; start += step) {
        u32 rows = min((u32)ROWS, (u32)a.rows - start), counts[2] = {~0u, ~0u};
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (rows < ROWS && 4 * i + (threadIdx.x & 3) >= rows) counts[i / 4] &= ~(0xffu << (8 * (i % 4)));
        u32 digits[SIDES * BLOCKS][DIGITS][2], more = 0;
#pragma unroll
        for (int block = 0; block < SIDES * BLOCKS; block++) {
            // Read again each time: there are no registers to keep it in. After the last column comes one of ones, then zeros.
            u32 k = column_at(down, across, block), known = min(k, a.dims - 1);
            Column column = column_of(a, known);
            if (k >= a.dims) column.units = 0.0;
            double whole = WHOLE + BIAS + (k == a.dims);
#pragma unroll
            for (int part = 0; part < 2; part++) {
                u32 numbers[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    double x = bounded(a, values[block][4 * part + i], known);
                    long long bits = __double_as_longlong(__dadd_rn(column.scaled(x), whole));
                    more |= (u32)(bits >> 32) ^ HIGH;
                    numbers[i] = (u32)bits;
                }
                digits_of(digits[block], numbers, part, counts[part]);
            }
        }
        ask(a, values, start + step, from);
        announce(a, start + 2 * step, down, across);
        if (__any_sync(0xffffffffu, more != 0)) {
            valid &= one_by_one(a, start, down, across);
            continue;
        }
#pragma unroll
        for (int y = 0; y < BLOCKS; y++)
#pragma unroll
            for (int i = 0; i < DIGITS; i++)
#pragma unroll
                for (int j = 0; j < DIGITS; j++)
                    multiply(sums[y][i + j], digits[y][i], digits[(y + 1) % BLOCKS][i], digits[(SIDES - 1) * BLOCKS + y][j]);
        if (++steps == MOST_STEPS) {
            fold(a, sums, down, across);
            steps = 0;
        }
    }
    fold(a, sums, down, across);
    if (FIRST && !valid) *a.stop = 1;
}

#endif
