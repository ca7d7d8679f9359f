//! Computes numbers for every row, in row order.

use crate::input::Input;
use nysketch::recipe::View;
use nysketch::rows::pass;
use nysketch::{Block, Error, Model, Plan, Progress, Recipe};
use pyo3::exceptions::PyMemoryError;
use std::sync::Mutex;

/// Reserves memory for this number of rows, or returns Python's `MemoryError`.
pub fn reserved<T>(rows: usize, width: usize) -> nysketch::Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(rows.saturating_mul(width)).map_err(|_| {
        let message = format!("cannot hold {rows} rows of {width} numbers");
        Error::source(PyMemoryError::new_err(message))
    })?;
    Ok(values)
}

/// Results of blocks, returned in row order, so that their sum does not depend on the number of
/// threads.
#[derive(Default)]
pub struct InOrder<T>(Mutex<Vec<(u64, T)>>);

impl<T> InOrder<T> {
    /// Adds the result of a block.
    pub fn push(&self, block: &Block, found: T) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push((block.position, found));
    }

    /// Returns all results, ordered by the position of the block.
    pub fn into_iter(self) -> impl Iterator<Item = T> {
        let mut all = self.0.into_inner().unwrap_or_else(|e| e.into_inner());
        all.sort_by_key(|(position, _)| *position);
        all.into_iter().map(|(_, found)| found)
    }
}

/// The columns of a plan or a model, and their preprocessing.
#[derive(Clone, Copy)]
pub struct Measured<'a> {
    pub recipe: &'a Recipe,
    pub columns: &'a [String],
}

impl<'a> From<&'a Model> for Measured<'a> {
    fn from(model: &'a Model) -> Self {
        Measured { recipe: &model.recipe, columns: &model.columns }
    }
}

impl<'a> From<&'a Plan> for Measured<'a> {
    fn from(plan: &'a Plan) -> Self {
        Measured { recipe: &plan.recipe, columns: &plan.columns }
    }
}

/// Returns the first unusable column of a row of numbers and levels, if there is one.
pub type Unusable<'a> = &'a (dyn Fn(&[f64], &[u32]) -> Option<usize> + Sync);

/// Computes `width` numbers for each row, in row order, and returns them with the number of rows.
/// Unusable rows are an error; if `unusable` is not given, `map` must check the rows itself.
pub fn map_rows<T: Clone + Default + Send>(
    input: &Input,
    Measured { recipe, columns }: Measured<'_>,
    threads: usize,
    progress: &dyn Progress,
    width: usize,
    unusable: Option<Unusable<'_>>,
    map: impl Fn(&Block, &mut Vec<T>) + Sync,
) -> nysketch::Result<(usize, Vec<T>)> {
    let source = &View::new(recipe, columns, &*input.source)?;
    // If the number of rows is known, memory is allocated once.
    let known = input.rows.unwrap_or(0) as usize;
    let all: Mutex<Vec<T>> = Mutex::new(reserved(known, width)?);
    let rows = pass(
        source,
        threads,
        progress,
        || (Vec::new(), 0),
        |(part, rows), block| {
            let wide = recipe.categories.len();
            let bad = unusable.and_then(|unusable| {
                block.rows().enumerate().find_map(|(i, (number, row, _))| {
                    Some((number, row, unusable(row, &block.codes[i * wide..(i + 1) * wide])?))
                })
            });
            if let Some((number, row, j)) = bad {
                let (at, value) = (block.place(number, &columns[j]), row[j]);
                let how = if value.is_nan() && recipe.least_present.is_none() {
                    "the value is missing; clean the row, or plan with `missing=partial`".into()
                } else {
                    format!("{value} cannot be used; clean the row")
                };
                return Err(Error::source(format!("{at}: {how}")));
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
