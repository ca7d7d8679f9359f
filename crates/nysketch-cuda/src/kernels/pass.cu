// Features and nearest landmarks.

#define DEPTH (SECOND ? 12 : 20) // most columns that stay in shared memory
#define PART (SECOND ? 12 : 16)  // otherwise, columns per stage, while the next stage is loaded
#define STRIDE (TILE + 4)
#define QUADS ((PER_THREAD + 3) / 4)

#define KINDS (METRIC == 2 ? 2 : 1)
#define SUMS (RUNGS * KINDS * PER_THREAD)
#if WEIGHTED
typedef u64 Held;
#else
typedef u32 Held;
#endif
// Number of tiles, with four rows per thread, before a held sum might overflow. A row adds up to
// 2²³ in 32 bits. With weights, it adds up to 2²³ per unit of weight, with fewer than 2³² units, in
// 64 bits. Signed values have half the range.
#if WEIGHTED || METRIC == 2
#define MOST_TILES 60
#else
#define MOST_TILES 125
#endif

/// Adds the contribution of one coordinate of a row and a point.
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
/// Joins two results: the smaller key, and the second smallest distance among all points of both.
/// NaN is ignored.
__device__ void join(u64 *key, float *second, u64 other_key, float other_second) {
    float farther = __uint_as_float((u32)(max(*key, other_key) >> 32));
    *second = fminf(fminf(*second, other_second), farther);
    *key = min(*key, other_key);
}
#endif

/// Adds the held sums of the threads of a warp to the sums and clears them.
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

/// The division of columns into stages, as even as possible.
struct Stages {
    u32 count, least, more; // the first `more` stages have one column more than `least`

    __device__ Stages(const Args &a) : count(a.dims <= DEPTH ? 1 : (a.dims + PART - 1) / PART) {
        least = a.dims / count;
        more = a.dims % count;
    }
};

/// A stage: the columns of a tile of rows that are in shared memory together.
struct Stage {
    u32 start, number; // the first row, and the index of the stage in its tile
    u32 from, depth;   // columns

    __device__ static Stage first(const Stages &of, u32 start) { return {start, 0, 0, of.least + (of.more > 0)}; }

    /// The next stage: of the same rows, or of the next tile of this block.
    __device__ Stage next(const Stages &of) const {
        if (ends(of)) return first(of, start + gridDim.x * TILE);
        return {start, number + 1, from + depth, of.least + (number + 1 < of.more)};
    }

    __device__ bool ends(const Stages &of) const { return number + 1 == of.count; }
};

#define ACROSS 4                   // columns that a warp loads at a time
#define SIDE (32 / ACROSS)         // rows that a warp loads at a time
#define TWICE (TILE / GROUPS / SIDE) // number of loads, so that all warps together load a tile

/// Coordinates of a stage on their way to shared memory. A thread loads every SIDE-th row of its
/// warp, and every ACROSS-th column.
struct Incoming {
    const ELEMENT *from;
    float *to;
    u32 column, end; // the next column, and the end of the stage
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

    /// Stores the loaded values as coordinates and loads the next ones. Rows beyond the last are
    /// infinitely distant from all points, so they add nothing. Records whether a value is invalid.
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

/// Starts to copy the points of a stage's columns.
__device__ void bring_points(const Args &a, const Stage &stage, float4 *points) {
    const float4 *panel = a.points + ((u64)blockIdx.y * a.dims + stage.from) * GROUPS * QUADS;
    for (u32 i = threadIdx.x; i < stage.depth * GROUPS * QUADS; i += THREADS) copy(points + i, panel + i);
}

/// Prefetches the values of a later stage; all values, if the columns of a row are contiguous.
__device__ void announce(const Args &a, const Stage &stage) {
    if (threadIdx.x >= TILE || stage.start + threadIdx.x >= a.rows) return;
    const ELEMENT *row = below(a, values_of(a, stage.from), stage.start + threadIdx.x);
    for (u32 k = 0; k < stage.depth; k += PER_LINE) prefetch(row + k * a.column_stride);
}

/// The nearest point of each warp for the rows of a tile: four rows in a word.
struct Near {
#if NEAREST
    float4 least[GROUPS][32];
    u32 places[GROUPS][32]; // index among the points of the warp, one byte each
#endif
#if SECOND
    float4 second[GROUPS][32];
#endif
};

/// Stores the nearest of all points of the block.
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

/// Adds a column of four rows to their distances from the points of a warp.
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

/// Sums of kernel values or Fourier features, and the nearest landmark of each row. A block
/// processes every gridDim.x-th tile of rows and one panel of points. A thread processes four rows
/// and PER_THREAD points. While the columns of one stage are processed, those of the next one are
/// loaded.
KERNEL_OF_TWO(pass) {
    if (!CHECKS && *a.stop) return;
    __shared__ float4 rows4[2][DEPTH * STRIDE / 4];
    __shared__ float4 points4[2 * PART * GROUPS * QUADS];
    __shared__ Near near[2];
    static_assert(PART <= DEPTH && DEPTH <= 2 * PART, "one stage has room for its points, and each \
        of several for its rows");
    static_assert(sizeof(rows4) + sizeof(points4) + sizeof(near) <= 48 << 10, "what a block has \
        without asking for more");
    const Stages stages(a);
    Stage stage = Stage::first(stages, blockIdx.x * TILE);
    u32 lane = threadIdx.x & 31, group = threadIdx.x >> 5, half = 0, turn = 0;
    u32 first = (blockIdx.y * GROUPS + group) * PER_THREAD;
    bool valid = true;
    // The points of few columns stay in shared memory for all tiles.
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
