//! Intermediate results that several fits of one sketch share, each computed when first needed.

use super::calibrate::calibrated;
use super::cells::Cells;
use super::known::Axes;
use super::nearest_cells::nearest_cells;
use super::space::Space;
use super::stand_ins::StandIns;
use super::witness_points::witness_points;
use crate::atom::embedding::Embedding;
use crate::decoder::spectrum::Spectrum;
use crate::model::{Model, Shape};
use nysketch_core::error::Result;
use nysketch_core::kernel::nystrom::{CUTOFF, NystromMap};
use nysketch_core::kmeans::WeightedPoints;
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::Plan;
use nysketch_core::sketch::Sketch;
use std::borrow::Cow;
use std::sync::OnceLock;

/// A sketch with the expensive results derived from it: eigendecompositions of K_m, cells,
/// calibrated landmarks, effective dimensions.
///
/// ```
/// use nysketch::{Context, FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task};
/// use nysketch::plan_for;
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 7)?.rows(0, 900).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.plan);
/// let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let context = Context::new(&sketch);
/// let curve = context.curve(&FitParams::new(Task::Kmeans, 1), 1, 6)?;
/// assert_eq!(curve.points[curve.suggested].k, 3);
/// let mixture = context.fit(&FitParams::new(Task::Gmm, 3))?;
/// assert!(context.risk(&mixture).is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Context<'a> {
    sketch: &'a Sketch,
    space: OnceLock<Space>,
    cells: OnceLock<Cells>,
    unfolded: OnceLock<Cells>,
    clustered: OnceLock<[Cells; 2]>,
    witnessed: OnceLock<Option<StandIns>>,
    witness_cells: OnceLock<Option<Vec<usize>>>,
    witness_points: [OnceLock<Option<WeightedPoints>>; 2],
    digest: OnceLock<String>,
    calibrated: OnceLock<Option<WeightedPoints>>,
    rungs: Vec<Rung>,
    /// The axes to use instead of the plan's, and the context along the plan's axes.
    turned: Option<(&'a Context<'a>, Axes)>,
}

/// Results for one bandwidth.
#[derive(Debug, Default)]
struct Rung {
    map: OnceLock<NystromMap>,
    embedding: OnceLock<Embedding>,
    spectrum: OnceLock<Spectrum>,
}

impl<'a> Context<'a> {
    /// Creates a context without computing anything.
    pub fn new(sketch: &'a Sketch) -> Self {
        let rungs = sketch.plan().bandwidths.iter().map(|_| Rung::default()).collect();
        Context {
            sketch,
            space: OnceLock::new(),
            cells: OnceLock::new(),
            unfolded: OnceLock::new(),
            clustered: OnceLock::new(),
            witnessed: OnceLock::new(),
            witness_cells: OnceLock::new(),
            witness_points: Default::default(),
            digest: OnceLock::new(),
            calibrated: OnceLock::new(),
            rungs,
            turned: None,
        }
    }

    /// Returns the context of the same sketch along other axes. Points are rotated; results that do
    /// not depend on the axes are shared. Cells are not rotated.
    pub(super) fn turned(along_plan: &'a Context<'a>, axes: Axes) -> Self {
        Context { turned: Some((along_plan, axes)), ..Context::new(along_plan.sketch) }
    }

