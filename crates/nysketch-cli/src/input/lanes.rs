//! One reading of the input by many threads.
//!
//! What must be read in order, such as a CSV file or a row group, is a *lane*. A part is a lane on
//! loan: the thread that took it reads the next rows, puts the lane back, and only then decodes
//! them. Where all lanes are out, another row group or file is opened, so that there are never more
//! lanes than threads, one thread alone reads in order, and a table of one row group still keeps every
//! thread busy.

use super::{Batch, Input, InputFile};
use nysketch::{Block, Result, RowPart, RowSet, RowStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Rows that are read one after the other.
pub trait Lane: Send {
    /// The next rows, or `None` at the end.
    fn read(&mut self) -> Result<Option<Box<dyn Raw>>>;
}

/// Rows as they were read.
pub trait Raw: Send {
    /// How many.
    fn rows(&self) -> u64;
    /// Numbers and text; the first row has this number in its file.
    fn decode(self: Box<Self>, first_row: u64) -> Result<Batch>;
}

/// A lane that is open.
struct Open {
    lane: Box<dyn Lane>,
    file: usize,
    /// Number of the next row in its file, from 1.
    next_row: u64,
    position: u64,
    /// Position after its last row, where the file tells.
    end: Option<u64>,
}

/// A lane that nobody has opened yet.
struct Closed {
    file: usize,
    segment: usize,
    first_row: u64,
    position: u64,
    rows: Option<u64>,
}

enum State {
    Open(Open),
    Closed(Closed),
}

#[derive(Default)]
struct Pool {
    free: Vec<Open>,
    on_loan: usize,
    /// Where a lane of unknown length ended.
    end: Option<u64>,
}

#[derive(Default)]
struct Shared {
    pool: Mutex<Pool>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The parts of an input that are not taken yet.
pub struct InputStream<'a> {
    input: &'a Input,
    done: Arc<RowSet>,
    in_order: bool,
    shared: Arc<Shared>,
    /// File and segment of the next lane.
    file: usize,
    segment: usize,
    /// Number of its first row in its file.
    first_row: u64,
    /// Its position, unless that is known only when the lane before it has ended.
    position: Option<u64>,
}

impl<'a> InputStream<'a> {
    /// With `in_order` parts are handed out in the order of the rows, to however many threads.
    pub fn new(input: &'a Input, done: &RowSet, in_order: bool) -> Self {
        InputStream {
            input,
            done: Arc::new(done.clone()),
            in_order,
            shared: Arc::default(),
            file: 0,
            segment: 0,
            first_row: 1,
            position: Some(0),
        }
    }

    /// The next part, whose rows may turn out to be none.
    pub fn next(&mut self) -> Option<InputPart<'a>> {
        let shared = self.shared.clone();
        let mut pool = shared.lock();
        loop {
            let first = (0..pool.free.len()).min_by_key(|i| pool.free[*i].position);
            let state = match first {
                Some(i) => Some(State::Open(pool.free.swap_remove(i))),
                None if self.in_order && pool.on_loan > 0 => None,
                None => self.next_lane(&mut pool).map(State::Closed),
            };
            if let Some(state) = state {
                pool.on_loan += 1;
                return Some(InputPart {
                    input: self.input,
                    done: self.done.clone(),
                    loan: Loan { shared: self.shared.clone(), returned: false },
                    state,
                });
            }
            if pool.on_loan == 0 {
                return None;
            }
            pool = shared.changed.wait(pool).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn next_lane(&mut self, pool: &mut Pool) -> Option<Closed> {
        loop {
            if self.position.is_none() {
                self.position = pool.end.take();
            }
            let position = self.position?;
            let file = self.input.files.get(self.file)?;
            let Some(rows) = file.format.segment(self.segment) else {
                (self.file, self.segment, self.first_row) = (self.file + 1, 0, 1);
                continue;
            };
            let (first_row, segment) = (self.first_row, self.segment);
            self.segment += 1;
            self.position = rows.map(|n| position + n);
            self.first_row += rows.unwrap_or(0);
            let all_done = rows.is_some_and(|n| self.done.first_missing(position) >= position + n);
            if !all_done {
                return Some(Closed { file: self.file, segment, first_row, position, rows });
            }
            self.input.meter.skip(file, rows.unwrap_or(0));
        }
    }
}

impl<'a> RowStream<'a> for InputStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let part = self.next()?;
        Some(Box::new(part))
    }
}

