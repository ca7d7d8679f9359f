//! A GPU: its context, its programs, and kernel launches.

use crate::compile::compile;
use crate::error::{DeviceError, Result};
use crate::grid::{MULTIPLIED, THREADS};
use crate::library::{Driver, Handle};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_char, c_int};
use std::sync::{Arc, Mutex, Weak};

// Constants of the driver's interface.
const OUT_OF_MEMORY: c_int = 2;
const PROCESSORS: c_int = 16;
const KILOHERTZ: c_int = 13;
const MEMORY_KILOHERTZ: c_int = 36;
const MEMORY_BITS: c_int = 37;
const MAJOR: c_int = 75;
const MINOR: c_int = 76;
const MEMORY_TYPE: c_int = 2;
const DEVICE_ORDINAL: c_int = 9;
const DEVICE_MEMORY: c_int = 2;
const INVALID_CONTEXT: c_int = 201;
/// The step in which opening a GPU fails.
const OPENING: &str = "opening it";

/// An open GPU.
#[derive(Debug)]
pub struct Device {
    pub(crate) driver: &'static Driver,
    ordinal: usize,
    handle: c_int,
    context: Handle,
    name: String,
    processors: u32,
    kilohertz: i32,
    capability: i32,
    programs: Mutex<HashMap<String, Arc<Slot>>>,
}

/// A program, once a thread has compiled it. Different programs are compiled in parallel.
type Slot = Mutex<Option<Arc<Program>>>;

/// The kernels, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Weigh,
    Pass,
    Rank,
    Coverage,
    Count,
    Scan,
    Scatter,
    Cells,
    Gram,
    Digits,
}

impl Kernel {
    const ALL: [(Kernel, &'static str); 10] = [
        (Kernel::Weigh, "weigh"),
        (Kernel::Pass, "pass"),
        (Kernel::Rank, "rank"),
        (Kernel::Coverage, "coverage"),
        (Kernel::Count, "count"),
        (Kernel::Scan, "scan"),
        (Kernel::Scatter, "scatter"),
        (Kernel::Cells, "cells"),
        (Kernel::Gram, "gram"),
        (Kernel::Digits, "digits"),
    ];

    /// Number of threads per block.
    fn threads(self) -> u32 {
        if self == Kernel::Digits { MULTIPLIED } else { THREADS }
    }
}

/// Kernels compiled with one set of definitions.
#[derive(Debug)]
pub(crate) struct Program {
    driver: &'static Driver,
    module: Handle,
    kernels: Vec<Handle>,
    /// Number of blocks of each kernel that the GPU runs at a time.
    slots: Vec<u32>,
}

impl Program {
    /// Number of blocks of a kernel that the GPU runs at a time.
    pub fn slots(&self, kernel: Kernel) -> u32 {
        self.slots[kernel as usize]
    }
}

/// The driver's properties of an address: the kind of memory and the number of the GPU.
struct Pointer {
    codes: [c_int; 2],
    kind: c_int,
    ordinal: c_int,
}

impl Pointer {
    fn of(driver: &Driver, address: u64) -> Self {
        let (mut kind, mut ordinal) = (0, -1);
        // SAFETY: the driver looks the address up but does not dereference it.
        let codes = unsafe {
            [
                (driver.pointer)(&mut kind, MEMORY_TYPE, address),
                (driver.pointer)(&mut ordinal, DEVICE_ORDINAL, address),
            ]
        };
        Pointer { codes, kind, ordinal }
    }
}

impl Device {
    /// Number of GPUs; 0 without a driver.
    pub fn count() -> usize {
        Driver::get().and_then(count).unwrap_or(0)
    }

    /// Whether this machine seems to have a GPU, even if its driver is too old.
    pub fn is_likely() -> bool {
        match Driver::get() {
            Ok(driver) => count(driver).is_ok_and(|count| count > 0),
            Err(reason) => {
                matches!(reason, DeviceError::Lacking(_) | DeviceError::OldDriver { .. })
            }
        }
    }

    /// Opens a GPU, counted from 0. If it is already open in this process, returns the same device
    /// with its programs.
    pub fn open(ordinal: usize) -> Result<Arc<Device>> {
        static OPEN: Mutex<BTreeMap<usize, Weak<Device>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(device) = open.get(&ordinal).and_then(Weak::upgrade) {
            return Ok(device);
        }
        let device = Arc::new(Device::start(ordinal)?);
        open.insert(ordinal, Arc::downgrade(&device));
        Ok(device)
    }

