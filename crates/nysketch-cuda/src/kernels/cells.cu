// Coverage and cells.

#define BATCH 8      // values that a thread loads before it uses the first
#define SHORT 0x10000000u  // makes a signed 29-bit number unsigned; eight sum to 32 bits
#define TOGETHER 4 // bandwidths whose coverage is summed in one pass over the rows

/// Sums κ² at the nearest landmark, and the weight of complete rows. A thread has at most 64 rows.
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

#define MOST_BINS 4096 // largest number of cells that are counted in shared memory

/// The bins of the window that contains a row. Rows are sorted within windows, so that rows added
/// at the same time are close to each other in memory.
__device__ u32 *bins_of(const Args &a, u64 row) { return a.bins + (row >> a.window) * a.count; }

/// Counts the rows of each cell and their levels, and computes the factors that move rows within
/// the radius.
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

/// The bins of a thread, out of `count` bins shared by all threads of a block.
struct Own {
    u32 first, last;

    __device__ Own(u32 count) {
        u32 each = (count + THREADS - 1) / THREADS;
        first = min(count, threadIdx.x * each);
        last = min(count, first + each);
    }

    /// Turns counts into the start of each bin. Returns the end of this thread's last bin, if it
    /// has any.
    __device__ u32 add_up(u32 *bins, u32 *totals) const {
        u32 total = 0;
        for (u32 bin = first; bin < last; bin++) total += bins[bin];
        totals[threadIdx.x] = total;
        __syncthreads();
        u32 at = 0;
        for (u32 before = 0; first < last && before < threadIdx.x; before++) at += totals[before];
        for (u32 bin = first; bin < last; bin++) {
            u32 here = bins[bin];
            bins[bin] = at;
            at += here;
        }
        return at;
    }
};

/// Turns counts into the start of each cell. Runs as one block.
KERNEL(scan) {
    __shared__ u32 totals[THREADS];
    Own((u32)(bins_of(a, a.rows - 1) - a.bins) + a.count).add_up(a.bins, totals);
}

#define EACH (SPAN / THREADS) // rows per thread in a span

static_assert((SPAN & (SPAN - 1)) == 0, "a window, which is a power of two, has whole spans");
static_assert((u64)MOST_BINS * SPAN <= (u64)1 << 32, "a cell and a row of the span have room in \
    one word");

/// Sorts row numbers by cell, in any order within a cell. A block sorts the rows of a span first,
/// so that it writes contiguous runs.
KERNEL(scatter) {
    if (*a.stop) return;
    __shared__ u32 bins[MOST_BINS], sorted[SPAN], totals[THREADS];
    const Own own(a.count);
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
        for (u32 bin = own.first; bin < own.last; bin++) bins[bin] = 0;
        __syncthreads();
        // The position of each row in its cell, then the positions of the cells in the span.
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (threadIdx.x + i * THREADS < rows) places[i] = atomicAdd(bins + cells[i], 1u);
        __syncthreads();
        u32 end = own.add_up(bins, totals);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            u32 row = threadIdx.x + i * THREADS;
            if (row < rows) sorted[bins[cells[i]] + places[i]] = cells[i] * SPAN + row;
        }
        __syncthreads();
        // Offset between the start of a cell among all rows and in the span.
        for (u32 bin = own.first; bin < own.last; bin++) {
            u32 here = (bin + 1 < own.last ? bins[bin + 1] : end) - bins[bin];
            if (here) bins[bin] = atomicAdd(all + bin, here) - bins[bin];
        }
        __syncthreads();
        for (u32 place = threadIdx.x; place < rows; place += THREADS)
            a.order[bins[sorted[place] / SPAN] + place] = start + sorted[place] % SPAN;
        __syncthreads();
    }
}

/// A thread's sums of one column in one cell.
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
    /// Adds BATCH numbers if each has at most 29 bits, as nearly all do. Otherwise adds none and
    /// returns false.
    __device__ bool add_short(const Column &column, const ELEMENT *values) {
        // With unsigned numbers q + 2²⁸: Σq² is Σ(q + 2²⁸)² − 2²⁹·Σ(q + 2²⁸) + 2⁵⁶ for each.
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

    /// Adds the sums to those of the cell and clears them.
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

/// Moments of cells. A thread processes rows in the order of their cells, one column at a time.
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
        // While some values are processed, the next ones are loaded, and the numbers of the rows
        // after those.
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
