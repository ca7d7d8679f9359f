//! The division of rows among blocks and threads: constants used in compiling and launching
//! kernels.

/// Threads per block, for every kernel except the one that multiplies digits.
pub const THREADS: u32 = 256;
/// Warps per block of the pass, each with its own landmarks or frequencies.
pub const GROUPS: usize = 8;
/// Rows in a tile of the pass: four for each lane of a warp.
pub const TILE: u64 = 128;
/// Rows per block of the kernels that count or sort rows by cell.
pub const SPAN: u64 = 4096;
/// Rows that a thread adds to cells, one after the other.
pub const PER_LANE: u64 = 128;
/// Largest number of rows that a thread adds to coverage.
pub const COVERED: u64 = 64;
/// Columns in a tile of the matrix of moments: a single tile if all columns and a column of ones
/// fit in it, otherwise one of many.
pub const EDGES: [usize; 2] = [24, 16];
/// Columns in a tile of the matrix of moments with weights.
pub const WEIGHTED_EDGE: usize = 32;
/// Number of rows whose columns a block multiplies by digits at a time, and its number of threads.
pub const MULTIPLIED: u32 = 128;

/// Names and values of the constants that every program is compiled with.
pub fn defines() -> [String; 7] {
    [
        ("THREADS", u64::from(THREADS)),
        ("GROUPS", GROUPS as u64),
        ("TILE", TILE),
        ("SPAN", SPAN),
        ("PER_LANE", PER_LANE),
        ("WEIGHTED_EDGE", WEIGHTED_EDGE as u64),
        ("MULTIPLIED", u64::from(MULTIPLIED)),
    ]
    .map(|(name, value)| format!("-D{name}={value}"))
}