    fn start(ordinal: usize) -> Result<Device> {
        let driver = Driver::get()?;
        let count = count(driver)?;
        if count == 0 {
            return Err(DeviceError::NoDevice(String::new()));
        }
        if ordinal >= count {
            return Err(DeviceError::NoSuchDevice { wanted: ordinal, count });
        }
        let (mut handle, mut context, mut name) = (0, 0, vec![0u8; 128]);
        let [mut major, mut minor, mut processors, mut kilohertz] = [0; 4];
        // SAFETY: the driver's own functions, with room for the values they write.
        let codes = unsafe {
            [
                (driver.device)(&mut handle, ordinal as c_int),
                (driver.name)(name.as_mut_ptr().cast::<c_char>(), name.len() as c_int, handle),
                (driver.attribute)(&mut major, MAJOR, handle),
                (driver.attribute)(&mut minor, MINOR, handle),
                (driver.attribute)(&mut processors, PROCESSORS, handle),
                (driver.attribute)(&mut kilohertz, KILOHERTZ, handle),
            ]
        };
        let name =
            String::from_utf8_lossy(name.split(|b| *b == 0).next().unwrap_or(&[])).into_owned();
        if let Some(code) = codes.into_iter().find(|code| *code != 0) {
            return Err(DeviceError::Failed { name, what: OPENING, code: driver.name_of(code) });
        }
        if major < 8 {
            return Err(DeviceError::OldDevice { name, major, minor });
        }
        // SAFETY: the primary context, shared by all libraries of this process; released once, by
        // `drop`.
        let code = unsafe { (driver.retain)(&mut context, handle) };
        if code != 0 {
            return Err(DeviceError::Failed { name, what: OPENING, code: driver.name_of(code) });
        }
        Ok(Device {
            driver,
            ordinal,
            handle,
            context,
            name,
            processors: processors.max(1) as u32,
            kilohertz,
            capability: 10 * major + minor,
            programs: Mutex::default(),
        })
    }

    /// Number of the GPU whose memory contains this address; `None` if there is none.
    pub fn of_address(address: u64) -> Result<Option<usize>> {
        let driver = Driver::get()?;
        let mut found = Pointer::of(driver, address);
        // A thread without a current context must query from within one. Addresses are shared by
        // all GPUs, so any will do.
        if found.codes.contains(&INVALID_CONTEXT) {
            Device::open(0)?.working(|| found = Pointer::of(driver, address));
        }
        let is_on_device = found.codes == [0, 0] && found.kind == DEVICE_MEMORY;
        Ok(is_on_device.then_some(found.ordinal.max(0) as usize))
    }

    /// Number of the GPU, from 0.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Name of the GPU.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Peak rate of single-precision operations, in operations per second: 128 for each
    /// multiprocessor and cycle.
    pub fn operations_per_second(&self) -> f64 {
        f64::from(self.processors) * 128.0 * 1e3 * f64::from(self.kilohertz)
    }

    /// Peak memory bandwidth, in bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        let [mut kilohertz, mut bits] = [0; 2];
        // SAFETY: the driver's own functions, with room for the values they write.
        unsafe {
            (self.driver.attribute)(&mut kilohertz, MEMORY_KILOHERTZ, self.handle);
            (self.driver.attribute)(&mut bits, MEMORY_BITS, self.handle);
        }
        // Two transfers per cycle.
        2.0 * 1e3 * f64::from(kilohertz) * f64::from(bits) / 8.0
    }

