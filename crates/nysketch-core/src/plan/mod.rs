//! The plan: the specification of the measurement, fixed before the pass and the same for every
//! part of the data.

pub mod collect;
pub mod devices;
pub mod frame;
pub mod private;
pub mod sampling;
pub mod sphere;
pub mod table;
pub mod witnesses;

use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::kernel::fourier::FrequencyLaw;
use crate::kernel::ladder::check_bandwidths;
use crate::kernel::levels::LevelTables;
use crate::kernel::search::{PanelsOnce, Search};
use crate::numeric::fixed::power_of_two;
use crate::numeric::points::Points;
use crate::numeric::simd::Instructions;
use crate::plan::collect::Collect;
use crate::plan::devices::OnDevices;
use crate::plan::frame::{Frame, MAX_RANGE_BITS};
use crate::plan::private::{MAX_ANCHOR, People, Private, anchors, check_work};
use crate::plan::sampling::Sampling;
use crate::plan::sphere::Spheres;
use crate::plan::table::{MAX_SUMS, Measured};
use crate::plan::witnesses::Witnesses;
use crate::recipe::{Category, Recipe};
use crate::rows::MAX_COLUMNS;
use crate::rows::weight::Weighting;
use std::borrow::Cow;
use std::collections::HashSet;

/// Specification of a sketch: the columns, the features and the sums to collect. Made by
/// [`plan_for`](crate::plan_for) or read from a file.
///
/// ```
/// use nysketch_core::{Plan, PlanParams, Scale, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(2, vec![0.0, 100.0, 1.0, 300.0, 3.0, 200.0])?;
/// let plan = plan_for(&table, PlanParams::default().scale(Scale::Standard))?.plan;
/// assert_eq!((plan.dims(), plan.bandwidths.len()), (2, 3));
/// assert_eq!(plan.landmark_rows().len(), 3);
///
/// let read = Plan::from_bytes(&plan.to_bytes())?;
/// assert_eq!(read.fingerprint(), plan.fingerprint());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Names of the measured numeric columns, in order.
    pub columns: Vec<String>,
    /// The preprocessing that computes them from the columns of a table, and the categories.
    pub recipe: Recipe,
    /// The column of row weights, if there is one.
    pub weighting: Option<Weighting>,
    /// The conversion from the table's units to coordinates.
    pub frame: Frame,
    /// The landmarks or frequencies.
    pub features: Features,
    /// The level of each landmark in each category, `landmarks × categories`.
    pub landmark_levels: Vec<u32>,
    /// The kernel of the kernel sums.
    pub kernel: Kernel,
    /// Bandwidths σ² in squared coordinates, widest first.
    pub bandwidths: Vec<f64>,
    /// The sums that are kept.
    pub collect: Collect,
    /// The seed that chose the landmarks or frequencies.
    pub seed: u64,
    /// Retained rows of the planning sample, if the plan keeps any.
    pub witnesses: Option<Witnesses>,
    /// The bounds of a private plan, to which rows are clipped.
    pub private: Option<Private>,
    /// The landmarks in the layout of the nearest-landmark search.
    pub panels: PanelsOnce,
    /// State shared by all GPU passes of the plan.
    pub on_devices: OnDevices,
}

/// The feature map.
///
/// ```
/// use nysketch_core::{Features, PlanParams, FrequencyLaw, Sampling, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..500).map(f64::from).collect())?;
/// let plan = plan_for(&table, PlanParams::default().landmarks(20))?.plan;
/// let Features::Nystrom(points, sampling) = &plan.features else { unreachable!() };
/// assert_eq!((points.len(), *sampling), (20, Sampling::Dsquared));
/// let plan = plan_for(&table, PlanParams::default().fourier(30))?.plan;
/// let Features::Fourier(points, law) = &plan.features else { unreachable!() };
/// assert_eq!((points.len(), *law), (30, FrequencyLaw::Normal));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// Landmarks x̃_j in the frame's coordinates, and the method that chose them.
    Nystrom(Points, Sampling),
    /// Frequencies Ω_j, not divided by σ, and the law they were drawn from.
    Fourier(Points, FrequencyLaw),
}

