//! What several fits of one sketch share, computed when it is first needed.

use super::calibrate::calibrated;
use super::cells::{Cells, nearest_cells};
use super::known::Axes;
use super::space::Space;
use super::stand_ins::StandIns;
use super::witness_points::witness_points;
use crate::atom::embedding::Embedding;
use crate::error::Result;
use crate::feature_map::nystrom::{CUTOFF, NystromMap};
use crate::kmeans::WeightedPoints;
use crate::model::{Model, Shape};
use crate::plan::Plan;
use crate::sketch::Sketch;
use crate::spectrum::Spectrum;
use crate::work::Work;
use std::borrow::Cow;
use std::sync::OnceLock;

/// A sketch and everything about it that is expensive: eigendecompositions of K_m, cells, calibrated
/// landmarks, effective dimensions.
///
/// ```
/// use nysketch::{Context, FitParams, Mixture, PlanParams, Sketch, SketchParams, Table, Task, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, Mixture::new(2, 3, 3.0, 7)?.rows(0, 900).values)?;
/// let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default())?.0);
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
    /// Other axes than the plan's, and the context along the plan's.
    turned: Option<(&'a Context<'a>, Axes)>,
}

/// What is known at one bandwidth.
#[derive(Debug, Default)]
struct Rung {
    map: OnceLock<NystromMap>,
    embedding: OnceLock<Embedding>,
    spectrum: OnceLock<Spectrum>,
}

impl<'a> Context<'a> {
    /// Nothing is computed yet.
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

    /// The same along other axes: places are turned, what does not depend on them is shared. Cells stay as
    /// they are.
    pub(super) fn turned(along_plan: &'a Context<'a>, axes: Axes) -> Self {
        Context { turned: Some((along_plan, axes)), ..Context::new(along_plan.sketch) }
    }

