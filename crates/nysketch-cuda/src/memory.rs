//! Memory of a GPU, memory that it copies from, and streams: each is given back when it is dropped.

use crate::device::Device;
use crate::error::Result;
use crate::library::{Address, Handle};
use std::sync::Arc;

/// Plain numbers, the same bytes on both sides.
pub(crate) trait Plain: Copy {}
impl Plain for u8 {}
impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for i128 {}
impl Plain for f32 {}
impl Plain for f64 {}

/// Bytes in the memory of a GPU.
#[derive(Debug)]
pub(crate) struct Memory {
    device: Arc<Device>,
    address: Address,
    bytes: usize,
}

impl Memory {
    /// Room for so many bytes, with anything in it.
    pub fn new(device: &Arc<Device>, bytes: usize, what: &'static str) -> Result<Self> {
        let mut address = 0;
        if bytes > 0 {
            device.current()?;
            // SAFETY: the driver's own function; nothing is read or written.
            let code = unsafe { (device.driver.allocate)(&mut address, bytes) };
            device.allocated(code, bytes, what)?;
        }
        Ok(Memory { device: device.clone(), address, bytes })
    }

    /// A copy of these numbers.
    pub fn of<T: Plain>(
        device: &Arc<Device>,
        values: &[T],
        stream: &Stream,
        what: &'static str,
    ) -> Result<Self> {
        let memory = Memory::new(device, size_of_val(values), what)?;
        // The driver takes a copy before it returns, since the numbers are not in memory that it copies from by itself.
        memory.write(0, values, stream)?;
        stream.wait("copying to the GPU")?;
        Ok(memory)
    }

    /// Where it is; 0 if it is empty.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Writes numbers from this byte on.
    pub fn write<T: Plain>(&self, at: usize, values: &[T], stream: &Stream) -> Result<()> {
        let bytes = size_of_val(values);
        assert!(at + bytes <= self.bytes, "a copy stays within its memory");
        if bytes == 0 {
            return Ok(());
        }
        self.device.current()?;
        let (to, from) = (self.address + at as u64, values.as_ptr().cast());
        // SAFETY: both ends have so many bytes. Memory that the driver reads later than this is `Pinned`, whose owner waits.
        let code = unsafe { (self.device.driver.to_device)(to, from, bytes, stream.handle) };
        self.device.check(code, "copying to the GPU")
    }

    /// Reads numbers from this byte on, and waits for them.
    pub fn read<T: Plain>(&self, at: usize, values: &mut [T], stream: &Stream) -> Result<()> {
        let bytes = size_of_val(values);
        assert!(at + bytes <= self.bytes, "a copy stays within its memory");
        if bytes > 0 {
            self.device.current()?;
            let (from, to) = (self.address + at as u64, values.as_mut_ptr().cast());
            // SAFETY: both ends have so many bytes, and the copy is waited for before `values` can go.
            let code = unsafe { (self.device.driver.to_host)(to, from, bytes, stream.handle) };
            self.device.check(code, "copying from the GPU")?;
        }
        // Whatever failed before the copy is told here.
        stream.wait(WORKING)
    }

    /// Copies so many of its first bytes to another place of it, behind them.
    pub fn copy_within(&self, to: usize, bytes: usize, stream: &Stream) -> Result<()> {
        assert!(to >= bytes && to + bytes <= self.bytes, "a copy stays within its memory");
        self.device.current()?;
        // SAFETY: both ends are within the memory, and do not overlap.
        let code = unsafe {
            (self.device.driver.within)(
                self.address + to as u64,
                self.address,
                bytes,
                stream.handle,
            )
        };
        self.device.check(code, "copying within the GPU")
    }

    /// Makes so many bytes from one on all the same.
    pub fn fill(&self, at: usize, bytes: usize, with: u8, stream: &Stream) -> Result<()> {
        assert!(at + bytes <= self.bytes, "what is filled stays within its memory");
        if bytes == 0 {
            return Ok(());
        }
        self.device.current()?;
        // SAFETY: within the memory, as was checked.
        let code = unsafe {
            (self.device.driver.fill)(self.address + at as u64, with, bytes, stream.handle)
        };
        self.device.check(code, "clearing memory of the GPU")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.device.working(|| {
                // SAFETY: allocated by `new` and given back once. The driver waits for what still uses it.
                unsafe { (self.device.driver.free)(self.address) };
            });
        }
    }
}

