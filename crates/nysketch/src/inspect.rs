//! What a plan or a sketch holds, and how good it is.
//!
//! Field names are those of `nysketch inspect --json` and of `nysketch.inspect` in Python. Every
//! eigendecomposition comes from the [`Context`], so that it is computed once, however much is asked for.

use crate::atom::embedding::DECODING_CUTOFF;
use crate::columns::ColumnSummary;
use crate::decoder::Context;
use crate::decoder::{Explanation, noise_floor};
use crate::error::{Error, Result};
use crate::feature_map::nystrom::{CUTOFF, NystromMap};
use crate::landmarks::Sampling;
use crate::model::Model;
use crate::plan::{Features, Plan};
use crate::points::Points;
use crate::sketch::Sketch;
use crate::spectrum::Spectrum;
use crate::sums::Sum;
use crate::theory::{Theory, TheoryParams};
use crate::work::Work;
use serde::Serialize;

/// The column of row weights, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Weights {
    /// Column name.
    pub column: String,
    /// One row of this weight counts as one.
    pub unit: f64,
}

/// What a plan measures.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct PlanSummary {
    /// Names of the columns, in order.
    pub columns: Vec<String>,
    /// `nystrom`, `fourier` or `adapted-fourier`.
    pub features: &'static str,
    /// The kernel that is summed.
    pub kernel: &'static str,
    /// Number of landmarks; none for Fourier features.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landmarks: Option<usize>,
    /// How landmarks were chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<&'static str>,
    /// Number of frequencies; none where there are landmarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequencies: Option<usize>,
    /// Bandwidths σ², widest first.
    pub bandwidths: Vec<f64>,
    /// Which sums are kept.
    pub collect: Vec<&'static str>,
    /// Witness rows that are at hand.
    pub witnesses: usize,
    /// Which witness rows the plan keeps, here or elsewhere; none where it keeps none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witnesses_digest: Option<String>,
    /// SHA-256 of the plan's file, but for the rows of sections.
    pub fingerprint: String,
}

/// Rows of the data whose values are in a file, counted apart; some may be the same.
///
/// ```
/// use nysketch::inspect::RawRows;
/// use nysketch::{PlanParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(1, (0..900).map(f64::from).collect())?;
/// let (plan, _) = plan_for(&table, PlanParams::default().landmarks(50).witnesses(100))?;
/// let raw = RawRows::of_plan(&plan);
/// assert_eq!((raw.landmarks, raw.witnesses, raw.total()), (50, 100, 150));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRows {
    /// Landmarks that were chosen from the rows.
    pub landmarks: usize,
    /// Witness rows.
    pub witnesses: usize,
    /// Cells whose rows are all the same one, which their sums tell.
    pub single_row_cells: usize,
}

impl RawRows {
    /// Those of a plan.
    pub fn of_plan(plan: &Plan) -> Self {
        let landmarks = match &plan.features {
            // Those of a private plan are public.
            _ if plan.private.is_some() => 0,
            Features::Nystrom(_, Sampling::Given) | Features::Fourier(..) => 0,
            Features::Nystrom(landmarks, _) => landmarks.len(),
        };
        let witnesses = plan.witness_rows().map_or(0, Points::len);
        RawRows { landmarks, witnesses, single_row_cells: 0 }
    }

    /// Those of a sketch.
    pub fn of_sketch(sketch: &Sketch) -> Self {
        let single_row_cells = cell_counts(sketch).single_row_cells;
        RawRows { single_row_cells, ..Self::of_plan(sketch.plan()) }
    }

    /// All of them.
    pub fn total(self) -> usize {
        self.landmarks + self.witnesses + self.single_row_cells
    }
}

impl PlanSummary {
    /// What this plan measures.
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

/// The kernel matrix of the landmarks at every bandwidth; empty where that would take long.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ranks {
    /// Numerical rank.
    pub rank: Vec<usize>,
    /// Largest eigenvalue over the smallest one above the cut-off.
    pub condition: Vec<f64>,
}

impl Ranks {
    fn push(&mut self, map: &NystromMap) {
        self.rank.push(map.rank());
        self.condition.push(map.condition());
    }
}

