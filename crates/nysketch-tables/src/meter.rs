//! The number of bytes read, for a progress bar.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes of the current pass.
///
/// ```
/// use nysketch_tables::{Dataset, ReadOptions};
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("x.csv");
/// std::fs::write(&file, "a\n1\n2\n")?;
/// let table = Dataset::open([file], &ReadOptions::default())?;
/// table.read_all()?;
/// assert_eq!(table.meter().bytes(), 6);
/// assert_eq!(table.meter().readings(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    readings: AtomicU64,
}

impl Meter {
    /// Starts a new pass.
    pub(crate) fn restart(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.readings.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of bytes read in this pass so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of passes started.
    pub fn readings(&self) -> u64 {
        self.readings.load(Ordering::Relaxed)
    }

    /// Wraps a source and counts its bytes.
    pub(crate) fn count<R>(self: &Arc<Self>, source: R) -> Counted<R> {
        Counted { source, meter: self.clone() }
    }
}

/// See [`Meter::count`].
pub(crate) struct Counted<R> {
    source: R,
    meter: Arc<Meter>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.meter.add(n as u64);
        Ok(n)
    }
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}