/// A lane on loan; one that is not put back is closed.
pub struct InputPart<'a> {
    input: &'a Input,
    done: Arc<RowSet>,
    loan: Loan,
    state: State,
}

struct Loan {
    shared: Arc<Shared>,
    returned: bool,
}

impl Loan {
    fn put_back(&mut self, lane: Option<Open>, end: Option<u64>) {
        self.returned = true;
        let mut pool = self.shared.lock();
        pool.on_loan -= 1;
        pool.free.extend(lane);
        pool.end = pool.end.or(end);
        self.shared.changed.notify_all();
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.returned {
            self.put_back(None, None);
        }
    }
}

impl InputPart<'_> {
    /// The next rows of the lane that are not done, with the columns carried along.
    pub fn decode_batch(mut self) -> Result<Option<Batch>> {
        let mut open = match self.state {
            State::Open(open) => open,
            State::Closed(closed) => open_lane(self.input, closed, &self.done)?,
        };
        let file: &InputFile = &self.input.files[open.file];
        loop {
            let Some(raw) = open.lane.read()? else {
                if open.end.is_some_and(|end| end != open.position) {
                    return Err(nysketch::Error::source(format!(
                        "{} has not as many rows as it says; it is damaged, or was changed while it was read",
                        file.name
                    )));
                }
                let end = open.end.is_none().then_some(open.position);
                self.loan.put_back(None, end);
                return Ok(None);
            };
            let (rows, first_row, position) = (raw.rows(), open.next_row, open.position);
            open.next_row += rows;
            open.position += rows;
            let missing = self.done.first_missing(position);
            if missing >= position + rows {
                continue;
            }
            if missing > position {
                // Parts are cut as they were when the checkpoint was saved, or rows would count twice.
                return Err(nysketch::Error::source(format!(
                    "{}: the checkpoint does not fit; delete it to start anew",
                    file.name
                )));
            }
            self.loan.put_back(Some(open), None);
            let mut batch = raw.decode(first_row)?;
            if batch.block.len() as u64 != rows {
                let (name, found) = (&file.name, batch.block.len());
                return Err(nysketch::Error::source(format!(
                    "{name}: {rows} rows were counted from row {first_row} on, but {found} were read"
                )));
            }
            batch.block.file = file.name.clone();
            batch.block.first_row = first_row;
            batch.block.position = position;
            return Ok(Some(batch));
        }
    }
}

fn open_lane(input: &Input, closed: Closed, done: &RowSet) -> Result<Open> {
    let Closed { file, segment, first_row, position, rows } = closed;
    // Only whole parts from the start on can be done in a lane that knows its length.
    let skip = rows.map_or(0, |_| done.first_missing(position) - position);
    let source = &input.files[file];
    input.meter.skip(source, skip);
    let lane = source.format.open_lane(segment, skip, source, &input.meter)?;
    Ok(Open {
        lane,
        file,
        next_row: first_row + skip,
        position: position + skip,
        end: rows.map(|n| position + n),
    })
}

impl RowPart for InputPart<'_> {
    fn position(&self) -> u64 {
        match &self.state {
            State::Open(open) => open.position,
            State::Closed(closed) => closed.position,
        }
    }

    fn decode(self: Box<Self>) -> Result<Option<Block>> {
        Ok(self.decode_batch()?.map(|batch| batch.block))
    }
}
