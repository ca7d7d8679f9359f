//! Contents and quality of a plan or a sketch.
//!
//! The field names are those of `nysketch inspect --json` and of `nysketch.inspect` in Python. All
//! eigendecompositions come from the [`Context`], so that each is computed once for any number of
//! results.

use nysketch_core::error::{Error, Result};
use nysketch_core::kernel::nystrom::DECODING_CUTOFF;
use nysketch_core::kernel::nystrom::{CUTOFF, NystromMap};
use nysketch_core::numeric::points::Points;
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::sampling::Sampling;
use nysketch_core::plan::{Features, Plan};
use nysketch_core::sketch::Sketch;
use nysketch_core::sketch::columns::ColumnSummary;
use nysketch_core::sums::Sum;
use nysketch_learn::decoder::Context;
use nysketch_learn::decoder::spectrum::Spectrum;
use nysketch_learn::decoder::{Explanation, noise_floor};
use nysketch_learn::model::Model;
use nysketch_learn::theory::{Theory, TheoryParams};
use serde::Serialize;

/// The column of row weights, for display.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weights {
    /// Name of the column.
    pub column: String,
    /// The weight that counts as one row.
    pub unit: f64,
}

/// The measurement of a plan.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PlanSummary {
    /// Names of the columns, in order.
    pub columns: Vec<String>,
    /// `nystrom`, `fourier` or `adapted-fourier`.
    pub features: &'static str,
    /// Name of the kernel.
    pub kernel: &'static str,
    /// Number of landmarks; `None` for Fourier features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landmarks: Option<usize>,
    /// Method that chose the landmarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<&'static str>,
    /// Number of frequencies; `None` for plans with landmarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequencies: Option<usize>,
    /// Bandwidths σ², widest first.
    pub bandwidths: Vec<f64>,
    /// Names of the kept sums.
    pub collect: Vec<&'static str>,
    /// Number of retained rows available.
    pub witnesses: usize,
    /// Digest of the plan's retained rows, here or in another file; `None` if the plan has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witnesses_digest: Option<String>,
    /// SHA-256 of the plan's file without the rows of its sections.
    pub fingerprint: String,
}

/// Number of raw rows in a file, by kind. The same row may be counted more than once.
///
/// ```
/// use nysketch::inspect::RawRows;
/// use nysketch::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(1, (0..900).map(f64::from).collect())?;
/// let plan = plan_for(&table, PlanParams::default().landmarks(50).witnesses(100))?.plan;
/// let raw = RawRows::of_plan(&plan);
/// assert_eq!((raw.landmarks, raw.witnesses, raw.total()), (50, 100, 150));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRows {
    /// Landmarks chosen from the rows.
    pub landmarks: usize,
    /// Retained rows.
    pub witnesses: usize,
    /// Cells whose rows are all equal. Their sums reveal the row.
    pub single_row_cells: usize,
}

impl RawRows {
    /// The raw rows of a plan.
    pub fn of_plan(plan: &Plan) -> Self {
        let landmarks = match &plan.features {
            // The landmarks of a private plan are public.
            _ if plan.private.is_some() => 0,
            Features::Nystrom(_, Sampling::Given) | Features::Fourier(..) => 0,
            Features::Nystrom(landmarks, _) => landmarks.len(),
        };
        let witnesses = plan.witness_rows().map_or(0, Points::len);
        RawRows { landmarks, witnesses, single_row_cells: 0 }
    }

    /// The raw rows of a sketch.
    pub fn of_sketch(sketch: &Sketch) -> Self {
        let single_row_cells = cell_counts(sketch).single_row_cells;
        RawRows { single_row_cells, ..Self::of_plan(sketch.plan()) }
    }

    /// The sum of all kinds.
    pub fn total(self) -> usize {
        self.landmarks + self.witnesses + self.single_row_cells
    }
}

impl PlanSummary {
    /// Summarises a plan.
    pub fn new(plan: &Plan) -> Self {
        let points = plan.features.points().len();
        let (landmarks, sampling, frequencies) = match &plan.features {
            Features::Nystrom(_, sampling) => (Some(points), Some(sampling.name()), None),
            Features::Fourier(..) => (None, None, Some(points)),
        };
        PlanSummary {
            columns: plan.columns.clone(),
            features: plan.features.name(),
            kernel: plan.kernel.name(),
            landmarks,
            sampling,
            frequencies,
            bandwidths: plan.bandwidths.clone(),
            collect: plan.collect.names(),
            witnesses: plan.witness_rows().map_or(0, Points::len),
            witnesses_digest: plan.witnesses.as_ref().map(|w| w.digest().to_string()),
            fingerprint: plan.fingerprint(),
        }
    }
}

/// Rank and condition of the kernel matrix of the landmarks at each bandwidth; empty if that would
/// take long.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ranks {
    /// Numerical rank.
    pub rank: Vec<usize>,
    /// Ratio of the largest eigenvalue to the smallest one above the cut-off.
    pub condition: Vec<f64>,
}

impl Ranks {
    fn push(&mut self, map: &NystromMap) {
        self.rank.push(map.rank());
        self.condition.push(map.condition());
    }
}

