// Which rows are valid, where the first kernel has found one that is not, or rows have weights.

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
