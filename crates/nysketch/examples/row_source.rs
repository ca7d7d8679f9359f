//! Your own source of rows: a ring buffer that keeps the latest readings of a sensor.
//!
//! Implement three traits: [`RowSource`] is the data, [`RowStream`] one reading of it, [`RowPart`]
//! the rows that one thread decodes. Copy this file and change `Ring` and `RingPart::decode`.
//!
//! ```console
//! $ cargo run --release -p nysketch --example row_source
//! ```

use nysketch::{
    Block, Error, FitParams, PlanParams, Result, RowPart, RowSet, RowSource, RowStream, Sketch,
    SketchParams, Task, fit, plan_for,
};
use std::sync::Arc;

/// The latest readings, stored in single precision. The newest overwrites the oldest.
struct Ring {
    columns: Vec<String>,
    /// Row-major, in memory order: the oldest reading is at `oldest`.
    values: Vec<f32>,
    oldest: usize,
}

impl Ring {
    fn new(columns: &[&str], readings: usize) -> Self {
        let values = Vec::with_capacity(readings * columns.len());
        Ring { columns: columns.iter().map(|c| c.to_string()).collect(), values, oldest: 0 }
    }

    /// Adds a reading, in place of the oldest one if the ring is full.
    fn push(&mut self, reading: &[f32]) {
        let d = self.columns.len();
        if self.values.len() < self.values.capacity() {
            self.values.extend_from_slice(reading);
        } else {
            self.values[self.oldest * d..][..d].copy_from_slice(reading);
            self.oldest = (self.oldest + 1) % self.len();
        }
    }

    fn len(&self) -> usize {
        self.values.len() / self.columns.len()
    }

    /// Returns reading number `i`, counted from the oldest.
    fn reading(&self, i: usize) -> &[f32] {
        let (d, at) = (self.columns.len(), (self.oldest + i) % self.len());
        &self.values[at * d..(at + 1) * d]
    }
}

/// Number of readings in a part. Parts must be cut in the same way every time, so this is a
/// constant and does not depend on the number of threads.
const PART_ROWS: usize = 4096;

/// The data. It is read several times: once or twice for a plan, once for a sketch. Borrowing
/// `&self` keeps the ring from changing during a reading; do not push between planning and
/// sketching either.
impl RowSource for Ring {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn open(&self, done: &RowSet) -> Result<Box<dyn RowStream<'_> + '_>> {
        if self.values.is_empty() {
            // An error of your own; the library passes it on.
            return Err(Error::source("the ring has no readings yet"));
        }
        Ok(Box::new(RingStream { ring: self, next: 0, done: done.clone() }))
    }
}

/// One reading of the data, from which threads take parts one after the other.
struct RingStream<'a> {
    ring: &'a Ring,
    /// Position of the next part.
    next: usize,
    /// Rows that an interrupted run has already processed; usually none.
    done: RowSet,
}

impl<'a> RowStream<'a> for RingStream<'a> {
    /// Only determines which rows are next, because all threads wait for this call.
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let start = self.done.first_missing(self.next as u64) as usize;
        let end = (start + PART_ROWS).min(self.ring.len());
        self.next = end;
        (start < end)
            .then(|| Box::new(RingPart { ring: self.ring, start, end }) as Box<dyn RowPart>)
    }

    /// Parts are returned from the first to the last.
    fn in_order(&self) -> bool {
        true
    }
}

/// Some readings, by their numbers. The thread that took the part converts them.
struct RingPart<'a> {
    ring: &'a Ring,
    start: usize,
    end: usize,
}

impl RowPart for RingPart<'_> {
    fn position(&self) -> u64 {
        self.start as u64
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        let readings = (self.start..self.end).flat_map(|i| self.ring.reading(i));
        Ok(Some(Block {
            // Use NaN for a missing value.
            values: readings.map(|x| f64::from(*x)).collect(),
            columns: self.ring.columns.len(),
            // Messages name the file and the row, counted from 1.
            file: Arc::from("ring"),
            first_row: self.start as u64 + 1,
            position: self.start as u64,
            // No weights and no keys.
            ..Block::default()
        }))
    }
}

/// Runs the example.
pub fn main() -> Result<()> {
    // A machine that is cold at first, then warm: the ring forgets the cold start.
    let mut ring = Ring::new(&["temperature", "pressure"], 10_000);
    for i in 0..25_000u32 {
        let (warm, wave) = (if i < 12_000 { 20.0 } else { 80.0 }, (i as f32 * 0.37).sin());
        ring.push(&[warm + wave, 3.0 + 0.1 * wave]);
    }

    let plan = Arc::new(plan_for(&ring, PlanParams::default().landmarks(50))?.plan);
    let sketch = Sketch::of(&plan, &ring, SketchParams::default().threads(4), &())?;
    println!("{} readings in {} bytes", sketch.rows(), sketch.to_bytes().len());
    for (column, (mean, variance)) in
        plan.columns.iter().zip(sketch.column_moments().expect("moments are kept"))
    {
        println!("{column:12} {mean:7.3} ± {:.3}", variance.sqrt());
    }

    // The bytes do not depend on the number of threads.
    let again = Sketch::of(&plan, &ring, SketchParams::default(), &())?;
    assert_eq!(sketch.to_bytes(), again.to_bytes());
    let model = fit(&sketch, &FitParams::new(Task::Kmeans, 2))?;
    println!("{} centres by {}", model.k(), model.report.decoder);
    assert_eq!(sketch.rows(), 10_000);
    Ok(())
}
