//! What can go wrong with a GPU, in words.

/// Why a GPU cannot be used, or did not finish.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver's library is not there.
    #[error("no NVIDIA driver was found on this machine")]
    NoDriver,
    /// The driver lacks a function.
    #[error("the NVIDIA driver is too old: it lacks {0}, and one of CUDA 12.0 or newer is needed")]
    Lacking(&'static str),
    /// The driver says that it is too old.
    #[error(
        "the NVIDIA driver is too old: it supports CUDA {version}, and 12.0 or newer is needed"
    )]
    OldDriver {
        /// The CUDA version that it supports.
        version: String,
    },
    /// The driver is there, but no GPU.
    #[error("the NVIDIA driver finds no GPU{0}")]
    NoDevice(String),
    /// There are fewer GPUs.
    #[error("there is no GPU {wanted}: this machine has {count}, counted from 0")]
    NoSuchDevice {
        /// The one asked for.
        wanted: usize,
        /// How many there are.
        count: usize,
    },
    /// The GPU cannot multiply matrices of bytes 32 rows at a time.
    #[error("{name} has compute capability {major}.{minor}, and 8.0 or newer is needed")]
    OldDevice {
        /// Its name.
        name: String,
        /// Compute capability.
        major: i32,
        /// Compute capability.
        minor: i32,
    },
    /// NVRTC is not there.
    #[error(
        "no NVRTC, the compiler for GPUs, was found: install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc-cu12`, \
         or name its library in NYSKETCH_NVRTC"
    )]
    NoCompiler,
    /// What the user names is not NVRTC.
    #[error("NYSKETCH_NVRTC names {0}, which cannot be opened as NVRTC, the compiler for GPUs")]
    NotCompiler(String),
    /// NVRTC does not take the kernels.
    #[error("NVRTC {version} does not compile the kernels: {log}")]
    NotCompiled {
        /// Its version.
        version: String,
        /// What it says.
        log: String,
    },
    /// The memory of the GPU is full.
    #[error(
        "{name} has no room for {} ({what}; {} of {} are free): use fewer threads or landmarks, or another device",
        up(*wanted), down(*free), down(*total)
    )]
    OutOfMemory {
        /// The GPU.
        name: String,
        /// What for.
        what: &'static str,
        /// Bytes that were wanted.
        wanted: usize,
        /// Bytes that are free.
        free: usize,
        /// Bytes that there are.
        total: usize,
    },
    /// Memory of this machine that a GPU copies from is not to be had.
    #[error(
        "this machine has no {mb} MB of pinned memory for a GPU to copy from: use fewer threads, or raise the \
         limit of locked memory"
    )]
    NotPinned {
        /// In millions of bytes.
        mb: usize,
    },
    /// A call failed: the GPU was reset, fell off the bus, or met a fault.
    #[error("{name} failed while {what} ({code})")]
    Failed {
        /// The GPU.
        name: String,
        /// What was being done.
        what: &'static str,
        /// The driver's name for what went wrong.
        code: String,
    },
    /// A plan with numbers beyond those that kernels work with.
    #[error("a GPU cannot sum {0}")]
    Plan(&'static str),
    /// Rows that are not where they are said to be.
    #[error("rows in GPU memory must be {expected}, got {got}")]
    Rows {
        /// What was expected.
        expected: String,
        /// What was given.
        got: String,
    },
}

/// The unit in which people read so many bytes.
fn unit(bytes: usize) -> (usize, &'static str) {
    if bytes < 10_000_000 { (1000, "kB") } else { (1_000_000, "MB") }
}

/// Bytes in their unit, rounded up.
fn up(bytes: usize) -> String {
    let (unit, name) = unit(bytes);
    format!("{} {name}", bytes.div_ceil(unit))
}

/// The same rounded down.
fn down(bytes: usize) -> String {
    let (unit, name) = unit(bytes);
    format!("{} {name}", bytes / unit)
}

/// What a GPU gave, or why it did not.
pub type Result<T> = std::result::Result<T, DeviceError>;