/// Effective dimensions and noise at each bandwidth.
#[derive(Debug, Clone, Serialize)]
pub struct Dimensions {
    /// λ = 1/√n, the regularisation of the dimensions.
    pub lambda: f64,
    /// N(λ), estimated from the landmarks.
    pub effective_dimension: Vec<f64>,
    /// N_∞(λ), estimated from the landmarks.
    pub largest_leverage: Vec<f64>,
    /// Expected distance between the sketch of this number of rows and the sketch of their
    /// distribution; empty without kernel sums.
    pub noise_floor: Vec<f64>,
}

/// The folds of a sketch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldSummary {
    /// Number of folds.
    pub count: u32,
    /// The column that assigns rows to folds; `None` if rows are assigned by content.
    pub by: Option<String>,
    /// Number of rows in the smallest fold.
    pub smallest: u64,
    /// Number of rows in the largest fold.
    pub largest: u64,
}

impl FoldSummary {
    /// Summarises the folds of a sketch, if it has any.
    pub fn of(sketch: &Sketch) -> Option<Self> {
        let folds = sketch.folds()?;
        let (smallest, largest) = folds.extremes();
        let (count, by) = (folds.rule().count(), folds.rule().key().map(str::to_string));
        Some(FoldSummary { count, by, smallest, largest })
    }
}

/// Numbers of cells with few rows.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CellCounts {
    /// Cells whose rows are all equal, so that the file reveals their values. If a cell has
    /// different rows, each of its folds with equal rows counts.
    pub single_row_cells: usize,
    /// Cells without rows.
    pub empty_cells: usize,
}

/// Contents of a plan or a sketch.
///
/// ```
/// use nysketch::{Context, Inspection, Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 1)?.rows(0, 900).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(50))?.plan);
/// assert_eq!(Inspection::of_plan(&plan)?.ranks.unwrap().rank.len(), 3);
/// let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let found = Inspection::of_sketch(&Context::new(&sketch))?;
/// assert_eq!((found.kind, found.rows, found.raw_rows >= 50), ("sketch", Some(900), true));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// `plan` or `sketch`.
    pub kind: &'static str,
    /// Number of rows, weights counted; `None` for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Rows skipped as invalid; `None` for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Number of complete rows, if the plan allows missing values. Kernel sums and moments use only
    /// complete rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<u64>,
    /// The folds of the sketch, if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<FoldSummary>,
    /// The measurement.
    #[serde(flatten)]
    pub plan: PlanSummary,
    /// The measured columns of the table and their preprocessing. For a sketch, with the exact
    /// shares of levels and of missing values.
    pub roles: Vec<ColumnSummary>,
    /// The seed that chose the landmarks or frequencies.
    pub seed: u64,
    /// The divisor of each column.
    pub scale: Vec<f64>,
    /// The column of row weights.
    pub weights: Option<Weights>,
    /// Rank and condition of the kernel matrix; `None` for Fourier features.
    #[serde(flatten)]
    pub ranks: Option<Ranks>,
    /// Upper bounds on the share of the data that the landmarks miss, one per bandwidth; `None` for
    /// Fourier features, empty without rows or kernel sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Vec<f64>>,
    /// Effective dimensions and noise; `None` if there are no rows, rows are weighted (the noise of
    /// weights is unknown), or there are too many landmarks.
    #[serde(flatten)]
    pub dimensions: Option<Dimensions>,
    /// Numbers of cells with few rows; `None` if cells are not kept.
    #[serde(flatten)]
    pub cells: Option<CellCounts>,
    /// Upper bound on the number of raw rows in the file: landmarks chosen from the rows, retained
    /// rows, and cells whose rows are all equal. The same row may be counted more than once. See
    /// [`RawRows`].
    pub raw_rows: usize,
    /// The test of a mixture against the sketch, if a mixture was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Explanation>,
    /// The values of the paper's theorems, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theory: Option<Theory>,
}

impl Inspection {
    /// Inspects a plan.
    pub fn of_plan(plan: &Plan) -> Result<Self> {
        let mut found = Self::new(plan, "plan");
        if let Some(landmarks) = plan.landmark_space() {
            let mut ranks = Ranks::default();
            for &sigma2 in plan.bandwidths.iter().filter(|_| few(plan)) {
                ranks.push(&NystromMap::new(&landmarks, plan.kernel.at(sigma2), CUTOFF)?);
            }
            found.ranks = Some(ranks);
            found.missed = Some(Vec::new());
        }
        Ok(found)
    }

