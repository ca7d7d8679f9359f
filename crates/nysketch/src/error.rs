//! What can go wrong, as data. The sentence is made here, once.
//!
//! Parameters stand in backquotes, with a value where one is advised: `` `scale=standard` ``. A command
//! line or another language puts its own spelling there with [`respell`].

use crate::ledger::LedgerError;
use crate::masking::error::MaskingError;

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Where a value of the input stands; rows are counted from 1.
///
/// ```
/// use nysketch::Place;
/// let at = Place { file: "day1.csv".into(), row: 12, column: "price".into() };
/// assert_eq!(at.to_string(), "day1.csv: row 12, column 'price'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File name, or a name for data that is not in a file.
    pub file: String,
    /// Row number in that file, from 1, not counting a header.
    pub row: u64,
    /// Column name.
    pub column: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: row {}, column '{}'", self.file, self.row, self.column)
    }
}

/// The rule of FORMAT.md that a file breaks.
///
/// ```
/// use nysketch::{Error, FormatError, PlanParams, Sketch, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let plan = plan_for(&Table::unnamed(1, vec![1.0, 2.0])?, PlanParams::default())?.0;
/// let mut bytes = plan.to_bytes();
/// let error = Sketch::from_bytes(&bytes).unwrap_err();
/// assert!(matches!(error, Error::Format(FormatError::Kind { expected: "sketch", .. })));
/// // One flipped bit.
/// bytes[100] ^= 1;
/// assert!(nysketch::Plan::from_bytes(&bytes).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant says what its fields hold")]
#[non_exhaustive]
pub enum FormatError {
    #[error("not a nysketch file: {0}")]
    Container(String),
    #[error("not a nysketch file: the metadata key 'nysketch' is missing")]
    NoMetadata,
    #[error(
        "damaged file: the checksum is {found:08x} but the bytes give {expected:08x}; copy or make it again"
    )]
    Checksum { found: u32, expected: u32 },
    #[error("damaged file: the metadata is not valid: {0}")]
    Metadata(String),
    #[error(
        "the file has format version {found}, this program reads versions 1 to 4; use a newer nysketch"
    )]
    Version { found: String },
    #[error("the file has a section '{0}' that this program does not know; use a newer nysketch")]
    Section(String),
    #[error(
        "damaged file: the digest of the section '{section}' is {expected}, the file says {found}"
    )]
    SectionDigest { section: &'static str, expected: String, found: String },
    #[error("the file is a {found}, but a {expected} is needed here")]
    Kind { expected: &'static str, found: String },
    #[error(
        "the file is a masked sketch, which says nothing by itself; add up all files of its session with 'nysketch merge'"
    )]
    Masked,
    #[error("damaged file: the tensor '{0}' is missing")]
    MissingTensor(String),
    #[error("damaged file: the tensor '{0}' does not belong there")]
    UnexpectedTensor(String),
    #[error("damaged file: the tensor '{name}' should be {expected}, found {found}")]
    Shape { name: String, expected: String, found: String },
    #[error("damaged file: {0}")]
    Value(String),
    #[error("damaged file: the plan's fingerprint is {expected}, the file says {found}")]
    Fingerprint { expected: String, found: String },
    #[error("damaged file: its bytes are not the canonical ones for its content")]
    NotCanonical,
}

/// Not as its source: what went wrong is part of the message already.
impl From<nysketch_cuda::DeviceError> for Error {
    fn from(error: nysketch_cuda::DeviceError) -> Self {
        Error::Device(error)
    }
}

