// The pass on a GPU: every sum of FORMAT.md, to the last bit. This file and those beside it are one text; lib.rs has their order.
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
