//! The pass of one thread on a GPU.
//!
//! Rows are checked on the CPU, so that the first invalid row is known at once, and are sent to the
//! GPU unchanged. A GPU is opened when the first rows arrive. Before a plan uses a GPU, the GPU and
//! [`Scalar`] both sum some test rows. If the results differ, the GPU is refused.

use super::{Engine, Scalar, check_weights, has_enough};
use crate::error::{Error, Result};
use crate::kernel::fourier::quarter_turns;
use crate::kernel::ladder;
use crate::kernel::ladder::exponential;
use crate::kernel::table;
use crate::numeric::fixed::power_of_two;
use crate::numeric::simd::Instructions;
use crate::plan::devices::on_each;
use crate::plan::{Features, Plan};
use crate::rows::Invalid;
use crate::rows::sample::mix;
use crate::sums::{Sum, Sums};
use nysketch_cuda::{
    Device, DeviceRows, Metric, Outcome, Pass, Private, Rung, Section, Spec, Tables,
};
use std::sync::Arc;

/// Number of values checked together.
const CHECKED_VALUES: usize = 1 << 12;
/// Approximate number of operations and of rows in the test of a GPU.
const TRIED: usize = 1 << 24;
const TRIED_ROWS: usize = 300;
/// Largest and smallest quantised coordinate that a GPU represents with four digits from −128
/// to 127.
const DIGITS: [f64; 2] = [0x7f7f_7f7f_u32 as f64, -(0x8080_8080_u32 as f64)];
/// Quantised coordinates that need more digits, within the limit of any coordinate.
const MORE: [f64; 2] = [1e13, -1e10];

/// The engine of a GPU.
#[derive(Debug)]
pub struct Cuda {
    plan: Arc<Plan>,
    /// Number of the GPU. `None` divides the threads among all GPUs.
    ordinal: Option<usize>,
    instructions: Instructions,
    pass: Option<Pass>,
    /// Rows clipped to the bounds of a private plan.
    bounded: Vec<f64>,
}

impl Cuda {
    /// An engine without rows.
    pub fn new(plan: Arc<Plan>, ordinal: Option<usize>) -> Self {
        let instructions = Instructions::best();
        Cuda { plan, ordinal, instructions, pass: None, bounded: Vec::new() }
    }

    /// Opens the GPU, or all usable GPUs, and tests each one with which this plan has not been
    /// tested yet.
    pub fn prepare(&self) -> Result<Vec<Arc<Tables>>> {
        let plan = &self.plan;
        on_each(self.ordinal, |ordinal| {
            plan.on_devices.of(ordinal, || {
                let tables = Tables::new(Device::open(ordinal)?, spec(plan))?;
                if adds_as_defined(plan, &tables)? {
                    Ok(tables)
                } else {
                    Err(Error::WrongDevice { name: tables.device().name().to_string() })
                }
            })
        })
    }

    /// The pass, started when the first rows arrive.
    fn pass(&mut self) -> Result<&mut Pass> {
        if self.pass.is_none() {
            let tables = self.plan.on_devices.next(self.prepare()?);
            self.pass = Some(Pass::new(tables)?);
        }
        Ok(self.pass.as_mut().expect("was made"))
    }

    /// Number of rows before the first invalid one.
    fn valid(&self, values: &[f64], codes: &[u32]) -> usize {
        let (d, c) = (self.plan.dims(), self.plan.categories().len());
        let frame = &self.plan.frame;
        if !self.plan.is_partial() {
            if frame.are_valid(self.instructions, values) {
                return values.len() / d;
            }
            return frame.first_invalid(values).map_or(values.len() / d, |at| at / d);
        }
        for (i, row) in values.chunks_exact(d).enumerate() {
            let codes = &codes[i * c..(i + 1) * c];
            let only_missing = frame.all_invalid(row).all(|j| row[j].is_nan());
            if !(only_missing && has_enough(&self.plan, row, codes)) {
                return i;
            }
        }
        values.len() / d
    }
}

