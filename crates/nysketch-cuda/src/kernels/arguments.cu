// The pass on a GPU: every sum of FORMAT.md, to the last bit. All files of this folder form one
// text; lib.rs lists their order.
//
// Floating-point operations are written as intrinsics that round once and are never fused or
// flushed to zero, in the order given by FORMAT.md. Everything after them is integer arithmetic, so
// sums do not depend on the order of threads or of atomic additions.
//
// Compiled for a plan, with
//   METRIC      0 for squared differences, 1 for absolute ones, 2 for phases of Fourier features
//   RUNGS       number of bandwidths of this program; 0 if only the nearest landmark is needed
//   SQUARINGS   two bits per bandwidth: 0 for an exponential, or the squarings of the last value
//   PER_THREAD  number of landmarks of a thread
//   NEAREST, WEIGHTED, `HOLES`, PRIVATE   0 or 1. Missing values (`HOLES`) require WEIGHTED
//   SECOND      0 or 1: also the second nearest point, of rows given as coordinates; with NEAREST
//   CHECKS      0 or 1: the first kernel of the pass checks rows for validity; without WEIGHTED
//   EDGE, NARROW  columns in a tile of the matrix of moments, and whether there is a single tile
//   ELEMENT     type of a value: double, float, f16 or bf16
// and with the constants of grid.rs: THREADS, GROUPS, TILE, SPAN, PER_LANE, WEIGHTED_EDGE,
// MULTIPLIED.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef __int128 i128;

#ifndef KERNEL
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ Args a)
// As KERNEL, with registers for two blocks at a time.
#define KERNEL_OF_TWO(name) extern "C" __global__ void __launch_bounds__(THREADS, 2) name(const __grid_constant__ Args a)
// As KERNEL, with fewer threads, and registers for three blocks.
#define KERNEL_OF_DIGITS(name) extern "C" __global__ void __launch_bounds__(MULTIPLIED, 3) name(const __grid_constant__ Args a)
#else
#define KERNEL_OF_TWO KERNEL
#define KERNEL_OF_DIGITS KERNEL
#endif

/// Arguments of a kernel: the same struct, field by field, as `Args` of args.rs.
struct Args {
    const void *values;        // in the table's units
    const u32 *codes;          // [row][category]
    const u32 *given;          // [row]: weights before validation; null if each row counts once
    u32 *weights;              // [row]: zero if the row is invalid
    u32 *complete;             // [row]: weight, or zero if a value is missing
    const double *centre;      // [column]
    const double *units;       // [column]: units of fixed point per unit of the table
    const double2 *frame;      // [column][2]: centre and 1/scale; largest valid coordinate
    const float4 *points;      // [panel][column][group][QUADS]
    const float *levels;       // [level][point, padded]
    const u32 *starts;         // [category]
    const double *anchors;     // [cell][column]
    const double *low;         // [column]: bounds of a private plan
    const double *high;
    const float2 *cover;       // [rung]: factor and limit of κ² at the nearest landmark
    u64 *keys;                 // [row]: smallest distance, then landmark; [panel][row] with SECOND
    float *seconds;            // [panel][row]: the second smallest distance
    u32 *ranks;                // [3][row]: smallest distance, its point, second smallest distance
    u32 *bins;                 // [window][cell]: number of rows, later the position of the next row
    u32 *order;                // row numbers by cell
    double *shorten;           // [row]: factor that moves it within the radius, or −1
    u32 *stop;                 // non-zero once an invalid row was found; then nothing more is added
    u64 *found;                // first invalid row, number of skipped rows, number per column
    u64 *sums;                 // 128-bit integers, low half first
    u64 features, coverage, cell_rows, cell_sum, cell_square, cell_absent, cell_levels, whole, sum, outer;
    u64 rows;
    long long column_stride;   // in elements
    u32 dims, count, filled, categories, all_levels, cover_rungs, least_present;
    u32 window;                // log2 of the number of rows that are sorted by cell together
    int row_bytes;             // distance between rows
    int sign;                  // −1 to subtract the sums of the first kernel again
    double radius;
    float factor[8], limit[8]; // [rung]; factor only, for Fourier features
};
