//! One reading of a dataset by many threads.
//!
//! A *track* must be read in order: a csv file or a row group, for example. A part is a track on
//! loan. The thread that took it reads the next rows, returns the track, and only then decodes the
//! rows. If all tracks are on loan, another row group or file is opened. There are therefore never
//! more tracks than threads, a single thread reads in order, and a table with one row group still
//! keeps every thread busy.

use crate::batch::Batch;
use crate::error::Error;
use crate::meter::Meter;
use crate::table_file::TableFile;
use crate::track::Track;
use nysketch_core::{Block, RowPart, RowSet, RowStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// An open track.
struct Open {
    track: Box<dyn Track>,
    file: usize,
    /// Number of the next row in its file, from 1.
    next_row: u64,
    position: u64,
    /// Position after its last row, if the file states it.
    end: Option<u64>,
}

/// A track that is not open yet.
struct Closed {
    file: usize,
    /// Index of the track in its file.
    number: usize,
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
    /// Position at which a track of unknown length ended.
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

/// The parts of a dataset that have not been taken yet.
pub struct DatasetStream<'a> {
    files: &'a [TableFile],
    meter: &'a Arc<Meter>,
    done: Arc<RowSet>,
    in_order: bool,
    shared: Arc<Shared>,
    /// File and index of the next track.
    file: usize,
    track: usize,
    /// Number of its first row in its file.
    first_row: u64,
    /// Its position, or `None` until the previous track has ended.
    position: Option<u64>,
}

impl<'a> DatasetStream<'a> {
    /// Starts a reading. With `in_order`, parts are handed out in row order, whatever the number of
    /// threads.
    pub fn new(
        files: &'a [TableFile],
        meter: &'a Arc<Meter>,
        done: &RowSet,
        in_order: bool,
    ) -> Self {
        DatasetStream {
            files,
            meter,
            done: Arc::new(done.clone()),
            in_order,
            shared: Arc::default(),
            file: 0,
            track: 0,
            first_row: 1,
            position: Some(0),
        }
    }

    /// Returns the next part. It may turn out to have no rows left.
    pub fn next(&mut self) -> Option<DatasetPart<'a>> {
        let shared = self.shared.clone();
        let mut pool = shared.lock();
        loop {
            let first = (0..pool.free.len()).min_by_key(|i| pool.free[*i].position);
            let state = match first {
                Some(i) => Some(State::Open(pool.free.swap_remove(i))),
                None if self.in_order && pool.on_loan > 0 => None,
                None => self.next_track(&mut pool).map(State::Closed),
            };
            if let Some(state) = state {
                pool.on_loan += 1;
                return Some(DatasetPart {
                    files: self.files,
                    meter: self.meter,
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

    fn next_track(&mut self, pool: &mut Pool) -> Option<Closed> {
        loop {
            if self.position.is_none() {
                self.position = pool.end.take();
            }
            let position = self.position?;
            let file = self.files.get(self.file)?;
            let Some(rows) = file.reader.rows_of(self.track) else {
                (self.file, self.track, self.first_row) = (self.file + 1, 0, 1);
                continue;
            };
            let (first_row, number) = (self.first_row, self.track);
            self.track += 1;
            self.position = rows.map(|n| position + n);
            self.first_row += rows.unwrap_or(0);
            let all_done = rows.is_some_and(|n| self.done.first_missing(position) >= position + n);
            if !all_done {
                return Some(Closed { file: self.file, number, first_row, position, rows });
            }
            self.meter.add(file.bytes_of(rows.unwrap_or(0)));
        }
    }
}

impl<'a> RowStream<'a> for DatasetStream<'a> {
    fn next_part(&mut self) -> Option<Box<dyn RowPart + 'a>> {
        let part = self.next()?;
        Some(Box::new(part))
    }
}

/// A track on loan. A track that is not returned is closed.
pub struct DatasetPart<'a> {
    files: &'a [TableFile],
    meter: &'a Arc<Meter>,
    done: Arc<RowSet>,
    loan: Loan,
    state: State,
}

struct Loan {
    shared: Arc<Shared>,
    returned: bool,
}

impl Loan {
    fn put_back(&mut self, track: Option<Open>, end: Option<u64>) {
        self.returned = true;
        let mut pool = self.shared.lock();
        pool.on_loan -= 1;
        pool.free.extend(track);
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

impl DatasetPart<'_> {
    /// Returns the next rows of the track that are not done, with the kept columns.
    pub fn decode_batch(self) -> nysketch_core::Result<Option<Batch>> {
        let file = match &self.state {
            State::Open(open) => &self.files[open.file],
            State::Closed(closed) => &self.files[closed.file],
        };
        // If the file changes during reading, rows may be cut or mixed. That change is then the
        // error.
        self.next_batch().map_err(|error| file.check_unchanged().err().map_or(error, Into::into))
    }

    fn next_batch(mut self) -> nysketch_core::Result<Option<Batch>> {
        let mut open = match self.state {
            State::Open(open) => open,
            State::Closed(closed) => open_track(self.files, self.meter, closed, &self.done)?,
        };
        let file: &TableFile = &self.files[open.file];
        loop {
            let Some(raw) = open.track.read()? else {
                file.check_unchanged()?;
                if open.end.is_some_and(|end| end != open.position) {
                    let how = "holds fewer rows than its header declares; it is damaged";
                    return Err(Error::damaged(&file.file.name, how).into());
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
                // Parts must start and end where they did when the checkpoint was saved; otherwise
                // rows would count twice.
                return Err(nysketch_core::Error::source(format!(
                    "{}: the checkpoint does not match this file; delete it to start again",
                    file.file.name
                )));
            }
            self.loan.put_back(Some(open), None);
            let mut batch = raw.decode(first_row)?;
            if batch.block.len() as u64 != rows {
                let (name, found) = (&file.file.name, batch.block.len());
                return Err(nysketch_core::Error::source(format!(
                    "{name}: {rows} rows were counted from row {first_row} on, but {found} were \
                     read"
                )));
            }
            batch.block.file = file.file.name.clone();
            batch.block.first_row = first_row;
            batch.block.position = position;
            return Ok(Some(batch));
        }
    }
}

fn open_track(
    files: &[TableFile],
    meter: &Arc<Meter>,
    closed: Closed,
    done: &RowSet,
) -> nysketch_core::Result<Open> {
    let Closed { file, number, first_row, position, rows } = closed;
    // If the length of a track is known, the rows that are done are whole parts from its start.
    let skip = rows.map_or(0, |_| done.first_missing(position) - position);
    let source = &files[file];
    meter.add(source.bytes_of(skip));
    let track = source.reader.track(number, skip, &source.places, meter)?;
    source.check_unchanged()?;
    Ok(Open {
        track,
        file,
        next_row: first_row + skip,
        position: position + skip,
        end: rows.map(|n| position + n),
    })
}

impl RowPart for DatasetPart<'_> {
    fn position(&self) -> u64 {
        match &self.state {
            State::Open(open) => open.position,
            State::Closed(closed) => closed.position,
        }
    }

    fn decode(self: Box<Self>) -> nysketch_core::Result<Option<Block>> {
        Ok(self.decode_batch()?.map(|batch| batch.block))
    }
}
