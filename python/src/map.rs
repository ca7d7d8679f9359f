//! Numbers for every row, in the order of the rows.

use crate::input::Input;
use nysketch::recipe::View;
use nysketch::rows::pass;
use nysketch::{Block, Error, Model, Progress, Recipe};
use pyo3::exceptions::PyMemoryError;
use std::sync::Mutex;

/// Memory for so many rows of numbers, or Python's `MemoryError`.
pub fn reserved<T>(rows: usize, width: usize) -> nysketch::Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(rows.saturating_mul(width)).map_err(|_| {
        let message = format!("cannot hold {rows} rows of {width} numbers");
        Error::source(PyMemoryError::new_err(message))
    })?;
    Ok(values)
}

/// What is found of blocks, for adding up in the order of the rows: the number of threads does not show.
#[derive(Default)]
pub struct InOrder<T>(Mutex<Vec<(u64, T)>>);

impl<T> InOrder<T> {
    /// What is found of a block.
    pub fn push(&self, block: &Block, found: T) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push((block.position, found));
    }

    /// All of it, by the position of the block.
    pub fn into_iter(self) -> impl Iterator<Item = T> {
        let mut all = self.0.into_inner().unwrap_or_else(|e| e.into_inner());
        all.sort_by_key(|(position, _)| *position);
        all.into_iter().map(|(_, found)| found)
    }
}

/// The columns of a plan or a model, and how they come from those of a table.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    pub recipe: &'a Recipe,
    pub columns: &'a [String],
}

/// `width` numbers for each row, in the order of the rows, and the number of rows. Rows must be finite.
pub fn map_rows<T: Clone + Default + Send>(
    input: &Input,
    measured: Measured<'_>,
    threads: usize,
    progress: &dyn Progress,
    width: usize,
    map: impl Fn(&Block, &mut Vec<T>) + Sync,
) -> nysketch::Result<(usize, Vec<T>)> {
    map_valid_rows(input, measured, threads, progress, width, false, map)
}

/// The same, but where `invalid` rows are allowed `map` must look at them itself.
#[allow(clippy::too_many_arguments, reason = "one call for all that maps rows")]
pub fn map_valid_rows<T: Clone + Default + Send>(
    input: &Input,
    Measured { recipe, columns }: Measured<'_>,
    threads: usize,
    progress: &dyn Progress,
    width: usize,
    invalid: bool,
    map: impl Fn(&Block, &mut Vec<T>) + Sync,
) -> nysketch::Result<(usize, Vec<T>)> {
    let source = &View::new(recipe, columns, &*input.source)?;
    // Where the number of rows is known, memory is taken once.
    let known = input.rows.unwrap_or(0) as usize;
    let all: Mutex<Vec<T>> = Mutex::new(reserved(known, width)?);
    let rows = pass(
        source,
        threads,
        progress,
        || (Vec::new(), 0),
        |(part, rows), block| {
            let unusable = |(n, row, _)| Some((n, row, Model::unusable(row)?));
            let bad = block.rows().filter(|_| !invalid).find_map(unusable);
            if let Some((number, row, j)) = bad {
                let (at, value) = (block.place(number, &columns[j]), row[j]);
                return Err(Error::source(format!("{at}: {value} cannot be used; clean the row")));
            }
            part.clear();
            map(block, part);
            *rows += block.len();
            let start = block.position as usize * width;
            let mut all = all.lock().unwrap_or_else(|e| e.into_inner());
            if all.len() < start + part.len() {
                all.resize(start + part.len(), T::default());
            }
            all[start..start + part.len()].clone_from_slice(part);
            Ok(())
        },
    )?;
    let rows = rows.iter().map(|(_, rows)| rows).sum();
    Ok((rows, all.into_inner().unwrap_or_else(|e| e.into_inner())))
}
