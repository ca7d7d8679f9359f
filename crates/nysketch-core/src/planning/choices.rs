//! Choices of planning parameters by name.

use crate::error::names::{Choice, Named, name_of};
use crate::error::{Error, Result};
use crate::recipe::Step;

/// The feature map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeatureKind {
    /// Kernel values at landmarks.
    #[default]
    Nystrom,
    /// Random Fourier features.
    Fourier,
    /// Random Fourier features with frequencies of adapted lengths.
    AdaptedFourier,
}

impl Named for FeatureKind {
    const PARAMETER: &'static str = "`features`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(FeatureKind::Nystrom, "nystrom", "Kernel values at landmarks"),
        Choice::new(FeatureKind::Fourier, "fourier", "Random cosines and sines"),
        Choice::new(
            FeatureKind::AdaptedFourier,
            "adapted-fourier",
            "The same, with frequencies of adapted lengths (Keriven et al. 2017)",
        ),
    ];
}

impl FeatureKind {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}

/// The number of landmarks.
///
/// ```
/// use nysketch_core::LandmarkCount;
/// # fn main() -> nysketch_core::Result<()> {
/// assert_eq!("auto".parse::<LandmarkCount>()?, LandmarkCount::Auto);
/// assert_eq!("200".parse::<LandmarkCount>()?, LandmarkCount::Number(200));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandmarkCount {
    /// A given number.
    Number(usize),
    /// Chosen from the spectrum of the kernel and the number of clusters.
    Auto,
}

impl std::str::FromStr for LandmarkCount {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(LandmarkCount::Auto),
            number => number
                .parse()
                .map(LandmarkCount::Number)
                .map_err(|_| Error::parameter("`landmarks`", "a number or auto", number)),
        }
    }
}

/// The scale of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Columns are not scaled.
    #[default]
    None,
    /// Columns are divided by their standard deviation.
    Standard,
    /// Columns are divided by their interquartile range over that of a standard Gaussian.
    Robust,
}

impl Named for Scale {
    const PARAMETER: &'static str = "`scale`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Scale::None, "none", "Unscaled columns"),
        Choice::new(Scale::Standard, "standard", "Columns divided by their standard deviation"),
        Choice::new(
            Scale::Robust,
            "robust",
            "Columns divided by the width of their middle half (quartiles of the sample)",
        ),
    ];
}

impl Scale {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}

/// Treatment of rows with missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// `Partial` if values are missing while planning, otherwise `Error`.
    #[default]
    Auto,
    /// Rows with missing values are invalid.
    Error,
    /// Rows with missing values contribute the values they have.
    Partial,
}

impl Named for Missing {
    const PARAMETER: &'static str = "`missing`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(
            Missing::Auto,
            "auto",
            "partial where values are missing while planning, else error",
        ),
        Choice::new(Missing::Error, "error", "A row with a missing value is invalid"),
        Choice::new(Missing::Partial, "partial", "Rows count by the values they have"),
    ];
}

impl Missing {
    /// Name of the option value.
    pub fn name(self) -> &'static str {
        name_of(self)
    }
}

/// A measured part of a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatePart {
    /// The timestamp itself.
    Time,
    /// The time of day, as a point on a circle.
    Hour,
    /// The time of the week, as a point on a circle.
    Weekday,
    /// The time of the year, as a point on a circle.
    Month,
}

impl Named for DatePart {
    const PARAMETER: &'static str = "`dates`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(DatePart::Time, "time", "Its position"),
        Choice::new(DatePart::Hour, "hour", "The time of the day, on a circle"),
        Choice::new(DatePart::Weekday, "weekday", "The time of the week, on a circle"),
        Choice::new(DatePart::Month, "month", "The time of the year, on a circle"),
    ];
}

impl DatePart {
    /// Parts that are measured by default.
    pub const DEFAULT: &'static [DatePart] = &[DatePart::Time, DatePart::Hour, DatePart::Weekday];

    /// Suffixes of the names of the resulting columns, and the steps that compute them.
    pub(super) fn steps(self) -> &'static [(&'static str, Step)] {
        match self {
            DatePart::Time => &[("", Step::Time)],
            DatePart::Hour => &[(".hour.sin", Step::HourSin), (".hour.cos", Step::HourCos)],
            DatePart::Weekday => {
                &[(".weekday.sin", Step::WeekdaySin), (".weekday.cos", Step::WeekdayCos)]
            }
            DatePart::Month => &[(".month.sin", Step::MonthSin), (".month.cos", Step::MonthCos)],
        }
    }
}

/// The number of rows from which landmarks are chosen.
///
/// ```
/// use nysketch_core::SampleRows;
/// # fn main() -> nysketch_core::Result<()> {
/// assert_eq!("all".parse::<SampleRows>()?, SampleRows::All);
/// assert_eq!("5000".parse::<SampleRows>()?, SampleRows::Count(5000));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRows {
    /// A uniform sample of [`DEFAULT_SAMPLE_ROWS`](super::DEFAULT_SAMPLE_ROWS) rows, or of four
    /// times the number of landmarks if that is more, with at most
    /// [`SAMPLE_VALUES`](super::SAMPLE_VALUES) values. At least twice as many rows as landmarks,
    /// and
    /// at least as many as retained rows.
    Default,
    /// A uniform sample of a given number of rows.
    Count(usize),
    /// All rows, in memory.
    All,
}

impl std::str::FromStr for SampleRows {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "all" => Ok(SampleRows::All),
            number => number
                .parse()
                .map(SampleRows::Count)
                .map_err(|_| Error::parameter("`sample_rows`", "a number or all", number)),
        }
    }
}
