//! Functions of the driver and of NVRTC, loaded at run time, so that one binary runs with and
//! without them.

use crate::error::{DeviceError, Result};
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

/// A handle of the driver: a context, a stream, a module or a function.
pub type Handle = usize;
/// An address in the memory of a GPU.
pub type Address = u64;

macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident = $symbol:literal ($($argument:ty),*);)* }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $table {
            $(pub $name: unsafe extern "system" fn($($argument),*) -> c_int,)*
        }

        impl $table {
            /// Loads every function. The error is the name of the first missing one.
            fn of(library: &'static Library) -> std::result::Result<Self, &'static str> {
                $(
                    // SAFETY: the type is that of the function in the header of its library.
                    let $name = unsafe { library.get($symbol.as_bytes()) }.map_err(|_| $symbol)?;
                )*
                Ok($table { $($name: *$name,)* })
            }
        }
    };
}

functions! {
    /// Functions of the driver.
    Driver {
        init = "cuInit" (c_uint);
        version = "cuDriverGetVersion" (&mut c_int);
        count = "cuDeviceGetCount" (&mut c_int);
        device = "cuDeviceGet" (&mut c_int, c_int);
        name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
        attribute = "cuDeviceGetAttribute" (&mut c_int, c_int, c_int);
        retain = "cuDevicePrimaryCtxRetain" (&mut Handle, c_int);
        release = "cuDevicePrimaryCtxRelease_v2" (c_int);
        current = "cuCtxGetCurrent" (&mut Handle);
        set_current = "cuCtxSetCurrent" (Handle);
        memory = "cuMemGetInfo_v2" (&mut usize, &mut usize);
        allocate = "cuMemAlloc_v2" (&mut Address, usize);
        free = "cuMemFree_v2" (Address);
        allocate_host = "cuMemHostAlloc" (&mut usize, usize, c_uint);
        free_host = "cuMemFreeHost" (usize);
        to_device = "cuMemcpyHtoDAsync_v2" (Address, *const u8, usize, Handle);
        to_host = "cuMemcpyDtoHAsync_v2" (*mut u8, Address, usize, Handle);
        within = "cuMemcpyDtoDAsync_v2" (Address, Address, usize, Handle);
        fill = "cuMemsetD8Async" (Address, u8, usize, Handle);
        pointer = "cuPointerGetAttribute" (&mut c_int, c_int, Address);
        create_stream = "cuStreamCreate" (&mut Handle, c_uint);
        wait_stream = "cuStreamSynchronize" (Handle);
        stream_waits = "cuStreamWaitEvent" (Handle, Handle, c_uint);
        destroy_stream = "cuStreamDestroy_v2" (Handle);
        create_event = "cuEventCreate" (&mut Handle, c_uint);
        record = "cuEventRecord" (Handle, Handle);
        wait_event = "cuEventSynchronize" (Handle);
        destroy_event = "cuEventDestroy_v2" (Handle);
        load = "cuModuleLoadData" (&mut Handle, *const u8);
        unload = "cuModuleUnload" (Handle);
        function = "cuModuleGetFunction" (&mut Handle, Handle, *const c_char);
        blocks = "cuOccupancyMaxActiveBlocksPerMultiprocessor" (&mut c_int, Handle, c_int, usize);
        launch = "cuLaunchKernel" (Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
            Handle, *const *const u8, usize);
        error_name = "cuGetErrorName" (c_int, &mut *const c_char);
    }
}

functions! {
    /// Functions of the compiler.
    Nvrtc {
        version = "nvrtcVersion" (&mut c_int, &mut c_int);
        count_architectures = "nvrtcGetNumSupportedArchs" (&mut c_int);
        architectures = "nvrtcGetSupportedArchs" (*mut c_int);
        create = "nvrtcCreateProgram" (&mut Handle, *const c_char, *const c_char, c_int, usize,
            usize);
        compile = "nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
        destroy = "nvrtcDestroyProgram" (&mut Handle);
        log_size = "nvrtcGetProgramLogSize" (Handle, &mut usize);
        log = "nvrtcGetProgramLog" (Handle, *mut u8);
        cubin_size = "nvrtcGetCUBINSize" (Handle, &mut usize);
        cubin = "nvrtcGetCUBIN" (Handle, *mut u8);
        ptx_size = "nvrtcGetPTXSize" (Handle, &mut usize);
        ptx = "nvrtcGetPTX" (Handle, *mut u8);
    }
}

