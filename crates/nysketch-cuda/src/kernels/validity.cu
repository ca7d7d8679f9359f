// Validity of rows, after the first kernel has found an invalid row, or if rows have weights.

/// Sets the weights of rows. Rows that are invalid or have too few values get weight zero, and are
/// counted per affected column.
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
            // Missing values count only if the row has no other invalid values.
            if (HOLES && x != x ? !invalid : !column_of(a, k).has(x)) atomicAdd(a.found + 2 + k, (u64)1);
        }
    }
}