/// Everything the library refuses. Fields say what, where and how much; the message says what to do.
///
/// ```
/// use nysketch::{Error, PlanParams, Table, plan_for};
/// # fn main() -> nysketch::Result<()> {
/// let table = Table::unnamed(2, vec![1.0, 2.0, 3.0, f64::INFINITY])?;
/// match plan_for(&table, PlanParams::default()) {
///     Err(Error::NonFinite { at, value }) => {
///         assert_eq!((at.row, at.column.as_str(), value), (2, "c1", f64::INFINITY));
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that is NaN, infinite, missing or too large for distances.
    #[error("{at}: the value is {}; clean the row, or skip such rows with `skip_invalid`", not_a_number(*.value))]
    NonFinite {
        /// Where.
        at: Place,
        /// What was found.
        value: f64,
    },
    /// A value too far from the plan's centre for the exact sums.
    #[error(
        "{at}: {} is too far from the plan's centre {} (limit ±{limit:.3e}); make a plan that has seen such rows, or use `skip_invalid`", number(*.value), number(*.centre)
    )]
    OutOfRange {
        /// Where.
        at: Place,
        /// What was found.
        value: f64,
        /// The plan's centre of this column.
        centre: f64,
        /// The largest distance from the centre the plan allows.
        limit: f64,
    },
    /// A row weight that is not within `0 ..= 2³²−1` of the plan's units.
    #[error("{at}: the weight {value} is not between 0 and {}, the most that `weight_unit` {unit} allows", *.unit * f64::from(u32::MAX))]
    BadWeight {
        /// Where.
        at: Place,
        /// What was found.
        value: f64,
        /// The plan's weight unit.
        unit: f64,
    },
    /// A row weight below zero.
    #[error("{at}: the weight {value} is negative")]
    NegativeWeight {
        /// Where.
        at: Place,
        /// What was found.
        value: f64,
    },
    /// A row whose group is missing.
    #[error("{at}: the group is missing; clean the row, or skip such rows with `skip_invalid`")]
    NoGroup {
        /// Where.
        at: Place,
    },
    /// More groups than may be.
    #[error(
        "column '{column}' has more than {limit} different values; group by a coarser column, or raise `max_groups`"
    )]
    TooManyGroups {
        /// Column name.
        column: String,
        /// Most groups.
        limit: usize,
    },
    /// More than a command does unasked; see [`work`](crate::work).
    #[error(
        "{what} would take about {operations:.0e} operations and {gigabytes:.1} GB of memory, more than the limit; {}`max_work={factor}` allows it",
        .instead.map_or(String::new(), |instead| format!("{instead}, and "))
    )]
    TooMuchWork {
        /// What was asked for.
        what: &'static str,
        /// Floating-point operations.
        operations: f64,
        /// Memory.
        gigabytes: f64,
        /// How many times the limit that is.
        factor: f64,
        /// What takes less.
        instead: Option<&'static str>,
    },
    /// No row at all, or none that is valid.
    #[error("the input has no rows{}", if *.skipped > 0 { format!(" left: all {} were skipped as invalid", .skipped) } else { String::new() })]
    NoRows {
        /// Rows that were skipped as invalid.
        skipped: u64,
    },
    /// The sums hold at most [`MAX_WEIGHT`](crate::fixed::MAX_WEIGHT) rows.
    #[error(
        "the sketch would hold {rows} rows (weights counted); exact sums are guaranteed up to {}",
        crate::fixed::MAX_WEIGHT
    )]
    TooManyRows {
        /// Rows it would hold.
        rows: i128,
    },
    /// More landmarks asked for than there are rows.
    #[error(
        "{landmarks} landmarks were asked for but there are only {rows} rows to take them from; ask for at most {rows}"
    )]
    TooFewRows {
        /// Landmarks asked for.
        landmarks: usize,
        /// Rows there are.
        rows: usize,
    },
    /// A column whose spread does not suit 32-bit floating-point distances.
    #[error(
        "column '{column}' varies by ±{spread:.3e}, outside {low:.0e} … {high:.0e}; {}exclude the column, or bring it to other units", if *.high < 1e99 { "use `scale=standard`, " } else { "" }
    )]
    BadSpread {
        /// Column name.
        column: String,
        /// Largest distance from the centre.
        spread: f64,
        /// Least spread of the widest column.
        low: f64,
        /// Largest spread.
        high: f64,
    },
    /// A question that a plan alone, or a sketch of nothing, cannot answer.
    #[error("{option} needs a sketch that has rows, got {got}")]
    NeedsSketch {
        /// What was asked for.
        option: &'static str,
        /// What there is.
        got: &'static str,
    },
    /// A parameter outside its range.
    #[error("{name} must be {expected}, got {got}")]
    Parameter {
        /// Its name on the command line.
        name: &'static str,
        /// What is allowed.
        expected: String,
        /// What was given.
        got: String,
    },
    /// Two sketches that do not measure the same thing.
    #[error(
        "the sketches come from different plans ({left} and {right}); sketch every part with the same `plan`"
    )]
    PlanMismatch {
        /// Fingerprint of the first.
        left: String,
        /// Fingerprint of the second.
        right: String,
    },
    /// Two sketches whose rows are not dealt to the same folds.
    #[error(
        "cannot {action} a sketch {} and one {}; sketch both with the same `folds`, or leave them out with `drop_folds`",
        folded(.left), folded(.right)
    )]
    FoldMismatch {
        /// What was tried.
        action: &'static str,
        /// The folds of the first, if it has some.
        left: Option<String>,
        /// The folds of the second, if it has some.
        right: Option<String>,
    },
    /// A question that only folds answer.
    #[error("{what} needs a sketch with folds; sketch the rows with `folds=16`")]
    NoFolds {
        /// What was asked for.
        what: &'static str,
    },
    /// A fold that cannot be left out or looked at, since it has no rows.
    #[error(
        "{what} needs rows in every fold, but {empty} of {folds} have none; use fewer folds, or deal them by a column with more different values"
    )]
    EmptyFolds {
        /// What was asked for.
        what: &'static str,
        /// How many are empty.
        empty: usize,
        /// The folds.
        folds: String,
    },
    /// Witness rows of another plan than the sketch's.
    #[error(
        "the sketch was made with another plan ({sketch}) than this one ({plan}); give the plan that it was made with"
    )]
    AnotherPlan {
        /// Fingerprint of the sketch's plan.
        sketch: String,
        /// Fingerprint of the plan that was given.
        plan: String,
    },
    /// A merge or subtraction whose result is no sketch of any rows.
    #[error("cannot {action}: {what} would {how}{}", if *.action == "subtract" { ", so the second sketch holds rows that the first does not" } else { "" })]
    Impossible {
        /// What was tried.
        action: &'static str,
        /// Which sum.
        what: String,
        /// What would happen to it.
        how: String,
    },
    /// A file that is not a valid plan or sketch.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Rows in the memory of a GPU that only this machine's processors can add.
    #[error(
        "rows in GPU memory cannot be sketched where {reason}; `device=cpu` copies them to this machine"
    )]
    NotOnDevice {
        /// What the plan or the sketch asks for.
        reason: &'static str,
    },
    /// A GPU that cannot be used, or did not finish.
    #[error("{0}; `device=cpu` works without a GPU")]
    Device(nysketch_cuda::DeviceError),
    /// A GPU whose sums are not those of FORMAT.md, or whose distances are not those of this machine's processors.
    #[error(
        "{name} does not compute what FORMAT.md defines, so its results cannot be trusted; use `device=cpu`"
    )]
    WrongDevice {
        /// Its name.
        name: String,
    },
    /// A sketch that cannot be masked, or masked sketches that cannot be added up.
    #[error(transparent)]
    Masking(#[from] MaskingError),
    /// A ledger that cannot be used, or that forbids a use.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A sketch that does not keep the sums a decoder needs.
    #[error(
        "{task} needs {what}, which this sketch does not keep; sketch again with `collect={what}`"
    )]
    MissingSums {
        /// What was to be learned.
        task: &'static str,
        /// Which sums.
        what: String,
    },
    /// More centres or components than the sketch can tell apart.
    #[error(
        "k = {k} is more than the {available} {what} of the sketch; ask for at most {available}"
    )]
    TooManyComponents {
        /// Asked for.
        k: usize,
        /// There are.
        available: usize,
        /// Of what.
        what: &'static str,
    },
    /// More centres or components than cells, which other landmarks would change.
    #[error(
        "k = {k} is more than the {available} cells with rows of the sketch; ask for at most {available}, or, if the \
         rows have more different values than that, plan with `clusters={k}`"
    )]
    TooFewCells {
        /// Asked for.
        k: usize,
        /// Cells with rows.
        available: usize,
    },
    /// Constraints on atoms that leave no room for all of them.
    #[error(
        "{k} atoms at least {separation} apart do not fit{}; lower `separation` or `k`, or raise `radius`",
        .radius.map_or(String::new(), |r| format!(" within {r} of the centre"))
    )]
    NoRoom {
        /// Atoms asked for.
        k: usize,
        /// Least distance between two.
        separation: f64,
        /// Largest distance from the plan's centre.
        radius: Option<f64>,
    },
    /// A model file that cannot be used.
    #[error("the model {how}")]
    BadModel {
        /// What is wrong.
        how: String,
    },
    /// A matrix algorithm did not converge.
    #[error("{what} did not converge on a {size} x {size} matrix")]
    NoConvergence {
        /// Which algorithm.
        what: &'static str,
        /// Size of the matrix.
        size: usize,
    },
    /// The reader of the rows failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// There is no noise without randomness.
    #[error("the operating system gives no random numbers: {0}")]
    Randomness(String),
    /// Noise is as large as what one row adds, which only a private plan bounds.
    #[error(
        "the plan of this sketch is not private: it was made from rows, which it shows, and does not bound what one row adds; \
         make one with `private` and `bounds`, from public rows or none, and sketch with it"
    )]
    NotPrivate,
    /// What needs exact sums was asked of an estimate from a release.
    #[error(
        "cannot {action} an estimate from a release: its sums have noise, which nothing but learning allows for"
    )]
    Released {
        /// What was asked for.
        action: &'static str,
    },
    /// Rows of people were to be subtracted.
    #[error(
        "the plan protects people by '{column}'; of those with more rows than count, others would count without what is subtracted, so sketch the rows that are left instead"
    )]
    PeopleSubtracted {
        /// The column that says whose row it is.
        column: String,
    },
    /// The caller asked to stop.
    #[error("stopped before the end; nothing was written")]
    Cancelled,
}