/// Numbers in memory of this machine that a GPU copies from while the program goes on.
#[derive(Debug)]
pub(crate) struct Pinned<T> {
    device: Arc<Device>,
    address: usize,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Plain> Pinned<T> {
    /// Room for so many numbers, all bytes zero.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self> {
        let (mut address, bytes) = (0, len * size_of::<T>());
        if bytes > 0 {
            device.current()?;
            // SAFETY: the driver's own function. The memory is then written from end to end.
            unsafe {
                let code = (device.driver.allocate_host)(&mut address, bytes, 0);
                device.pinned(code, bytes)?;
                std::ptr::write_bytes(address as *mut u8, 0, bytes);
            }
        }
        Ok(Pinned { device: device.clone(), address, len, of: std::marker::PhantomData })
    }

    /// The numbers.
    pub fn get(&mut self) -> &mut [T] {
        match self.len {
            0 => &mut [],
            // SAFETY: so many plain numbers, which were written, aligned to pages, and borrowed as long as `self` is.
            len => unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, len) },
        }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.device.working(|| {
                // SAFETY: allocated by `new` and given back once; the owner has waited for copies.
                unsafe { (self.device.driver.free_host)(self.address) };
            });
        }
    }
}

/// Work of a GPU that is done in order.
#[derive(Debug)]
pub(crate) struct Stream {
    device: Arc<Device>,
    pub(crate) handle: Handle,
}

/// What a stream is doing when it is waited for.
pub(crate) const WORKING: &str = "working on rows";
/// A stream that waits for no other.
const NON_BLOCKING: u32 = 1;

impl Stream {
    /// A stream without work.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        device.current()?;
        let mut handle = 0;
        // SAFETY: the driver's own function.
        let code = unsafe { (device.driver.create_stream)(&mut handle, NON_BLOCKING) };
        device.check(code, "starting a stream")?;
        Ok(Stream { device: device.clone(), handle })
    }

    /// Waits until all of its work is done.
    pub fn wait(&self, what: &'static str) -> Result<()> {
        self.device.current()?;
        // SAFETY: a stream of this device.
        let code = unsafe { (self.device.driver.wait_stream)(self.handle) };
        self.device.check(code, what)
    }

    /// Reads bytes of the GPU's memory, and waits for them.
    ///
    /// # Safety
    /// They are in the memory of this GPU.
    pub unsafe fn read_at(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.device.current()?;
        // SAFETY: promised by the caller; the copy is waited for before `bytes` can go.
        let code = unsafe {
            (self.device.driver.to_host)(bytes.as_mut_ptr(), from, bytes.len(), self.handle)
        };
        self.device.check(code, "copying from the GPU")?;
        self.wait("copying from the GPU")
    }

    /// Lets what comes wait for what another stream, of this number, has been given so far.
    pub fn wait_for(&self, other: Handle) -> Result<()> {
        let event = Event::new(&self.device)?;
        let driver = self.device.driver;
        // SAFETY: whoever named the other stream promised that it exists; an event may be destroyed before it has happened.
        let codes = unsafe {
            [
                (driver.record)(event.handle, other),
                (driver.stream_waits)(self.handle, event.handle, 0),
            ]
        };
        codes.into_iter().try_for_each(|code| self.device.check(code, "waiting for rows"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.device.working(|| {
            // SAFETY: created by `new` and destroyed once, after its work.
            unsafe {
                (self.device.driver.wait_stream)(self.handle);
                (self.device.driver.destroy_stream)(self.handle);
            }
        });
    }
}

/// A place in a stream that can be waited for.
#[derive(Debug)]
pub(crate) struct Event {
    device: Arc<Device>,
    handle: Handle,
}

/// An event that keeps no time.
const NO_TIMING: u32 = 2;

impl Event {
    /// An event that has happened.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        device.current()?;
        let mut handle = 0;
        // SAFETY: the driver's own function.
        let code = unsafe { (device.driver.create_event)(&mut handle, NO_TIMING) };
        device.check(code, "making an event")?;
        Ok(Event { device: device.clone(), handle })
    }

    /// Happens when what the stream has been given so far is done.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.device.current()?;
        // SAFETY: an event and a stream of this device.
        let code = unsafe { (self.device.driver.record)(self.handle, stream.handle) };
        self.device.check(code, WORKING)
    }

    /// Waits until it has happened.
    pub fn wait(&self) -> Result<()> {
        self.device.current()?;
        // SAFETY: an event of this device.
        let code = unsafe { (self.device.driver.wait_event)(self.handle) };
        self.device.check(code, WORKING)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.device.working(|| {
            // SAFETY: created by `new` and destroyed once.
            unsafe { (self.device.driver.destroy_event)(self.handle) };
        });
    }
}