impl Features {
    /// Name on the command line and in files.
    pub fn name(&self) -> &'static str {
        match self {
            Features::Nystrom(..) => "nystrom",
            Features::Fourier(_, FrequencyLaw::Normal) => "fourier",
            Features::Fourier(_, FrequencyLaw::Adapted) => "adapted-fourier",
        }
    }

    /// The landmarks or frequencies.
    pub fn points(&self) -> &Points {
        match self {
            Features::Nystrom(p, _) | Features::Fourier(p, _) => p,
        }
    }
}

/// Largest number of landmarks or frequencies. Indices up to it are exact in single precision.
pub(crate) const MAX_POINTS: usize = 1 << 24;
/// Largest number of columns for which Σxxᵀ can be kept.
pub(crate) const MAX_MOMENTS_DIMS: usize = 4096;

/// Relative tolerance for matching a bandwidth to one of the plan's: as exact as the printed
/// digits.
const SAME_BANDWIDTH: f64 = 1e-3;

impl Plan {
    /// Number of numeric columns d.
    pub fn dims(&self) -> usize {
        self.columns.len()
    }

    /// The landmarks, or `None` for Fourier features.
    pub fn landmarks(&self) -> Option<&Points> {
        match &self.features {
            Features::Nystrom(points, _) => Some(points),
            Features::Fourier(..) => None,
        }
    }