    /// The sketch.
    pub fn sketch(&self) -> &'a Sketch {
        self.sketch
    }

    /// Its plan.
    pub fn plan(&self) -> &'a Plan {
        self.sketch.plan()
    }

    /// Where the data lies.
    pub(crate) fn space(&self) -> &Space {
        let axes = self.turned.as_ref().map(|(_, axes)| axes);
        self.space.get_or_init(|| Space::new(self.sketch, axes))
    }

    /// The cells; needs a sketch that keeps them.
    pub(crate) fn cells(&self) -> &Cells {
        self.cells.get_or_init(|| Cells::new(self.sketch))
    }

    /// The cells unfolded by themselves, always into the same points; needs a sketch that keeps cells.
    pub(crate) fn unfolded(&self) -> &Cells {
        self.unfolded.get_or_init(|| self.cells().unfold_alike())
    }

    /// Whether cells are numbers alone, all of them known.
    pub(super) fn is_plain(&self) -> bool {
        self.plan().categories().is_empty() && !self.plan().is_partial()
    }

    /// What centres are found on: the cells, with the shares of levels as coordinates.
    pub(crate) fn clustered(&self) -> &Cells {
        match self.is_plain() {
            true => self.cells(),
            false => &self.in_space()[0],
        }
    }

    /// The same unfolded by themselves, always into the same points.
    pub(crate) fn clustered_unfolded(&self) -> &Cells {
        match self.is_plain() {
            true => self.unfolded(),
            false => &self.in_space()[1],
        }
    }

    fn in_space(&self) -> &[Cells; 2] {
        self.clustered.get_or_init(|| {
            let cells = Cells::in_space(self.sketch);
            let unfolded = cells.unfold_alike();
            [cells, unfolded]
        })
    }

    /// The rows that the plan holds, in the coordinates of this context: witnesses where they are at hand, else
    /// landmarks; none for Fourier features without witnesses.
    pub(crate) fn held_rows(&self) -> Vec<Vec<f64>> {
        let rows = self.plan().witness_rows().or_else(|| self.plan().landmarks());
        rows.map_or(Vec::new(), |rows| rows.rows().map(|z| self.placed(z)).collect())
    }

    /// A row of the plan in the coordinates of this context.
    fn placed(&self, z: &[f32]) -> Vec<f64> {
        let z: Vec<f64> = z.iter().map(|x| f64::from(*x)).collect();
        self.turned.as_ref().map_or(z.clone(), |(_, axes)| axes.turn(&z))
    }

    /// The landmark of each witness row, where they are at hand.
    pub(super) fn witness_cells(&self) -> Option<&[usize]> {
        let plan = self.plan();
        let make = || {
            let rows = plan.witness_rows().filter(|_| plan.landmarks().is_some())?;
            let levels = plan.witnesses.as_ref().map_or(&[][..], |w| w.levels());
            Some(nearest_cells(plan, rows.data(), levels))
        };
        self.witness_cells.get_or_init(make).as_deref()
    }

    /// Witness rows as points that centres are found on and told by; `None` where the witnesses are not at hand or not
    /// those of these rows. Where rows lack values, the nearest centre is that of a row filled in, or of what it has.
    pub(crate) fn witness_points(&self, by_what_is_there: bool) -> Option<&WeightedPoints> {
        let by_what_is_there = by_what_is_there && self.plan().is_partial();
        let make = || {
            let cells = self.plan().collect.cells && self.sketch.rows() > 0;
            let landmark_of = self.witness_cells().filter(|_| cells)?;
            witness_points(self.sketch, self.clustered(), landmark_of, by_what_is_there)
        };
        self.witness_points[usize::from(by_what_is_there)].get_or_init(make).as_ref()
    }

    /// The centres of a model in the coordinates that centres are found in.
    pub(crate) fn centres_of(&self, model: &Model) -> Option<Vec<Vec<f64>>> {
        let Shape::Centres { centres, .. } = &model.shape else { return None };
        let (frame, sizes) = (&self.plan().frame, self.plan().recipe.level_sizes());
        let place = |(c, centre): (usize, &Vec<f64>)| {
            let mut place = frame.coordinates(centre);
            let mut shares = model.levels.get(c).map_or(&[][..], |levels| levels);
            for (category, size) in self.plan().categories().iter().zip(&sizes) {
                let (own, others) = shares.split_at(category.len().min(shares.len()));
                place.extend(own.iter().map(|share| share * size));
                shares = others;
            }
            place
        };
        Some(centres.iter().enumerate().map(place).collect())
    }

    /// Witness rows weighted by the cells; `None` where the sketch has no cells or the rows are not at hand.
    pub(crate) fn witnessed(&self) -> Option<&StandIns> {
        let make = || {
            let cells = self.plan().collect.cells && self.sketch.rows() > 0;
            let landmark_of = self.witness_cells().filter(|_| cells)?;
            StandIns::of_witnesses(self.sketch, self.cells(), landmark_of)
        };
        self.witnessed.get_or_init(make).as_ref()
    }

    /// What stands for the rows where densities are asked for: witness rows weighted by the cells, else the cells
    /// unfolded by themselves; `None` where the sketch has no cells.
    pub(crate) fn stand_ins(&self) -> Option<Cow<'_, StandIns>> {
        if let Some(points) = self.witnessed() {
            return Some(Cow::Borrowed(points));
        }
        self.plan().collect.cells.then(|| {
            let unfolded = self.clustered_unfolded().weighted_means();
            Cow::Owned(StandIns::of_points(self.plan(), &unfolded))
        })
    }

    /// The digest of the sketch.
    pub(crate) fn digest(&self) -> &str {
        self.digest.get_or_init(|| self.sketch.digest())
    }

    /// The Nyström map of a bandwidth; `None` for Fourier features.
    pub(crate) fn map(&self, rung: usize) -> Result<Option<&NystromMap>> {
        let plan = self.plan();
        let Some(landmarks) = plan.landmark_space() else { return Ok(None) };
        let kernel = plan.kernel.at(plan.bandwidths[rung]);
        let make = || {
            Work::eigen(landmarks.len(), 1).check("learning from kernel sums")?;
            NystromMap::new(&landmarks, kernel, CUTOFF)
        };
        once(&self.rungs[rung].map, make).map(Some)
    }

    /// Whether the kernel matrices of all bandwidths take a few seconds and little memory.
    pub fn is_small(&self) -> bool {
        let plan = self.plan();
        Work::bandwidths(plan.features.points().len(), plan.bandwidths.len()).is_quick()
    }

    /// What was measured at a bandwidth; needs a sketch with rows and kernel sums.
    #[doc(hidden)]
    pub fn embedding(&self, rung: usize) -> Result<&Embedding> {
        once(&self.rungs[rung].embedding, || match &self.turned {
            Some((plain, axes)) => Ok(plain.embedding(rung)?.turned(|x| axes.turn(x))),
            None => Ok(Embedding::new(self.sketch, rung, self.map(rung)?)),
        })
    }

    /// Landmarks weighted so that their sketch is the data's, where there are landmarks and kernel sums.
    pub(crate) fn calibrated(&self) -> Result<Option<&WeightedPoints>> {
        let made = once(&self.calibrated, || {
            let landmarks = self.plan().landmarks().filter(|_| self.plan().collect.kernel);
            let Some(landmarks) = landmarks else { return Ok(None) };
            Work::eigen(landmarks.len(), 1).check("weights of so many landmarks")?;
            let placed: Vec<f64> = landmarks.rows().flat_map(|z| self.placed(z)).collect();
            Ok(Some(calibrated(self.sketch, &placed)))
        });
        Ok(made?.as_ref())
    }

    /// Effective dimensions of the data at a bandwidth; needs a sketch with landmarks.
    pub fn spectrum(&self, rung: usize) -> Result<&Spectrum> {
        once(&self.rungs[rung].spectrum, || {
            Work::eigen(self.plan().features.points().len(), 1)
                .check("the spectrum of the kernel")?;
            Spectrum::new(self.sketch, rung)
        })
    }
}

/// What is in a place, made where nothing is there yet.
fn once<T>(place: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(made) = place.get() {
        return Ok(made);
    }
    let made = make()?;
    Ok(place.get_or_init(|| made))
}
