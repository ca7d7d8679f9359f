//! Errors of GPUs.

/// The reason why a GPU cannot be used or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver's library was not found.
    #[error("no NVIDIA driver was found on this machine")]
    NoDriver,
    /// A function is missing from the driver.
    #[error(
        "the NVIDIA driver is too old: {0} is missing, and a driver for CUDA 12.0 or newer is \
         needed"
    )]
    Lacking(&'static str),
    /// The driver reports a version that is too old.
    #[error(
        "the NVIDIA driver is too old: it supports CUDA {version}, and 12.0 or newer is needed"
    )]
    OldDriver {
        /// The CUDA version that the driver supports.
        version: String,
    },
    /// The driver finds no GPU.
    #[error("the NVIDIA driver finds no GPU{0}")]
    NoDevice(String),
    /// There are fewer GPUs than the requested number.
    #[error("there is no GPU {wanted}: this machine has {count}, counted from 0")]
    NoSuchDevice {
        /// The requested GPU.
        wanted: usize,
        /// Number of GPUs.
        count: usize,
    },
    /// The GPU is too old: it cannot multiply matrices of bytes 32 rows at a time.
    #[error("{name} has compute capability {major}.{minor}, and 8.0 or newer is needed")]
    OldDevice {
        /// Name of the GPU.
        name: String,
        /// Major version of its compute capability.
        major: i32,
        /// Minor version of its compute capability.
        minor: i32,
    },
    /// NVRTC was not found.
    #[error(
        "no NVRTC, the compiler for GPUs, was found: install the CUDA toolkit, or `pip install \
         nvidia-cuda-nvrtc-cu12`, or name its library in NYSKETCH_NVRTC"
    )]
    NoCompiler,
    /// The library named by the user is not NVRTC.
    #[error("NYSKETCH_NVRTC names {0}, which cannot be opened as NVRTC, the compiler for GPUs")]
    NotCompiler(String),
    /// NVRTC failed to compile the kernels.
    #[error("NVRTC {version} does not compile the kernels: {log}")]
    NotCompiled {
        /// Version of NVRTC.
        version: String,
        /// The log of NVRTC.
        log: String,
    },
    /// The memory of the GPU is full.
    #[error(
        "{name} has no room for {} ({what}; {} of {} are free): use fewer threads or \
         landmarks, or another device",
        up(*wanted), down(*free), down(*total)
    )]
    OutOfMemory {
        /// Name of the GPU.
        name: String,
        /// The purpose of the memory.
        what: &'static str,
        /// Bytes requested.
        wanted: usize,
        /// Bytes free.
        free: usize,
        /// Bytes in total.
        total: usize,
    },
    /// No pinned host memory is available for copies to the GPU.
    #[error(
        "this machine has no {mb} MB of pinned memory for a GPU to copy from: use fewer threads, \
         or raise the limit of locked memory"
    )]
    NotPinned {
        /// Size in millions of bytes.
        mb: usize,
    },
    /// A call failed: the GPU was reset, was disconnected, or had a fault.
    #[error("{name} failed while {what} ({code})")]
    Failed {
        /// Name of the GPU.
        name: String,
        /// The failed operation.
        what: &'static str,
        /// The driver's name of the error.
        code: String,
    },
    /// The plan has numbers outside the range of the kernels.
    #[error("a GPU cannot sum {0}")]
    Plan(&'static str),
    /// Rows are not where the caller claims.
    #[error("rows in GPU memory must be {expected}, got {got}")]
    Rows {
        /// The expected location or layout.
        expected: String,
        /// The given location or layout.
        got: String,
    },
}

/// The unit for displaying a number of bytes.
fn unit(bytes: usize) -> (usize, &'static str) {
    if bytes < 10_000_000 { (1000, "kB") } else { (1_000_000, "MB") }
}

/// Formats bytes in their unit, rounded up.
fn up(bytes: usize) -> String {
    let (unit, name) = unit(bytes);
    format!("{} {name}", bytes.div_ceil(unit))
}

/// Formats bytes in their unit, rounded down.
fn down(bytes: usize) -> String {
    let (unit, name) = unit(bytes);
    format!("{} {name}", bytes / unit)
}

/// Result of an operation on a GPU.
pub type Result<T> = std::result::Result<T, DeviceError>;