impl Error {
    /// Whether a GPU could not be used or did not finish, which others may do.
    pub fn is_of_device(&self) -> bool {
        matches!(self, Error::Device(_) | Error::WrongDevice { .. })
    }

    /// The row that the error names, if it names one.
    pub fn row(&self) -> Option<u64> {
        match self {
            Error::NonFinite { at, .. }
            | Error::OutOfRange { at, .. }
            | Error::BadWeight { at, .. }
            | Error::NegativeWeight { at, .. }
            | Error::NoGroup { at } => Some(at.row),
            _ => None,
        }
    }

    /// The same error with another number of the row that it names, if it names one.
    pub(crate) fn renumbered(mut self, number: impl Fn(u64) -> u64) -> Self {
        if let Error::NonFinite { at, .. }
        | Error::OutOfRange { at, .. }
        | Error::BadWeight { at, .. }
        | Error::NegativeWeight { at, .. }
        | Error::NoGroup { at } = &mut self
        {
            at.row = number(at.row);
        }
        self
    }

    /// Whether what was asked for is wrong, as opposed to the data.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::Parameter { .. }
                | Error::NoRoom { .. }
                | Error::NeedsSketch { .. }
                | Error::Masking(MaskingError::PartyId { .. } | MaskingError::Session { .. })
        )
    }

    /// Wraps a reader's own error.
    pub fn source(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Source(error.into())
    }

    pub(crate) fn parameter(
        name: &'static str,
        expected: impl Into<String>,
        got: impl ToString,
    ) -> Self {
        Error::Parameter { name, expected: expected.into(), got: got.to_string() }
    }
}