    /// Inspects a sketch.
    pub fn of_sketch(context: &Context<'_>) -> Result<Self> {
        let (sketch, plan) = (context.sketch(), context.plan());
        let mut found = Self::new(plan, "sketch");
        found.rows = Some(sketch.rows());
        // A private sketch does not record them.
        found.skipped = plan.private.is_none().then(|| sketch.skipped());
        found.complete = plan.is_partial().then(|| sketch.complete_rows());
        found.folds = FoldSummary::of(sketch);
        found.roles = ColumnSummary::of_sketch(sketch);
        if plan.landmarks().is_none() {
            return Ok(found);
        }
        found.missed = Some(if sketch.rows() > 0 { sketch.missed() } else { Vec::new() });
        let mut ranks = Ranks::default();
        if few(plan) {
            // The noise of rows with weights is not known.
            let is_known = sketch.rows() > 0 && plan.weighting.is_none();
            found.dimensions = is_known.then(|| Dimensions::none(sketch));
            for rung in 0..plan.bandwidths.len() {
                look_at(context, rung, &mut ranks, found.dimensions.as_mut())?;
            }
        }
        found.ranks = Some(ranks);
        if plan.collect.cells {
            found.cells = Some(cell_counts(sketch));
            found.raw_rows = RawRows::of_sketch(sketch).total();
        }
        Ok(found)
    }

    fn new(plan: &Plan, kind: &'static str) -> Self {
        let weights = plan.weighting.as_ref();
        Inspection {
            kind,
            rows: None,
            skipped: None,
            complete: None,
            folds: None,
            plan: PlanSummary::new(plan),
            roles: ColumnSummary::of_plan(plan),
            seed: plan.seed,
            scale: plan.frame.scale.clone(),
            weights: weights.map(|w| Weights { column: w.column.clone(), unit: w.unit }),
            ranks: None,
            missed: None,
            dimensions: None,
            cells: None,
            raw_rows: RawRows::of_plan(plan).total(),
            model: None,
            theory: None,
        }
    }
}

/// Optional parts of an inspection.
#[derive(Debug, Clone, Default)]
pub struct InspectParams<'a> {
    /// A mixture to test against the sketch.
    pub model: Option<&'a Model>,
    /// Parameters of the paper's theorems.
    pub theory: Option<TheoryParams>,
}

/// Inspects a sketch, or a plan if there is no sketch, with the requested optional parts.
pub fn inspect(
    plan: &Plan,
    sketch: Option<&Sketch>,
    params: &InspectParams<'_>,
) -> Result<Inspection> {
    let wanted = [("`model`", params.model.is_some()), ("`theory`", params.theory.is_some())];
    let wanted = wanted.iter().find(|w| w.1).map(|w| w.0);
    let sketch = match (sketch, wanted) {
        (Some(sketch), Some(option)) if sketch.rows() == 0 => {
            return Err(Error::NeedsSketch { option, got: "one without rows" });
        }
        (None, Some(option)) => return Err(Error::NeedsSketch { option, got: "a plan" }),
        (None, None) => return Inspection::of_plan(plan),
        (Some(sketch), _) => sketch,
    };
    let context = Context::new(sketch);
    let mut found = Inspection::of_sketch(&context)?;
    if let Some(model) = params.model {
        found.model = Some(context.explanation(model)?);
    }
    if let Some(theory) = &params.theory {
        found.theory = Some(context.theory(theory)?);
    }
    Ok(found)
}

/// Whether an eigendecomposition per bandwidth takes a few seconds at most.
fn few(plan: &Plan) -> bool {
    Work::bandwidths(plan.features.points().len(), plan.bandwidths.len()).is_quick()
}

impl Dimensions {
    /// Those of no bandwidth.
    fn none(sketch: &Sketch) -> Self {
        let lambda = 1.0 / (sketch.complete_rows() as f64).sqrt();
        let (effective_dimension, largest_leverage) = (Vec::new(), Vec::new());
        Dimensions { lambda, effective_dimension, largest_leverage, noise_floor: Vec::new() }
    }

    fn push(&mut self, sketch: &Sketch, rung: usize, map: &NystromMap, spectrum: &Spectrum) {
        self.effective_dimension.push(spectrum.effective_dimension(self.lambda));
        self.largest_leverage.push(spectrum.largest_leverage(self.lambda));
        if sketch.plan().collect.kernel {
            let norm2 = map.squared_norm(&sketch.feature_means(rung), DECODING_CUTOFF);
            self.noise_floor.push(noise_floor(norm2, sketch.complete_rows()));
        }
    }
}

/// Adds what the kernel matrix of one bandwidth says.
fn look_at(
    context: &Context<'_>,
    rung: usize,
    ranks: &mut Ranks,
    dimensions: Option<&mut Dimensions>,
) -> Result<()> {
    let Some(map) = context.map(rung)? else { return Ok(()) };
    ranks.push(map);
    if let Some(dimensions) = dimensions {
        dimensions.push(context.sketch(), rung, map, context.spectrum(rung)?);
    }
    Ok(())
}

fn cell_counts(sketch: &Sketch) -> CellCounts {
    let (plan, sums) = (sketch.plan(), sketch.sums());
    let folds = sketch.folds().map_or(&[][..], |folds| folds.sums());
    let cells = &sums[Sum::CellRows];
    CellCounts {
        single_row_cells: match sketch.released() {
            // These counts are noise.
            Some(_) => 0,
            None => (0..cells.len())
                .map(|cell| match sums.only_row(plan, cell) {
                    Some(_) => 1,
                    None => folds.iter().filter(|sums| sums.only_row(plan, cell).is_some()).count(),
                })
                .sum(),
        },
        empty_cells: cells.iter().filter(|rows| **rows == 0).count(),
    }
}