    /// The landmarks in the space of distances, with the coordinates of their levels; `None` for
    /// Fourier features.
    pub fn landmark_space(&self) -> Option<Cow<'_, Points>> {
        let landmarks = self.landmarks()?;
        if self.categories().is_empty() {
            return Some(Cow::Borrowed(landmarks));
        }
        let d = self.dims();
        let space = self.recipe.in_space(d, landmarks.data(), &self.landmark_levels);
        Some(Cow::Owned(Points::new(self.recipe.space_dims(d), space)))
    }

    /// The categorical columns.
    pub fn categories(&self) -> &[Category] {
        &self.recipe.categories
    }

    /// The unit spheres that centres of clusters lie on, in coordinates.
    pub fn spheres(&self) -> Spheres {
        Spheres::of(&self.recipe.units, &self.frame)
    }

    /// Whether rows may have missing values.
    pub fn is_partial(&self) -> bool {
        self.recipe.least_present.is_some()
    }

    /// Contributions of a row's levels to its squared distances from the landmarks; `None` without
    /// categories.
    pub(crate) fn level_tables(&self) -> Option<LevelTables> {
        let categories = self.categories();
        let levels: Vec<usize> = categories.iter().map(Category::len).collect();
        (!levels.is_empty()).then(|| {
            LevelTables::new(self.features.points().len(), &levels, |c, level, landmark| {
                self.level_distance(c, level, landmark)
            })
        })
    }

    /// Contribution of a level of category `c` to the squared distance from a landmark.
    fn level_distance(&self, c: usize, level: usize, landmark: usize) -> f32 {
        let same = self.landmark_levels[landmark * self.categories().len() + c] == level as u32;
        if same { 0.0 } else { self.categories()[c].weight as f32 }
    }

    /// A search for the landmarks nearest to rows, in squared distance. All searches of a plan
    /// share the tables that take long to compute.
    pub fn search(&self, instructions: Instructions) -> Search {
        let landmarks = self.features.points();
        let panels = self.panels.of(landmarks, instructions);
        Search::new(landmarks, self.level_tables().as_ref(), panels, instructions)
    }

    /// The landmarks in the table's units, one row each; empty for Fourier features.
    pub fn landmark_rows(&self) -> Vec<Vec<f64>> {
        let rows = self.landmarks().into_iter().flat_map(Points::rows);
        rows.map(|z| self.frame.widen(z)).collect()
    }

    /// The retained rows in the coordinates of the frame, if the plan has retained rows and they
    /// are available.
    pub fn witness_rows(&self) -> Option<&Points> {
        self.witnesses.as_ref().and_then(Witnesses::rows)
    }

    /// Whether the plan has retained rows that are not available here.
    pub fn lacks_witnesses(&self) -> bool {
        self.witnesses.is_some() && self.witness_rows().is_none()
    }

    /// Returns the plan with these retained rows in place of its own.
    #[must_use]
    pub fn with_witnesses(&self, witnesses: Option<Witnesses>) -> Plan {
        Plan { witnesses, ..self.clone() }
    }

    /// The plan with its retained rows replaced by their digest. It is the same plan with the same
    /// fingerprint.
    #[must_use]
    pub fn without_witness_rows(&self) -> Self {
        let digest = self.witnesses.as_ref().map(|w| w.digest().to_string());
        Plan { witnesses: digest.map(Witnesses::elsewhere), ..self.clone() }
    }

    /// Number of sums per bandwidth: m, or 2m′ for Fourier features.
    pub fn features_per_bandwidth(&self) -> usize {
        self.measured().features()
    }

    /// Index of a bandwidth among the plan's.
    pub fn rung_of(&self, sigma2: f64) -> Result<usize> {
        let mut bandwidths = self.bandwidths.iter();
        let rung = bandwidths.position(|s| (s / sigma2 - 1.0).abs() < SAME_BANDWIDTH);
        rung.ok_or_else(|| {
            let list: Vec<String> = self.bandwidths.iter().map(f64::to_string).collect();
            let expected = format!("one of the sketch's: {}", list.join(", "));
            Error::parameter("`bandwidth`", expected, sigma2)
        })
    }

    /// The properties of the plan that determine its set of sums.
    pub fn measured(&self) -> Measured {
        Measured {
            dims: self.dims(),
            levels: self.recipe.levels(),
            partial: self.is_partial(),
            points: self.features.points().len(),
            landmarks: self.landmarks().is_some(),
            bandwidths: self.bandwidths.len(),
            collect: self.collect,
            people: self.people().is_some(),
        }
    }

    /// The people that a private plan protects; `None` if it protects single rows.
    pub fn people(&self) -> Option<&People> {
        self.private.as_ref()?.people.as_ref()
    }

    /// The landmarks of a private plan, in whole units of the coordinates; empty for other plans.
    /// The sums of a cell are clipped around its landmark, and a release centres them at it.
    pub fn anchors(&self) -> Vec<f64> {
        let landmarks = self.landmarks().filter(|_| self.private.is_some());
        landmarks.map_or(Vec::new(), |points| anchors(points, &self.frame))
    }

    /// Whether the pass needs the nearest landmark of each row.
    pub(crate) fn needs_nearest(&self) -> bool {
        self.landmarks().is_some() && (self.collect.kernel || self.collect.cells)
    }

    /// Checks every rule of FORMAT.md for a plan. Plans made from rows and plans read from files
    /// are both checked here, so every plan that can be made can be read.
    pub fn check(&self) -> Result<()> {
        let d = self.dims();
        let unique: HashSet<&String> = self.columns.iter().collect();
        if !(1..=MAX_COLUMNS).contains(&d) || unique.len() != d {
            let expected = format!("between 1 and {MAX_COLUMNS} different columns");
            return Err(Error::parameter(
                "columns",
                expected,
                format!("{d} columns, {} different", unique.len()),
            ));
        }
        self.recipe.check(&self.columns)?;
        self.check_extras()?;
        self.frame.check(d)?;
        self.check_private()?;
        check_bandwidths(&self.bandwidths)?;
        check_points("landmarks", self.features.points(), d, false)?;
        self.collect.check(self.landmarks().is_some())?;
        let weights = self.witnesses.as_ref().map_or(&[][..], Witnesses::weights);
        if !weights.is_empty() {
            let positive = weights.iter().all(|w| *w > 0.0 && *w <= 1.0);
            let different = weights.iter().any(|w| *w != weights[0]);
            if self.weighting.is_none() || !positive || !different {
                let expected = "with different weights between 0 and 1, where rows are weighted";
                return Err(Error::parameter("`witnesses`", expected, "others"));
            }
        }
        if self.witnesses.is_some() && !self.collect.cells {
            return Err(Error::parameter("`witnesses`", WITNESSES_NEED_CELLS, "no cells"));
        }
        if let Some(rows) = self.witness_rows() {
            check_points("witnesses", rows, d, self.is_partial())?;
        }
        if self.collect.moments && d > MAX_MOMENTS_DIMS {
            let expected = format!("without moments above {MAX_MOMENTS_DIMS} columns");
            return Err(Error::parameter("`collect`", expected, format!("{d} columns")));
        }
        check_kernel(self.kernel, self.landmarks().is_some(), self.collect.cells)?;
        let sums = self.measured().sums();
        if sums > MAX_SUMS {
            let expected = format!("a plan with at most {MAX_SUMS:.0} sums");
            return Err(Error::parameter("`landmarks`", expected, format!("{sums:.0}")));
        }
        if let Some(w) = &self.weighting {
            w.check()?;
        }
        Ok(())
    }
}

