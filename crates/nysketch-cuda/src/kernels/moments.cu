// Moments of all rows: Σqqᵀ, extended by a column of ones after the last column, which gives Σq.
// blockIdx.x is the index of a tile of the lower triangle, because there may be more than 65,535
// tiles.

/// Position of the tile with this index in a lower triangle, row by row.
__device__ void tile_at(u32 place, u32 *down, u32 *across) {
    *down = 0;
    while (place > *down) place -= ++*down;
    *across = place;
}

/// Adds to an entry of the matrix. Entries above the diagonal or beyond the last column are
/// ignored.
__device__ void add_product(const Args &a, u64 p, u64 q, i128 total) {
    if (p > a.dims || q >= a.dims || q > p) return;
    add128(a.sums + 2 * (p < a.dims ? a.outer + p * (p + 1) / 2 + q : a.sum + q), a.sign * total);
}

#if !WEIGHTED
KERNEL(gram) {}
#else

#define CHUNK 16 // rows in shared memory at a time

/// Moments of weighted rows. A thread has two by two entries. If a tile has fewer of these than a
/// block has threads, a thread has every lanes-th row.
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
            // Incomplete rows have weight zero here, and their values are ignored.
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

#define FIRST (CHECKS && RUNGS == 0 && !NEAREST) // whether this is the first kernel of the pass
#define BLOCKS (EDGE / 8) // blocks of eight columns in a tile
#define SIDES (NARROW ? 1 : 2) // 1 if the columns across a tile are those down, else 2
#define ROWS 32       // rows that are multiplied at a time
#define DIGITS 4      // digits of a number: signed bytes
#define PLACES (2 * DIGITS - 1)
#define BIAS 0x80808080u  // adding it to a number gives unsigned bytes, 128 above the digits
#define MOST_STEPS 1000   // groups of 32 rows between folds: 4 products up to 2¹⁴ per row and place

/// Adds the products of 16 columns with eight others over 32 rows. A lane holds the digits of
/// column lane / 4 of each eight columns, with four rows in each word and the same rows on both
/// sides. Its sums are those of that column of the first eight with columns 2·(lane % 4) and
/// 2·(lane % 4) + 1, then those of the second eight.
__device__ void multiply(int *sums, const u32 *first, const u32 *second, const u32 *right) {
#ifdef EMULATED
    emulated_mma_m16n8k32(sums, first, second, right);
#else
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, \
        {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
                 : "r"(first[0]), "r"(second[0]), "r"(first[1]), "r"(second[1]), "r"(right[0]), "r"(right[1]));
#endif
}

/// Splits four numbers with BIAS into their digits. Digits of the same place share a word. `counts`
/// masks out rows beyond the last.
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

/// The column of a block that a lane holds. Blocks down the tile come first, then blocks across it.
__device__ u32 column_at(u32 down, u32 across, int block) {
    return (block < BLOCKS ? down : across) * EDGE + block % BLOCKS * 8 + (threadIdx.x & 31) / 4;
}

/// Loads a lane's values of 32 rows: every fourth row. Rows beyond the last are replaced by the
/// last.
__device__ void ask(const Args &a, ELEMENT (*values)[8], u32 start, const ELEMENT *const *columns) {
    u32 last = (u32)a.rows - 1;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        u32 row = min(start + 4 * i + (threadIdx.x & 3), last);
#pragma unroll
        for (int block = 0; block < SIDES * BLOCKS; block++) values[block][i] = *below(a, columns[block], row);
    }
}

/// Prefetches 32 rows, one per lane, if their columns are contiguous.
__device__ void announce(const Args &a, u32 start, u32 down, u32 across) {
    u32 row = min(start + (threadIdx.x & 31), (u32)a.rows - 1);
#pragma unroll
    for (u32 side = 0; side < SIDES; side++) {
        u32 from = (side ? across : down) * EDGE;
        for (u32 k = from; k < min(a.dims, from + EDGE); k += PER_LINE) prefetch(below(a, values_of(a, k), row));
    }
}

/// Adds the products of a warp to the sums and clears them.
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
            // With three blocks, the last is combined with the first, so entries above the diagonal
            // are transposed. With two blocks, both orders are computed.
            bool turned = NARROW && other && q > p;
            add_product(a, turned ? q : p, turned ? p : q, ((i128)high << 32) + low);
        }
}

/// Multiplies 32 rows, at least one of which has a number with more than four digits. Returns
/// whether all rows are valid.
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

/// Moments of unweighted rows. A warp processes 32 rows at a time. A whole number from −2155905152
/// to 2139062143 is split into four digits from −128 to 127. The tensor cores sum the products of
/// digits in integers; the products of digits i and j with the same place i + j share a sum.
KERNEL_OF_DIGITS(digits) {
    if (!FIRST && *a.stop) return;
    bool valid = true;
    u32 down, across;
    tile_at(blockIdx.x, &down, &across);
    u32 step = MULTIPLIED * gridDim.y, start = MULTIPLIED * blockIdx.y + (threadIdx.x & ~31u);
    // Sums of each block of columns across with the block of the same index down, and with the next
    // one.
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
            // Read again each time, because there are no registers to keep it. The last column is
            // followed by a column of ones, then by zeros.
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
