//! Rows far from the first landmarks: the second reading of the rows in D² sampling.

use crate::error::Result;
use crate::kernel::row::{Rows, take_holes};
use crate::kernel::search::Search;
use crate::kernel::tile::Nearest;
use crate::numeric::simd::Instructions;
use crate::pass::engine::has_enough;
use crate::pass::gpus::Gpus;
use crate::plan::Plan;
use crate::recipe::View;
use crate::rows::sample::{Reservoir, mix};
use crate::rows::{Block, Progress, RowSource, pass};

/// Draws `count` rows with probability proportional to weight · D², where D is the distance to the
/// nearest landmark of `plan`. Each row is followed by its levels, its D² and its weight.
pub fn distant_rows(
    plan: &Plan,
    count: usize,
    source: &dyn RowSource,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Reservoir> {
    distant_rows_by(Finder::search(plan), plan, count, source, threads, progress)
}

/// As [`distant_rows`], with a given search for the nearest landmark.
pub(super) fn distant_rows_by(
    finder: Finder<'_>,
    plan: &Plan,
    count: usize,
    source: &dyn RowSource,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Reservoir> {
    let width = plan.dims() + plan.categories().len() + 2;
    let reservoir = Reservoir::new(count, width, mix(plan.seed ^ 0xd2));
    let source = &View::new(&plan.recipe, &plan.columns, source)?;
    pass(
        source,
        threads,
        progress,
        || Scratch::new(finder.clone()),
        |scratch, block| offer(plan, scratch, block, &reservoir),
    )?;
    Ok(reservoir)
}

/// A search for the nearest landmarks of rows. All variants give the same bits.
#[derive(Debug, Clone)]
pub(super) enum Finder<'a> {
    /// The CPU.
    Search(Box<Search>),
    /// GPUs, for plans without categories and missing values. The search on the CPU takes over once
    /// a GPU has failed.
    Gpus(&'a Gpus, Option<Box<Search>>),
}

impl<'a> Finder<'a> {
    pub fn search(plan: &Plan) -> Self {
        Finder::Search(Box::new(plan.search(Instructions::best())))
    }

    pub fn gpus(gpus: &'a Gpus) -> Self {
        Finder::Gpus(gpus, None)
    }

    /// Best number of rows to search together.
    fn rows(&self) -> usize {
        match self {
            Finder::Search(search) => search.rows(),
            Finder::Gpus(gpus, _) => gpus.rows(),
        }
    }

    fn nearest(&mut self, plan: &Plan, rows: Rows<'_>, nearest: &mut Nearest) {
        let search = match self {
            Finder::Search(search) => search,
            Finder::Gpus(gpus, _) if gpus.nearest(rows.z, nearest).is_ok() => return,
            Finder::Gpus(_, search) => {
                search.get_or_insert_with(|| Box::new(plan.search(Instructions::best())))
            }
        };
        search.block(rows, nearest);
    }
}

/// Scratch memory of one thread.
struct Scratch<'a> {
    finder: Finder<'a>,
    nearest: Nearest,
    z: Vec<f32>,
    present: Vec<f32>,
    row: Vec<f64>,
}

impl<'a> Scratch<'a> {
    fn new(finder: Finder<'a>) -> Self {
        Scratch {
            finder,
            nearest: Nearest::default(),
            z: Vec::new(),
            present: Vec::new(),
            row: Vec::new(),
        }
    }
}

/// Offers the valid rows of a block to the reservoir.
fn offer(
    plan: &Plan,
    scratch: &mut Scratch<'_>,
    block: &Block,
    reservoir: &Reservoir,
) -> Result<()> {
    let (d, c) = (plan.dims(), plan.categories().len());
    let at_once = scratch.finder.rows();
    for (chunk, rows) in block.values.chunks(at_once * d).enumerate() {
        scratch.z.clear();
        for row in rows.chunks_exact(d) {
            plan.frame.narrow(row, &mut scratch.z);
        }
        let codes = &block.codes[chunk * at_once * c..][..rows.len() / d * c];
        // Distances use only the values that a row has.
        scratch.present.clear();
        if plan.is_partial() && scratch.z.iter().any(|z| z.is_nan()) {
            take_holes(&mut scratch.z, &mut scratch.present);
        }
        let framed = Rows { z: &scratch.z, codes, present: &scratch.present };
        scratch.finder.nearest(plan, framed, &mut scratch.nearest);
        for (i, row) in rows.chunks_exact(d).enumerate() {
            let at = chunk * at_once + i;
            let codes = &codes[i * c..(i + 1) * c];
            let weight = match plan.weighting {
                Some(_) => block.weights.get(at).copied().unwrap_or(f64::NAN),
                None => 1.0,
            };
            let d2 = f64::from(scratch.nearest.distance[i]);
            let steer = weight * d2;
            // The survey has already refused or counted invalid rows; here they are ignored.
            let usable = row.iter().all(|x| x.is_finite() || plan.is_partial() && x.is_nan());
            if steer > 0.0 && steer.is_finite() && usable && has_enough(plan, row, codes) {
                scratch.row.clear();
                scratch.row.extend_from_slice(row);
                scratch.row.extend(codes.iter().map(|code| f64::from(*code)));
                scratch.row.push(d2);
                reservoir.offer(block.position + at as u64, steer, &scratch.row, weight);
            }
        }
    }
    Ok(())
}
