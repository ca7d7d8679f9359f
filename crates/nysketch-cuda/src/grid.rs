//! How rows are dealt to blocks and threads: numbers that kernels are compiled with and launched by.

/// Threads of a block, of every kernel but the one that multiplies digits.
pub const THREADS: u32 = 256;
/// Warps of a block of the pass, each with landmarks or frequencies of its own.
pub const GROUPS: usize = 8;
/// Rows of a tile of the pass: four for each lane of a warp.
pub const TILE: u64 = 128;
/// Rows of a block that counts or sorts rows by cell.
pub const SPAN: u64 = 4096;
/// Rows that a thread adds to cells, one after the other.
pub const PER_LANE: u64 = 128;
/// Rows that a thread adds to coverage, at most.
pub const COVERED: u64 = 64;
/// Columns of a tile of the matrix of moments: one where all columns and one of ones have room in it, else many.
pub const EDGES: [usize; 2] = [24, 16];
/// The same with weights.
pub const WEIGHTED_EDGE: usize = 32;
/// Rows of which a block multiplies the columns by their digits at a time, and its threads.
pub const MULTIPLIED: u32 = 128;

/// Names and values that every program is compiled with.
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