impl Engine for Cuda {
    fn add(
        &mut self,
        values: &[f64],
        codes: &[u32],
        weights: &[u32],
        _sums: &mut Sums,
    ) -> Result<usize> {
        let (d, c) = (self.plan.dims(), self.plan.categories().len());
        let rows = values.len() / d;
        check_weights(rows, weights)?;
        let together = (CHECKED_VALUES / d).max(1);
        let mut at = 0;
        while at < rows {
            let end = rows.min(at + together);
            let mut values = &values[at * d..end * d];
            let mut bounded = std::mem::take(&mut self.bounded);
            if let Some(private) = &self.plan.private {
                private.bound_rows(values, &mut bounded);
                values = &bounded;
            }
            let codes = &codes[at * c..end * c];
            let valid = self.valid(values, codes);
            let weights = weights.get(at..at + valid).unwrap_or(&[]);
            self.pass()?.push(&values[..valid * d], &codes[..valid * c], weights)?;
            self.bounded = bounded;
            at += valid;
            if at < end {
                break;
            }
        }
        Ok(at)
    }

    fn add_on_device(
        &mut self,
        rows: &DeviceRows,
        weights: &[u32],
        invalid: Invalid,
    ) -> Result<Outcome> {
        let invalid = match invalid {
            Invalid::Refuse => nysketch_cuda::Invalid::Refuse,
            Invalid::Skip => nysketch_cuda::Invalid::Skip,
        };
        Ok(self.pass()?.add_on_device(rows, weights, invalid)?)
    }

    fn row_on_device(&mut self, rows: &DeviceRows, row: u64) -> Result<Vec<f64>> {
        Ok(self.pass()?.row(rows, row)?)
    }

    fn finish(&mut self, sums: &mut Sums) -> Result<()> {
        match &mut self.pass {
            Some(pass) => Ok(take(pass, sums)?),
            None => Ok(()),
        }
    }
}

/// Adds the sums of a pass to the sums of a sketch.
fn take(pass: &mut Pass, sums: &mut Sums) -> nysketch_cuda::Result<()> {
    pass.take(|section, more| {
        let sum = match section {
            Section::Features => Sum::Features,
            Section::Coverage => Sum::Coverage,
            Section::CellRows => Sum::CellRows,
            Section::CellSum => Sum::CellSum,
            Section::CellSquare => Sum::CellSquare,
            Section::CellAbsent => Sum::CellAbsent,
            Section::CellLevels => Sum::CellLevels,
            Section::Complete => Sum::Complete,
            Section::Sum => Sum::Sum,
            Section::Outer => Sum::Outer,
        };
        sums[sum].iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    })
}

/// Describes the sums of a plan in plain numbers.
fn spec(plan: &Plan) -> Spec {
    let (kernel, collect) = (plan.kernel, plan.collect);
    let landmarks = plan.landmarks().is_some();
    let metric = match (&plan.features, kernel.metric()) {
        (Features::Fourier(..), _) => Metric::Phase,
        (_, table::Metric::Squared) => Metric::Squared,
        (_, table::Metric::Absolute) => Metric::Absolute,
    };
    let rungs = if landmarks {
        kernel.ladder(&plan.bandwidths).steps().iter().map(rung).collect()
    } else {
        plan.bandwidths.iter().map(|s| Rung::Turns { factor: quarter_turns(*s) }).collect()
    };
    let mut coverage = Vec::new();
    if collect.kernel && landmarks {
        let rates = plan.bandwidths.iter().map(|s| kernel.rate(kernel.squared(*s)));
        coverage.extend(rates.map(exponential));
    }
    let (inverse, per_unit) = plan.frame.factors();
    let points = plan.features.points();
    let needed = plan.needs_nearest() || collect.kernel;
    Spec {
        dims: plan.dims(),
        points: if needed { points.data().to_vec() } else { points.data()[..plan.dims()].to_vec() },
        metric,
        rungs: if collect.kernel { rungs } else { Vec::new() },
        coverage,
        cells: collect.cells,
        moments: collect.moments,
        least_present: plan.recipe.least_present.map(|count| count as u32),
        centre: plan.frame.centre.clone(),
        inverse,
        per_unit,
        categories: plan.categories().iter().map(|c| c.len() as u32).collect(),
        levels: match plan.level_tables() {
            Some(tables) if needed => tables.entries().to_vec(),
            _ => Vec::new(),
        },
        private: plan.private.as_ref().map(|private| Private {
            low: private.low.clone(),
            high: private.high.clone(),
            anchors: plan.anchors(),
            radius: private.radius as f64,
        }),
    }
}