/// Parameters that messages name.
const PARAMETERS: [&str; 76] = [
    "again",
    "bandwidth",
    "bounds",
    "by",
    "categorical",
    "clusters",
    "collect",
    "columns",
    "confidence",
    "covariance",
    "cross_validate",
    "dates",
    "decoder",
    "device",
    "delimiter",
    "delta",
    "dims",
    "disjoint_people",
    "draws",
    "drop_folds",
    "epsilon",
    "exclude",
    "features",
    "flag",
    "fold_by",
    "folds",
    "format",
    "frequencies",
    "header",
    "honest",
    "init",
    "init_covariances",
    "init_weights",
    "intervals",
    "k",
    "kernel",
    "known_covariance",
    "known_variance",
    "lambda",
    "landmarks",
    "landmarks_from",
    "level",
    "leverage_lambda",
    "log",
    "max_groups",
    "max_iterations",
    "max_rows_per",
    "max_work",
    "min_variance",
    "missing",
    "model",
    "most_clusters",
    "new_key",
    "no_header",
    "numeric",
    "plan",
    "private",
    "public",
    "radius",
    "release",
    "restarts",
    "sample_rows",
    "sampling",
    "scale",
    "secants",
    "separation",
    "skip_invalid",
    "spend",
    "task",
    "theory",
    "tolerance",
    "unit",
    "weight_column",
    "weight_unit",
    "weights",
    "witnesses",
];

