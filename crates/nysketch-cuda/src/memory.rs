//! Memory of a GPU, pinned host memory, streams and events, each of which is released when it is
//! dropped.

use crate::device::Device;
use crate::error::Result;
use crate::library::{Address, Handle};
use std::sync::Arc;

/// Plain numbers, with the same bytes on the host and on the GPU.
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
    /// Allocates uninitialised memory.
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

    /// Copies numbers to the GPU.
    pub fn of<T: Plain>(
        device: &Arc<Device>,
        values: &[T],
        stream: &Stream,
        what: &'static str,
    ) -> Result<Self> {
        let memory = Memory::new(device, size_of_val(values), what)?;
        // The driver copies pageable memory before it returns, so `values` may be dropped
        // afterwards.
        memory.write(0, values, stream)?;
        stream.wait("copying to the GPU")?;
        Ok(memory)
    }

    /// The address; 0 if the memory is empty.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Writes numbers at this byte offset.
    pub fn write<T: Plain>(&self, at: usize, values: &[T], stream: &Stream) -> Result<()> {
        let bytes = size_of_val(values);
        assert!(at + bytes <= self.bytes, "a copy stays within its memory");
        if bytes == 0 {
            return Ok(());
        }
        self.device.current()?;
        let (to, from) = (self.address + at as u64, values.as_ptr().cast());
        // SAFETY: both ends have `bytes` bytes. Memory that the driver reads after this call is
        // `Pinned`, whose owner waits.
        let code = unsafe { (self.device.driver.to_device)(to, from, bytes, stream.handle) };
        self.device.check(code, "copying to the GPU")
    }

    /// Reads numbers at this byte offset and waits for them.
    pub fn read<T: Plain>(&self, at: usize, values: &mut [T], stream: &Stream) -> Result<()> {
        let bytes = size_of_val(values);
        assert!(at + bytes <= self.bytes, "a copy stays within its memory");
        if bytes > 0 {
            self.device.current()?;
            let (from, to) = (self.address + at as u64, values.as_mut_ptr().cast());
            // SAFETY: both ends have `bytes` bytes, and the copy has finished before `values` can
            // be dropped.
            let code = unsafe { (self.device.driver.to_host)(to, from, bytes, stream.handle) };
            self.device.check(code, "copying from the GPU")?;
        }
        // Also reports failures of earlier work on the stream.
        stream.wait(WORKING)
    }

    /// Copies the first `bytes` bytes to a later offset of the same memory.
    pub fn copy_within(&self, to: usize, bytes: usize, stream: &Stream) -> Result<()> {
        assert!(to >= bytes && to + bytes <= self.bytes, "a copy stays within its memory");
        self.device.current()?;
        // SAFETY: both ends are within the memory and do not overlap.
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

    /// Sets `bytes` bytes at this offset to `with`.
    pub fn fill(&self, at: usize, bytes: usize, with: u8, stream: &Stream) -> Result<()> {
        assert!(at + bytes <= self.bytes, "the filled range stays within its memory");
        if bytes == 0 {
            return Ok(());
        }
        self.device.current()?;
        // SAFETY: within the memory, as checked above.
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
                // SAFETY: allocated by `new` and released once. The driver waits for work that
                // still uses it.
                unsafe { (self.device.driver.free)(self.address) };
            });
        }
    }
}

/// Pinned host memory, from which a GPU copies while the program continues.
#[derive(Debug)]
pub(crate) struct Pinned<T> {
    device: Arc<Device>,
    address: usize,
    len: usize,
    of: std::marker::PhantomData<T>,
}

impl<T: Plain> Pinned<T> {
    /// Allocates room for `len` numbers, with all bytes zero.
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
            // SAFETY: `len` plain numbers, initialised, page-aligned, and borrowed as long as
            // `self`.
            len => unsafe { std::slice::from_raw_parts_mut(self.address as *mut T, len) },
        }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.device.working(|| {
                // SAFETY: allocated by `new` and released once; the owner has waited for copies.
                unsafe { (self.device.driver.free_host)(self.address) };
            });
        }
    }
}

/// A stream: work of a GPU in order.
#[derive(Debug)]
pub(crate) struct Stream {
    device: Arc<Device>,
    pub(crate) handle: Handle,
}

/// The operation that errors report while waiting for a stream.
pub(crate) const WORKING: &str = "working on rows";
/// Flag of a stream that does not wait for others.
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

    /// Waits until all work of the stream is done.
    pub fn wait(&self, what: &'static str) -> Result<()> {
        self.device.current()?;
        // SAFETY: a stream of this device.
        let code = unsafe { (self.device.driver.wait_stream)(self.handle) };
        self.device.check(code, what)
    }

    /// Reads bytes of the GPU's memory and waits for them.
    ///
    /// # Safety
    /// The bytes at `from` must be in the memory of this GPU.
    pub unsafe fn read_at(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.device.current()?;
        // SAFETY: guaranteed by the caller; the copy has finished before `bytes` can be dropped.
        let code = unsafe {
            (self.device.driver.to_host)(bytes.as_mut_ptr(), from, bytes.len(), self.handle)
        };
        self.device.check(code, "copying from the GPU")?;
        self.wait("copying from the GPU")
    }

    /// Makes later work of this stream wait for the current work of another stream.
    pub fn wait_for(&self, other: Handle) -> Result<()> {
        let event = Event::new(&self.device)?;
        let driver = self.device.driver;
        // SAFETY: the caller guaranteed that the other stream exists; an event may be destroyed
        // before it completes.
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

/// A point in a stream that can be waited for.
#[derive(Debug)]
pub(crate) struct Event {
    device: Arc<Device>,
    handle: Handle,
}

/// Flag of an event without a time stamp.
const NO_TIMING: u32 = 2;

impl Event {
    /// A completed event.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        device.current()?;
        let mut handle = 0;
        // SAFETY: the driver's own function.
        let code = unsafe { (device.driver.create_event)(&mut handle, NO_TIMING) };
        device.check(code, "making an event")?;
        Ok(Event { device: device.clone(), handle })
    }

    /// Completes when the current work of the stream is done.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.device.current()?;
        // SAFETY: an event and a stream of this device.
        let code = unsafe { (self.device.driver.record)(self.handle, stream.handle) };
        self.device.check(code, WORKING)
    }

    /// Waits until the event completes.
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