fn rung(step: &ladder::Step) -> Rung {
    match *step {
        ladder::Step::Exp { factor, limit } => Rung::Exp { factor, limit },
        ladder::Step::Square { times } => Rung::Square { times },
    }
}

/// Reproducible draws for test rows.
struct Draws(u64);

impl Draws {
    /// An integer below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 = mix(self.0);
        (self.0 >> 11) as usize % n
    }
}

/// Whether a GPU gives the integers of the definition for some test rows near to and far from the
/// landmarks.
fn adds_as_defined(plan: &Arc<Plan>, tables: &Arc<Tables>) -> Result<bool> {
    let (d, m) = (plan.dims(), plan.features.points().len());
    let per_row = d * m + d * d + 20 * m * plan.bandwidths.len();
    let rows = (TRIED / per_row).clamp(2, TRIED_ROWS);
    let mut draws = Draws(plan.seed);
    let (mut values, mut codes, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        // Every other row is in the cell of the first landmark, where many rows are added at a
        // time.
        let together = i % 2 == 0;
        let (from, to) = (if together { 0 } else { draws.below(m) }, draws.below(m));
        let share = (draws.below(1 << 10) as f32 / 512.0 - 0.5) / if together { 64.0 } else { 1.0 };
        let points = plan.landmarks().map(|points| (points.row(from), points.row(to)));
        let z: Vec<f32> = match points {
            Some((a, b)) => a.iter().zip(b).map(|(a, b)| a + share * (b - a)).collect(),
            None => (0..d).map(|_| draws.below(1 << 12) as f32 / 1024.0 - 2.0).collect(),
        };
        values.extend(plan.frame.widen(&z));
        let (k, frame) = (draws.below(d), &plan.frame);
        let units = match i % 100 {
            1 | 33 => Some(DIGITS[draws.below(2)]),
            99 => Some(MORE[draws.below(2)]),
            _ => None,
        };
        if let Some(units) = units {
            values[i * d + k] =
                frame.centre[k] + frame.scale[k] * units * power_of_two(frame.exponent[k]);
        }
        codes.extend(plan.categories().iter().map(|c| draws.below(c.len()) as u32));
        weights.push(draws.below(1000) as u32);
    }
    if plan.weighting.is_none() {
        weights.clear();
    }
    let (mut expected, mut got) = (Sums::zero(plan), Sums::zero(plan));
    let mut scalar = Scalar::new(plan.clone());
    if plan.is_partial() {
        // Some rows have missing values.
        values.iter_mut().skip(d).step_by(2 * d + 1).for_each(|x| *x = f64::NAN);
    }
    // Engines never receive rows that are invalid or have too few values, so such rows are left
    // out.
    let c = plan.categories().len();
    let (mut kept, mut kept_codes, mut kept_weights) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..rows {
        let (row, levels) = (&values[i * d..(i + 1) * d], &codes[i * c..(i + 1) * c]);
        let weight = weights.get(i..i + 1).unwrap_or(&[]);
        if scalar.add(row, levels, weight, &mut expected)? == 1 {
            kept.extend_from_slice(row);
            kept_codes.extend_from_slice(levels);
            kept_weights.extend_from_slice(weight);
        }
    }
    let (mut values, codes, weights) = (kept, kept_codes, kept_weights);
    let mut pass = Pass::new(tables.clone())?;
    let mut bounded = Vec::new();
    if let Some(private) = &plan.private {
        private.bound_rows(&values, &mut bounded);
        std::mem::swap(&mut values, &mut bounded);
    }
    pass.push(&values, &codes, &weights)?;
    take(&mut pass, &mut got)?;
    Ok(got == expected)
}
