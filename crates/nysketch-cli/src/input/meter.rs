//! How many bytes of the input have been read, for the progress bar.

use super::InputFile;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the bytes of the reading at hand.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    readings: AtomicU64,
}

impl Meter {
    /// A new reading starts.
    pub fn restart(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.readings.fetch_add(1, Ordering::Relaxed);
    }

    /// So many bytes more.
    pub fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Rows that need not be read count as read.
    pub fn skip(&self, file: &InputFile, rows: u64) {
        if let Some(total) = file.schema.rows {
            self.add((file.bytes as f64 * (rows as f64 / total.max(1) as f64)) as u64);
        }
    }

    /// Bytes so far, and which reading it is.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.readings.load(Ordering::Relaxed))
    }

    /// A source whose bytes are counted.
    pub fn count<R>(self: &Arc<Self>, source: R) -> Counted<R> {
        Counted { source, meter: self.clone() }
    }
}

/// See [`Meter::count`].
pub struct Counted<R> {
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