    /// Returns the sketch.
    pub fn sketch(&self) -> &'a Sketch {
        self.sketch
    }

    /// Returns the plan of the sketch.
    pub fn plan(&self) -> &'a Plan {
        self.sketch.plan()
    }

    /// Returns the region and the moments of the data in the coordinates of this context.
    pub(crate) fn space(&self) -> &Space {
        let axes = self.turned.as_ref().map(|(_, axes)| axes);
        self.space.get_or_init(|| Space::new(self.sketch, axes))
    }

    /// Returns the cells. The sketch must contain cells.
    pub(crate) fn cells(&self) -> &Cells {
        self.cells.get_or_init(|| Cells::new(self.sketch))
    }

    /// Returns the cells, each unfolded without a mixture, always into the same points. The sketch
    /// must contain cells.
    pub(crate) fn unfolded(&self) -> &Cells {
        self.unfolded.get_or_init(|| self.cells().unfold_with_fixed_seed())
    }

    /// Returns whether the plan has numeric columns only and no missing values.
    pub(super) fn is_plain(&self) -> bool {
        self.plan().categories().is_empty() && !self.plan().is_partial()
    }

    /// Returns the cells on which centres are found, with the shares of the levels as coordinates.
    pub(crate) fn clustered(&self) -> &Cells {
        if self.is_plain() { self.cells() } else { &self.in_space()[0] }
    }

    /// Returns the cells of [`clustered`](Self::clustered), each unfolded without a mixture, always
    /// into the same points.
    pub(crate) fn clustered_unfolded(&self) -> &Cells {
        if self.is_plain() { self.unfolded() } else { &self.in_space()[1] }
    }

    fn in_space(&self) -> &[Cells; 2] {
        self.clustered.get_or_init(|| {
            let cells = Cells::in_space(self.sketch);
            let unfolded = cells.unfold_with_fixed_seed();
            [cells, unfolded]
        })
    }

    /// Returns the rows stored in the plan, in the coordinates of this context: the retained rows
    /// if they are available, otherwise the landmarks. Returns none for Fourier features without
    /// retained rows.
    pub(crate) fn held_rows(&self) -> Vec<Vec<f64>> {
        let rows = self.plan().witness_rows().or_else(|| self.plan().landmarks());
        rows.map_or(Vec::new(), |rows| rows.rows().map(|z| self.placed(z)).collect())
    }

    /// Converts a row of the plan to the coordinates of this context.
    fn placed(&self, z: &[f32]) -> Vec<f64> {
        let z: Vec<f64> = z.iter().map(|x| f64::from(*x)).collect();
        self.turned.as_ref().map_or(z.clone(), |(_, axes)| axes.turn(&z))
    }

    /// Returns the landmark of each retained row, if retained rows and landmarks are available.
    pub(super) fn witness_cells(&self) -> Option<&[usize]> {
        let plan = self.plan();
        self.witness_cells
            .get_or_init(|| {
                let rows = plan.witness_rows().filter(|_| plan.landmarks().is_some())?;
                let levels = plan.witnesses.as_ref().map_or(&[][..], |w| w.levels());
                Some(nearest_cells(plan, rows.data(), levels))
            })
            .as_deref()
    }

    /// Returns the retained rows as points on which centres are found. Returns `None` if the
    /// retained rows are not available or do not represent the rows of the sketch. If
    /// `by_present_values`, the nearest centre of a row with missing values is found from its
    /// present values; otherwise the missing values are filled in first.
    pub(crate) fn witness_points(&self, by_present_values: bool) -> Option<&WeightedPoints> {
        let by_present_values = by_present_values && self.plan().is_partial();
        self.witness_points[usize::from(by_present_values)]
            .get_or_init(|| {
                let cells = self.plan().collect.cells && self.sketch.rows() > 0;
                let landmark_of = self.witness_cells().filter(|_| cells)?;
                witness_points(self.sketch, self.clustered(), landmark_of, by_present_values)
            })
            .as_ref()
    }

    /// Returns the centres of a model in the coordinates in which centres are found.
    pub(crate) fn centres_of(&self, model: &Model) -> Option<Vec<Vec<f64>>> {
        let Shape::Centres { centres, .. } = &model.shape else { return None };
        let (frame, sizes) = (&self.plan().frame, self.plan().recipe.level_sizes());
        let mut places = Vec::with_capacity(centres.len());
        for (c, centre) in centres.iter().enumerate() {
            let mut place = frame.coordinates(centre);
            let mut rest = model.levels.get(c).map_or(&[][..], |levels| levels);
            for (category, size) in self.plan().categories().iter().zip(&sizes) {
                let (shares, others) = rest.split_at(category.len().min(rest.len()));
                place.extend(shares.iter().map(|share| share * size));
                rest = others;
            }
            places.push(place);
        }
        Some(places)
    }

    /// Returns the retained rows weighted by the cells; `None` if the sketch has no cells or the
    /// retained rows are not available.
    pub(crate) fn witnessed(&self) -> Option<&StandIns> {
        self.witnessed
            .get_or_init(|| {
                let cells = self.plan().collect.cells && self.sketch.rows() > 0;
                let landmark_of = self.witness_cells().filter(|_| cells)?;
                StandIns::of_witnesses(self.sketch, self.cells(), landmark_of)
            })
            .as_ref()
    }

    /// Returns the points that represent the rows when densities are computed: the retained rows
    /// weighted by the cells if available, otherwise the cells unfolded without a mixture. Returns
    /// `None` if the sketch has no cells.
    pub(crate) fn stand_ins(&self) -> Option<Cow<'_, StandIns>> {
        if let Some(points) = self.witnessed() {
            return Some(Cow::Borrowed(points));
        }
        self.plan().collect.cells.then(|| {
            let unfolded = self.clustered_unfolded().weighted_means();
            Cow::Owned(StandIns::of_points(self.plan(), &unfolded))
        })
    }

    /// Returns the digest of the sketch.
    pub(crate) fn digest(&self) -> &str {
        self.digest.get_or_init(|| self.sketch.digest())
    }

    /// Returns the Nyström map of a bandwidth; `None` for Fourier features.
    pub fn map(&self, rung: usize) -> Result<Option<&NystromMap>> {
        let plan = self.plan();
        let Some(landmarks) = plan.landmark_space() else { return Ok(None) };
        let kernel = plan.kernel.at(plan.bandwidths[rung]);
        once(&self.rungs[rung].map, || {
            Work::eigen(landmarks.len(), 1).check("learning from kernel sums")?;
            NystromMap::new(&landmarks, kernel, CUTOFF)
        })
        .map(Some)
    }

    /// Whether the kernel matrices of all bandwidths take a few seconds and little memory.
    pub fn is_small(&self) -> bool {
        let plan = self.plan();
        Work::bandwidths(plan.features.points().len(), plan.bandwidths.len()).is_quick()
    }

    /// Returns the mean embedding of the data at a bandwidth. The sketch must contain rows and
    /// kernel sums.
    #[doc(hidden)]
    pub fn embedding(&self, rung: usize) -> Result<&Embedding> {
        once(&self.rungs[rung].embedding, || match &self.turned {
            Some((plain, axes)) => Ok(plain.embedding(rung)?.turned(|x| axes.turn(x))),
            None => Ok(Embedding::new(self.sketch, rung, self.map(rung)?)),
        })
    }

    /// Returns the landmarks, weighted so that their sketch matches that of the data; `None`
    /// without landmarks or kernel sums.
    pub(crate) fn calibrated(&self) -> Result<Option<&WeightedPoints>> {
        let made = once(&self.calibrated, || {
            let landmarks = self.plan().landmarks().filter(|_| self.plan().collect.kernel);
            let Some(landmarks) = landmarks else { return Ok(None) };
            Work::eigen(landmarks.len(), 1).check("weights of this many landmarks")?;
            let placed: Vec<f64> = landmarks.rows().flat_map(|z| self.placed(z)).collect();
            Ok(Some(calibrated(self.sketch, &placed)))
        });
        Ok(made?.as_ref())
    }

    /// Returns the effective dimensions of the data at a bandwidth. The sketch must have landmarks.
    pub fn spectrum(&self, rung: usize) -> Result<&Spectrum> {
        once(&self.rungs[rung].spectrum, || {
            Work::eigen(self.plan().features.points().len(), 1)
                .check("the spectrum of the kernel")?;
            Spectrum::new(self.sketch, rung)
        })
    }
}

/// Returns the content of `place`, computing it first if it is empty.
fn once<T>(place: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(made) = place.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(place.get_or_init(|| made))
}
