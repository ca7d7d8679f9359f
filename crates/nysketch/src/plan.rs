//! The plan: what will be measured. Fixed before the pass, the same for every part of the data.

use crate::error::{Error, Result};
use crate::fixed::power_of_two;
use crate::frame::{Frame, MAX_RANGE_BITS};
use crate::kernel::ladder::check_bandwidths;
use crate::landmarks::Sampling;
use crate::points::Points;
use crate::weight::Weighting;
use std::collections::HashSet;

/// Everything that decides what a sketch means.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Names of the columns measured, in order.
    pub columns: Vec<String>,
    /// The column of row weights, if there is one.
    pub weighting: Option<Weighting>,
    /// From the table's units to the coordinates that are measured.
    pub frame: Frame,
    /// The points or frequencies measured at.
    pub features: Features,
    /// Bandwidths σ² in squared coordinates, widest first.
    pub bandwidths: Vec<f64>,
    /// Which sums are kept.
    pub collect: Collect,
    /// The seed that landmarks or frequencies were chosen with.
    pub seed: u64,
}

/// The feature map.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// Landmarks x̃_j in the frame's coordinates, and how they were chosen.
    Nystrom(Points, Sampling),
    /// Frequencies Ω_j, standard normal, not divided by σ.
    Fourier(Points),
}

impl Features {
    /// Its name on the command line and in files.
    pub fn name(&self) -> &'static str {
        match self {
            Features::Nystrom(..) => "nystrom",
            Features::Fourier(_) => "fourier",
        }
    }

    /// The landmarks or frequencies.
    pub fn points(&self) -> &Points {
        match self {
            Features::Nystrom(p, _) | Features::Fourier(p) => p,
        }
    }
}

/// Which sums a sketch keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collect {
    /// Kernel sums (or cosines and sines) and, with landmarks, coverage.
    pub kernel: bool,
    /// Count, Σx and Σx² of each cell.
    pub cells: bool,
    /// Σx and Σxxᵀ over all rows.
    pub moments: bool,
}

/// Columns up to which Σxxᵀ is kept without being asked for: it costs d² a row.
pub const MOMENTS_DIMS: usize = 64;

/// Most columns of a plan.
pub const MAX_COLUMNS: usize = 1 << 16;
/// Most landmarks or frequencies: their numbers are exact in single precision.
pub const MAX_POINTS: usize = 1 << 24;
/// Most columns for which Σxxᵀ can be kept.
pub const MAX_MOMENTS_DIMS: usize = 4096;
/// Most sums of a sketch: 1 GiB of 128-bit integers.
pub const MAX_SUMS: f64 = (1u64 << 26) as f64;

impl Collect {
    /// Something is kept, and cells only where there are landmarks.
    pub fn check(self, landmarks: bool) -> Result<()> {
        let (expected, got) = if !(self.kernel || self.cells || self.moments) {
            ("at least one of kernel, cells, moments", "none")
        } else if self.cells && !landmarks {
            ("without cells for Fourier features, which have no landmarks", "cells")
        } else {
            return Ok(());
        };
        Err(Error::parameter("`collect`", expected, got))
    }

    /// Everything that is cheap for so many columns.
    pub fn default_for(dims: usize, landmarks: bool) -> Self {
        Collect { kernel: true, cells: landmarks, moments: dims <= MOMENTS_DIMS }
    }

    /// The names of what is kept, in alphabetical order.
    pub fn names(self) -> Vec<&'static str> {
        [(self.cells, "cells"), (self.kernel, "kernel"), (self.moments, "moments")]
            .into_iter()
            .filter_map(|(on, name)| on.then_some(name))
            .collect()
    }

    /// From names in any order.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let mut collect = Collect { kernel: false, cells: false, moments: false };
        for name in names {
            match name {
                "kernel" => collect.kernel = true,
                "cells" => collect.cells = true,
                "moments" => collect.moments = true,
                other => {
                    return Err(Error::parameter(
                        "`collect`",
                        "some of kernel, cells, moments",
                        other,
                    ));
                }
            }
        }
        Ok(collect)
    }
}

impl Plan {
    /// Number of columns d.
    pub fn dims(&self) -> usize {
        self.columns.len()
    }

    /// The landmarks, where the features are Nyström's.
    pub fn landmarks(&self) -> Option<&Points> {
        match &self.features {
            Features::Nystrom(points, _) => Some(points),
            Features::Fourier(_) => None,
        }
    }

    /// Number of sums per bandwidth: m, or 2m′ for Fourier features.
    pub fn features_per_bandwidth(&self) -> usize {
        match &self.features {
            Features::Nystrom(points, _) => points.len(),
            Features::Fourier(points) => 2 * points.len(),
        }
    }

    /// Whether the pass needs each row's nearest landmark.
    pub(crate) fn needs_nearest(&self) -> bool {
        self.landmarks().is_some() && (self.collect.kernel || self.collect.cells)
    }

    /// The bytes of the plan's file.
    pub fn to_bytes(&self) -> Vec<u8> {
        crate::sketch::format::encode_plan(self)
    }

    /// Reads the bytes of a plan's file, checking every rule of the format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        crate::sketch::format::decode_plan(bytes)
    }

    /// SHA-256 of the plan's file, in hexadecimal.
    pub fn fingerprint(&self) -> String {
        crate::sketch::format::fingerprint(self)
    }

    /// Checks every rule that FORMAT.md has for a plan. Plans from rows and from files both pass
    /// through here, so what can be made can be read.
    pub fn check(&self) -> Result<()> {
        let d = self.dims();
        let unique: HashSet<&String> = self.columns.iter().collect();
        if !(1..=MAX_COLUMNS).contains(&d) || unique.len() != d {
            let expected = format!("between 1 and {MAX_COLUMNS} different columns");
            return Err(Error::parameter(
                "columns",
                expected,
                format!("{d}, {} of them different", unique.len()),
            ));
        }
        self.frame.check(d)?;
        check_bandwidths(&self.bandwidths)?;
        let points = self.features.points();
        let limit = power_of_two(MAX_RANGE_BITS) as f32;
        let usable = points.data().iter().all(|x| x.abs() <= limit);
        if !(1..=MAX_POINTS).contains(&points.len()) || points.dims() != d || !usable {
            let expected = format!("between 1 and {MAX_POINTS} points of {d} finite values");
            return Err(Error::parameter(
                "landmarks",
                expected,
                format!("{} points", points.len()),
            ));
        }
        self.collect.check(self.landmarks().is_some())?;
        if self.collect.moments && d > MAX_MOMENTS_DIMS {
            let expected = format!("without moments above {MAX_MOMENTS_DIMS} columns");
            return Err(Error::parameter("`collect`", expected, format!("{d} columns")));
        }
        let sums: f64 = crate::sketch::sums::shapes(self)
            .iter()
            .map(|(_, shape)| shape.iter().map(|n| *n as f64).product::<f64>())
            .sum();
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