    /// Free and total memory, in bytes.
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver's own function.
        let code = unsafe { (self.driver.memory)(&mut free, &mut total) };
        self.check(code, "asking for its memory")?;
        Ok((free, total))
    }

    /// Makes this GPU the current one of the thread.
    pub(crate) fn current(&self) -> Result<()> {
        // SAFETY: a context that is retained until `drop`.
        self.check(unsafe { (self.driver.set_current)(self.context) }, "making it current")
    }

    /// Runs `work` with this GPU as the current one, then restores the thread's previous GPU.
    /// Needed in `drop`, which may run on any thread.
    pub(crate) fn working(&self, work: impl FnOnce()) {
        let mut before = 0;
        // SAFETY: the driver's own functions; the previous context was current, or there was none.
        unsafe {
            let code = (self.driver.current)(&mut before);
            if self.current().is_ok() {
                work();
            }
            if code == 0 {
                (self.driver.set_current)(before);
            }
        }
    }

    /// Turns the code of a failed call into an error.
    pub(crate) fn check(&self, code: c_int, what: &'static str) -> Result<()> {
        match code {
            0 => Ok(()),
            code => Err(DeviceError::Failed {
                name: self.name.clone(),
                what,
                code: self.driver.name_of(code),
            }),
        }
    }

    /// Turns the code of a failed allocation on the GPU into an error.
    pub(crate) fn allocated(&self, code: c_int, bytes: usize, what: &'static str) -> Result<()> {
        if code != OUT_OF_MEMORY {
            return self.check(code, "asking for memory");
        }
        let (free, total) = self.memory()?;
        Err(DeviceError::OutOfMemory { name: self.name.clone(), what, wanted: bytes, free, total })
    }

    /// Turns the code of a failed allocation of pinned host memory into an error.
    pub(crate) fn pinned(&self, code: c_int, bytes: usize) -> Result<()> {
        match code {
            OUT_OF_MEMORY => Err(DeviceError::NotPinned { mb: bytes.div_ceil(1_000_000) }),
            code => self.check(code, "asking for memory of this machine"),
        }
    }

    /// The kernels compiled with these definitions.
    pub(crate) fn program(&self, defines: &[String]) -> Result<Arc<Program>> {
        let key = defines.join(" ");
        let mut programs = self.programs.lock().unwrap_or_else(|e| e.into_inner());
        let slot = programs.entry(key).or_default().clone();
        drop(programs);
        let mut slot = slot.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(program) = &*slot {
            return Ok(program.clone());
        }
        let image = compile(defines, self.capability)?;
        self.current()?;
        let mut program =
            Program { driver: self.driver, module: 0, kernels: Vec::new(), slots: Vec::new() };
        // SAFETY: NVRTC compiled the image for this GPU, and kernels take one block of arguments.
        let code = unsafe { (self.driver.load)(&mut program.module, image.as_ptr()) };
        self.check(code, "loading the kernels")?;
        for (kernel, name) in Kernel::ALL {
            let threads = kernel.threads() as c_int;
            let name = CString::new(name).expect("names of kernels have no zero byte");
            let (mut kernel, mut blocks) = (0, 0);
            // SAFETY: a loaded module, and a string that ends with a zero byte.
            let codes = unsafe {
                let found = (self.driver.function)(&mut kernel, program.module, name.as_ptr());
                [found, (self.driver.blocks)(&mut blocks, kernel, threads, 0)]
            };
            codes.into_iter().try_for_each(|code| self.check(code, "loading the kernels"))?;
            program.kernels.push(kernel);
            program.slots.push(blocks.max(1) as u32 * self.processors);
        }
        Ok(slot.insert(Arc::new(program)).clone())
    }

    /// Launches a kernel with a grid of this size.
    ///
    /// # Safety
    /// The arguments are those that the kernel reads, and their addresses point to the memory that
    /// it reads and writes.
    pub(crate) unsafe fn launch<A>(
        &self,
        program: &Program,
        kernel: Kernel,
        (x, y): (u32, u32),
        args: &A,
        stream: Handle,
    ) -> Result<()> {
        self.current()?;
        let pointer = std::ptr::from_ref(args).cast::<u8>();
        // SAFETY: arguments are copied before the call returns; the caller guarantees the rest.
        let code = unsafe {
            (self.driver.launch)(
                program.kernels[kernel as usize],
                x,
                y,
                1,
                kernel.threads(),
                1,
                1,
                0,
                stream,
                &pointer,
                0,
            )
        };
        self.check(code, "starting a kernel")
    }
}

fn count(driver: &Driver) -> Result<usize> {
    let mut count = 0;
    // SAFETY: the driver's own function.
    match unsafe { (driver.count)(&mut count) } {
        0 => Ok(count.max(0) as usize),
        code => Err(DeviceError::NoDevice(format!(" ({})", driver.name_of(code)))),
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: loaded once, and nothing that runs still uses it. If the device is gone, the call
        // fails without harm.
        unsafe { (self.driver.unload)(self.module) };
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let programs = std::mem::take(self.programs.get_mut().unwrap_or_else(|e| e.into_inner()));
        self.working(|| drop(programs));
        // SAFETY: retained once, by `open`.
        unsafe { (self.driver.release)(self.handle) };
    }
}