impl Plan {
    /// Checks that categories and missing values are used only with features and sums that support
    /// them.
    fn check_extras(&self) -> Result<()> {
        let (categories, points) = (self.categories().len(), self.features.points().len());
        let gaussian = self.landmarks().is_some() && self.kernel == Kernel::Gaussian;
        if categories > 0 && !gaussian {
            let expected = "landmarks and the Gaussian kernel if there are categories";
            return Err(Error::parameter("`features`", expected, "others"));
        }
        if self.is_partial() && !self.collect.cells {
            let expected = "cells if values may be missing";
            return Err(Error::parameter("`collect`", expected, self.collect.names().join(",")));
        }
        if !self.are_levels(&self.landmark_levels, points) {
            return Err(Error::parameter("landmarks", "a level in each category", "others"));
        }
        let witnesses = self.witnesses.as_ref().and_then(|w| Some((w.rows()?.len(), w.levels())));
        match witnesses {
            Some((rows, codes)) if !self.are_levels(codes, rows) => {
                Err(Error::parameter("`witnesses`", "with a level in each category", "others"))
            }
            _ => Ok(()),
        }
    }
}

impl Plan {
    /// Whether these codes are a known level in each category for this number of points.
    fn are_levels(&self, codes: &[u32], points: usize) -> bool {
        let categories = self.categories();
        let mut known = codes.iter().zip(categories.iter().cycle());
        codes.len() == points * categories.len()
            && known.all(|(code, category)| (*code as usize) < category.len())
    }

    /// Checks that a private plan contains no rows, and that its bounds limit the contribution of
    /// any row to its sums.
    fn check_private(&self) -> Result<()> {
        let Some(private) = &self.private else { return Ok(()) };
        let refused = [
            ("`witnesses`", self.witnesses.is_some()),
            ("`weights`", self.weighting.is_some()),
            ("`categorical`", !self.categories().is_empty()),
            ("`missing=partial`", self.is_partial()),
            ("`unit`", !self.recipe.units.is_empty()),
            ("`dates`", self.recipe.numbers.iter().any(|n| n.step.of_time())),
        ];
        if let Some((name, _)) = refused.into_iter().find(|(_, has)| *has) {
            return Err(Error::parameter(name, NOT_PRIVATE, "it"));
        }
        private.check(&self.frame, &self.columns, self.collect.cells)?;
        if self.collect.kernel && self.landmarks().is_some() {
            let m = self.features.points().len();
            check_work(m, self.dims(), self.bandwidths.len())?;
        }
        if !self.anchors().iter().all(|a| a.abs() <= MAX_ANCHOR) {
            let expected = "within the bounds of a private plan";
            return Err(Error::parameter("landmarks", expected, "others"));
        }
        Ok(())
    }
}

/// The error for options that a private plan does not support.
pub(crate) const NOT_PRIVATE: &str = "left out with `private`";

/// The error for retained rows without cells.
pub(crate) const WITNESSES_NEED_CELLS: &str = "0 or left out where cells are not kept, since \
     retained rows are weighted by the rows of their cells";

/// Refuses points at which distances are not finite.
fn check_points(name: &'static str, points: &Points, dims: usize, partial: bool) -> Result<()> {
    let limit = power_of_two(MAX_RANGE_BITS) as f32;
    let mut values = points.data().iter();
    let usable = values.all(|x| x.abs() <= limit || partial && x.to_bits() == f32::NAN.to_bits());
    if (1..=MAX_POINTS).contains(&points.len()) && points.dims() == dims && usable {
        return Ok(());
    }
    let expected = format!("between 1 and {MAX_POINTS} points of {dims} finite values");
    Err(Error::parameter(name, expected, format!("{} points", points.len())))
}

/// Refuses kernels that Fourier features or cells do not support.
pub(crate) fn check_kernel(kernel: Kernel, landmarks: bool, cells: bool) -> Result<()> {
    if kernel == Kernel::Gaussian || (landmarks && !cells) {
        return Ok(());
    }
    let expected = if landmarks {
        "gaussian where cells are kept, whose distance is Euclidean"
    } else {
        "gaussian for Fourier features"
    };
    Err(Error::parameter("`kernel`", expected, kernel.name()))
}