/// A message with every parameter in backquotes, and its value if it has one, spelled by `spell`.
///
/// ```
/// use nysketch::error::respell;
/// let option = |name: &str, value: Option<&str>| match value {
///     Some(value) => format!("--{name} {value}"),
///     None => format!("--{name}"),
/// };
/// assert_eq!(respell("use `scale=standard`", option), "use --scale standard");
/// ```
pub fn respell(message: &str, spell: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut pieces = message.split('`');
    let mut out = pieces.next().unwrap_or_default().to_string();
    // Every second piece stands between two backquotes, unless one of them is the user's own.
    let mut quoted = true;
    for piece in pieces {
        let (name, value) = match piece.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (piece, None),
        };
        if quoted && PARAMETERS.contains(&name) {
            out.push_str(&spell(name, value));
            quoted = false;
        } else if quoted {
            out.push('`');
            out.push_str(piece);
        } else {
            out.push_str(piece);
            quoted = true;
        }
    }
    out
}

/// The folds of a sketch in a sentence.
fn folded(folds: &Option<String>) -> String {
    folds.as_ref().map_or("without folds".into(), |folds| format!("with {folds}"))
}

/// Digits where they are few, else powers of ten.
fn number(x: f64) -> String {
    if x == 0.0 || (1e-5..1e15).contains(&x.abs()) { x.to_string() } else { format!("{x:e}") }
}

fn not_a_number(value: f64) -> &'static str {
    match value {
        v if v.is_nan() => "missing or not a number (NaN)",
        v if v.is_infinite() => "infinite",
        _ => "beyond ±1e100",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_respelled_and_nothing_else() {
        let spell = |name: &str, value: Option<&str>| format!("<{name}:{}>", value.unwrap_or("-"));
        let text = |s: &str| respell(s, spell);
        assert_eq!(text("`k` must be"), "<k:-> must be");
        assert_eq!(
            text("a`b`: use `scale=standard`, or not"),
            "a`b`: use <scale:standard>, or not"
        );
        assert_eq!(text("`k``dims`"), "<k:-><dims:->");
        assert_eq!(text("no parameter, one ` and 'k'"), "no parameter, one ` and 'k'");
        assert_eq!(text("odd ` then `radius`"), "odd ` then <radius:->");
    }
}