impl Driver {
    /// The driver of this machine, initialised.
    pub fn get() -> Result<&'static Driver> {
        static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();
        DRIVER.get_or_init(Driver::open).as_ref().map_err(Clone::clone)
    }

    fn open() -> Result<Driver> {
        let names =
            if cfg!(windows) { &["nvcuda.dll"][..] } else { &["libcuda.so.1", "libcuda.so"] };
        let library =
            names.iter().find_map(|name| open(name.into())).ok_or(DeviceError::NoDriver)?;
        let driver = Driver::of(library).map_err(DeviceError::Lacking)?;
        let mut version = 0;
        // SAFETY: the driver's own functions, with arguments of the right types.
        let (read, started) = unsafe { ((driver.version)(&mut version), (driver.init)(0)) };
        if read == 0 && version < 12_000 {
            let version = format!("{}.{}", version / 1000, version % 1000 / 10);
            return Err(DeviceError::OldDriver { version });
        }
        match started {
            0 => Ok(driver),
            code => Err(DeviceError::NoDevice(format!(" ({})", driver.name_of(code)))),
        }
    }

    /// The driver's name of an error.
    pub fn name_of(&self, code: c_int) -> String {
        let mut name = std::ptr::null();
        // SAFETY: returns a string that lives as long as the driver, or an error.
        let is_known = unsafe { (self.error_name)(code, &mut name) } == 0 && !name.is_null();
        if !is_known {
            return format!("error {code}");
        }
        // SAFETY: the driver guarantees a terminating zero byte.
        unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

impl Nvrtc {
    /// The compiler of this machine: the one named by the user, otherwise the first one found.
    pub fn get() -> Result<&'static Nvrtc> {
        static NVRTC: OnceLock<Result<Nvrtc>> = OnceLock::new();
        NVRTC.get_or_init(Nvrtc::find).as_ref().map_err(Clone::clone)
    }

    fn find() -> Result<Nvrtc> {
        match std::env::var_os("NYSKETCH_NVRTC").map(PathBuf::from) {
            Some(named) => {
                let name = named.display().to_string();
                Nvrtc::at(named).ok_or(DeviceError::NotCompiler(name))
            }
            None => places().into_iter().find_map(Nvrtc::at).ok_or(DeviceError::NoCompiler),
        }
    }

    fn at(path: PathBuf) -> Option<Nvrtc> {
        Nvrtc::of(open(path)?).ok()
    }
}

/// Folders of Python packages that may contain NVRTC.
static PACKAGES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Sets the folders of Python packages that are searched for NVRTC, in addition to those of the
/// active environment. Has no effect once NVRTC has been found.
pub fn look_in(packages: Vec<PathBuf>) {
    *PACKAGES.lock().unwrap_or_else(|e| e.into_inner()) = packages;
}

/// Opens a library for the lifetime of the program, because the driver cannot be unloaded.
fn open(path: PathBuf) -> Option<&'static Library> {
    // SAFETY: these libraries are NVIDIA's, or named by the user.
    unsafe { Library::new(path) }.ok().map(|library| &*Box::leak(Box::new(library)))
}

/// Possible locations of NVRTC: the loader's search path, the toolkit, and Python environments. The
/// newest version that the driver supports comes first.
fn places() -> Vec<PathBuf> {
    let (before, after) =
        if cfg!(windows) { ("nvrtc64_", "0_0.dll") } else { ("libnvrtc.so.", "") };
    let mut version = 0;
    if let Ok(driver) = Driver::get() {
        // SAFETY: the driver's own function, with an argument of the right type.
        unsafe { (driver.version)(&mut version) };
    }
    let versions = if version >= 13_000 { [13, 12] } else { [12, 13] };
    let names = versions.map(|v| format!("{before}{v}{after}"));
    let mut places: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    places.push("libnvrtc.so".into());
    let toolkits =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    for root in toolkits.chain([PathBuf::from("/usr/local/cuda")]) {
        let folders = [root.join("lib64"), root.join("bin")];
        places.extend(folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))));
    }
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os);
    let mut packages = PACKAGES.lock().unwrap_or_else(|e| e.into_inner()).clone();
    for root in environments.map(|root| PathBuf::from(root).join("lib")) {
        places.extend(names.iter().map(|name| root.join(name)));
        let pythons = std::fs::read_dir(root).into_iter().flatten().flatten();
        packages.extend(pythons.map(|python| python.path().join("site-packages")));
    }
    for folder in packages {
        let folders = ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"].map(|lib| folder.join(lib));
        places.extend(names.iter().flat_map(|name| folders.iter().map(move |lib| lib.join(name))));
    }
    places
}