/// Effective dimensions and noise at every bandwidth.
#[derive(Debug, Clone, Serialize)]
pub struct Dimensions {
    /// λ = 1/√n that dimensions are computed at.
    pub lambda: f64,
    /// N(λ), estimated from the landmarks.
    pub effective_dimension: Vec<f64>,
    /// N_∞(λ), likewise.
    pub largest_leverage: Vec<f64>,
    /// How far a sketch of so many rows is from that of their distribution; empty without kernel sums.
    pub noise_floor: Vec<f64>,
}

/// The folds of a sketch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldSummary {
    /// How many there are.
    pub count: u32,
    /// The column that rows are dealt by; none where their own values decide.
    pub by: Option<String>,
    /// Rows of the smallest fold.
    pub smallest: u64,
    /// Rows of the largest fold.
    pub largest: u64,
}

impl FoldSummary {
    /// The folds of a sketch that keeps some.
    pub fn of(sketch: &Sketch) -> Option<Self> {
        let folds = sketch.folds()?;
        let (smallest, largest) = folds.extremes();
        let (count, by) = (folds.rule().count(), folds.rule().key().map(str::to_string));
        Some(FoldSummary { count, by, smallest, largest })
    }
}

/// Cells with few rows.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CellCounts {
    /// Cells whose rows are all the same one, whose values are in the file; with those of folds where the whole cell has others.
    pub single_row_cells: usize,
    /// Cells without rows.
    pub empty_cells: usize,
}

/// What a plan or a sketch holds.
///
/// ```
/// use nysketch::{Context, Inspection, Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 1)?.rows(0, 900).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(50))?.0);
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
    /// Number of rows, weights counted; none for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Rows left out as invalid; none for a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u64>,
    /// Rows that lack no number, where rows may lack some: kernel sums and moments are of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<u64>,
    /// The folds of a sketch, where it keeps some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<FoldSummary>,
    /// What is measured.
    #[serde(flatten)]
    pub plan: PlanSummary,
    /// The columns of the table that are measured, and what is done to them; of a sketch with exact shares of levels and
    /// of missing values.
    pub roles: Vec<ColumnSummary>,
    /// The seed that landmarks or frequencies were chosen with.
    pub seed: u64,
    /// What each column is divided by.
    pub scale: Vec<f64>,
    /// The column of row weights.
    pub weights: Option<Weights>,
    /// Of the kernel matrix; none for Fourier features.
    #[serde(flatten)]
    pub ranks: Option<Ranks>,
    /// Upper bounds on how much of the data the landmarks miss, one per bandwidth; none for Fourier
    /// features, empty without rows or kernel sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Vec<f64>>,
    /// None where there are no rows, or the noise of their weights is not known, or landmarks are too many.
    #[serde(flatten)]
    pub dimensions: Option<Dimensions>,
    /// None where cells are not kept.
    #[serde(flatten)]
    pub cells: Option<CellCounts>,
    /// Rows of the data whose values are in the file, at most: landmarks that were chosen from the rows,
    /// witness rows and cells whose rows are all the same one, some of which may be the same. See [`RawRows`].
    pub raw_rows: usize,
    /// Whether a mixture explains the sketch, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Explanation>,
    /// What the paper's theorems say, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theory: Option<Theory>,
}

impl Inspection {
    /// What a plan holds.
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

    /// What a sketch holds.
    pub fn of_sketch(context: &Context<'_>) -> Result<Self> {
        let (sketch, plan) = (context.sketch(), context.plan());
        let mut found = Self::new(plan, "sketch");
        found.rows = Some(sketch.rows());
        found.skipped = Some(sketch.skipped());
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

/// What to say about a sketch beside what it holds.
#[derive(Debug, Clone, Default)]
pub struct InspectParams<'a> {
    /// Whether this mixture explains it.
    pub model: Option<&'a Model>,
    /// What the paper's theorems say.
    pub theory: Option<TheoryParams>,
}

/// What a sketch, or a plan where there is no sketch, holds, and what else was asked for.
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
    let single = |cell: usize| match sums.only_row(plan, cell) {
        Some(_) => 1,
        None => folds.iter().filter(|sums| sums.only_row(plan, cell).is_some()).count(),
    };
    let cells = &sums[Sum::CellRows];
    CellCounts {
        single_row_cells: match sketch.released() {
            // Made of noise.
            Some(_) => 0,
            None => (0..cells.len()).map(single).sum(),
        },
        empty_cells: cells.iter().filter(|rows| **rows == 0).count(),
    }
}
