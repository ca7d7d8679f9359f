//! Errors as data. The message of each error is written here, once.
//!
//! Messages put parameters in backquotes, with a value if the message recommends one: ``
//! `scale=standard` ``. A command line or another language replaces them with its own spelling,
//! using [`respell`].

mod code;
pub mod ledger;
pub mod masking;
pub mod names;

use crate::error::ledger::LedgerError;
use crate::error::masking::MaskingError;

/// Result of a fallible function of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// Position of a value in the input. Rows are counted from 1.
///
/// ```
/// use nysketch_core::Place;
/// let at = Place { file: "day1.csv".into(), row: 12, column: "price".into() };
/// assert_eq!(at.to_string(), "day1.csv: row 12, column 'price'");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the file, or of the data if it is not in a file.
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

/// The rule of FORMAT.md that a file violates.
///
/// ```
/// use nysketch_core::{Error, FormatError, PlanParams, Sketch, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let plan = plan_for(&Table::unnamed(1, vec![1.0, 2.0])?, PlanParams::default())?.plan;
/// let mut bytes = plan.to_bytes();
/// let error = Sketch::from_bytes(&bytes).unwrap_err();
/// assert!(matches!(error, Error::Format(FormatError::Kind { expected: "sketch", .. })));
/// // One flipped bit.
/// bytes[100] ^= 1;
/// assert!(nysketch_core::Plan::from_bytes(&bytes).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant explains its fields")]
#[non_exhaustive]
pub enum FormatError {
    #[error("not a nysketch file: {0}")]
    Container(String),
    #[error("not a nysketch file: the metadata key 'nysketch' is missing")]
    NoMetadata,
    #[error(
        "damaged file: the checksum is {found:08x} but the bytes give {expected:08x}; copy or make \
         it again"
    )]
    Checksum { found: u32, expected: u32 },
    #[error("damaged file: the metadata is not valid: {0}")]
    Metadata(String),
    #[error(
        "the file has format version {found}, this program reads versions 1 to 4; use a newer \
         nysketch"
    )]
    Version { found: String },
    #[error("the file has a section '{0}' that this program does not know; use a newer nysketch")]
    Section(String),
    #[error(
        "damaged file: the digest of the section '{section}' is {expected}, but the file has \
         {found}"
    )]
    SectionDigest { section: &'static str, expected: String, found: String },
    #[error("the file is a {found}, but a {expected} is needed here")]
    Kind { expected: &'static str, found: String },
    #[error(
        "the file is a masked sketch, which reveals nothing alone; merge all files of its session \
         with 'nysketch merge'"
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
    #[error("damaged file: the plan's fingerprint is {expected}, but the file has {found}")]
    Fingerprint { expected: String, found: String },
    #[error("damaged file: its bytes are not the canonical ones for its content")]
    NotCanonical,
}

/// `#[from]` would make the device error the source, and chains of sources would print its message
/// twice.
impl From<nysketch_cuda::DeviceError> for Error {
    fn from(error: nysketch_cuda::DeviceError) -> Self {
        Error::Device(error)
    }
}

/// Every error of the library. The fields hold the cause, the position and the amounts; the message
/// states the remedy.
///
/// ```
/// use nysketch_core::{Error, PlanParams, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
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
    /// The value is NaN, infinite, missing or too large for distances.
    #[error("{at}: the value is {}; clean the row, or skip such rows with `skip_invalid`",
        not_a_number(*.value))]
    NonFinite {
        /// Position of the value.
        at: Place,
        /// The value found.
        value: f64,
    },
    /// The value is too far from the plan's centre for the exact sums.
    #[error(
        "{at}: {} is too far from the plan's centre {} (limit ±{limit:.3e}); make a plan that has \
         seen such rows, or use `skip_invalid`", number(*.value), number(*.centre)
    )]
    OutOfRange {
        /// Position of the value.
        at: Place,
        /// The value found.
        value: f64,
        /// The plan's centre of this column.
        centre: f64,
        /// Largest distance from the centre that the plan allows.
        limit: f64,
    },
    /// The row weight is not within `0 ..= 2³²−1` of the plan's units.
    #[error("{at}: the weight {value} is not between 0 and {},
        the most that `weight_unit` {unit} allows", *.unit * f64::from(u32::MAX))]
    BadWeight {
        /// Position of the weight.
        at: Place,
        /// The weight found.
        value: f64,
        /// The plan's weight unit.
        unit: f64,
    },
    /// The row weight is negative.
    #[error("{at}: the weight {value} is negative")]
    NegativeWeight {
        /// Position of the weight.
        at: Place,
        /// The weight found.
        value: f64,
    },
    /// The group of a row is missing.
    #[error("{at}: the group is missing; clean the row, or skip such rows with `skip_invalid`")]
    NoGroup {
        /// Position of the group.
        at: Place,
    },
    /// There are more groups than the limit.
    #[error(
        "column '{column}' has more than {limit} different values; group by a coarser column, or \
         raise `max_groups`"
    )]
    TooManyGroups {
        /// Name of the column of groups.
        column: String,
        /// Largest allowed number of groups.
        limit: usize,
    },
    /// The task takes more work than the default limit; see [`work`](crate::numeric::work).
    #[error(
        "{what} would take about {operations:.0e} operations and {gigabytes:.1} GB of memory, more \
         than the limit; {}`max_work={factor}` allows it",
        .instead.map_or(String::new(), |instead| format!("{instead}, and "))
    )]
    TooMuchWork {
        /// The requested task.
        what: &'static str,
        /// Floating-point operations it would take.
        operations: f64,
        /// Memory it would take, in gigabytes.
        gigabytes: f64,
        /// Work relative to the limit.
        factor: f64,
        /// A cheaper alternative, if there is one.
        instead: Option<&'static str>,
    },
    /// The input has no rows, or no valid rows.
    #[error("the input has no rows{}",
        if *.skipped > 0 { format!(" left: all {} were skipped as invalid",
        .skipped) } else { String::new() })]
    NoRows {
        /// Number of rows skipped as invalid.
        skipped: u64,
    },
    /// The sketch would hold more than [`MAX_WEIGHT`](crate::numeric::fixed::MAX_WEIGHT) rows.
    #[error(
        "the sketch would hold {rows} rows (weights counted); exact sums are guaranteed up to \
         {most}"
    )]
    TooManyRows {
        /// Number of rows it would hold.
        rows: i128,
        /// Most rows that it may hold.
        most: i128,
    },
    /// More landmarks were requested than there are rows.
    #[error(
        "{landmarks} landmarks were asked for but there are only {rows} rows to take them from; \
         ask for at most {rows}"
    )]
    TooFewRows {
        /// Number of landmarks requested.
        landmarks: usize,
        /// Number of rows available.
        rows: usize,
    },
    /// The spread of a column is outside the range of 32-bit floating-point distances.
    #[error(
        "column '{column}' varies by ±{spread:.3e}, outside {low:.0e} … {high:.0e}; {}exclude the \
         column, or bring it to other \
         units", if *.high < 1e99 { "use `scale=standard`, " } else { "" }
    )]
    BadSpread {
        /// Column name.
        column: String,
        /// Largest distance from the centre.
        spread: f64,
        /// Smallest allowed spread of the widest column.
        low: f64,
        /// Largest allowed spread.
        high: f64,
    },
    /// The option needs a sketch with rows, but got a plan or an empty sketch.
    #[error("{option} needs a sketch that has rows, got {got}")]
    NeedsSketch {
        /// The option that was given.
        option: &'static str,
        /// What was given instead of a sketch with rows.
        got: &'static str,
    },
    /// A parameter is outside its range.
    #[error("{name} must be {expected}, got {got}")]
    Parameter {
        /// Name of the parameter; in backquotes if it is an option.
        name: &'static str,
        /// Description of the allowed values.
        expected: String,
        /// The value given.
        got: String,
    },
    /// Two sketches were made with different plans.
    #[error(
        "the sketches come from different plans ({left} and {right}); sketch every part with the \
         same `plan`"
    )]
    PlanMismatch {
        /// Fingerprint of the first plan.
        left: String,
        /// Fingerprint of the second plan.
        right: String,
    },
    /// Two sketches assign rows to folds differently.
    #[error(
        "cannot {action} a sketch {} and one {}; sketch both with the same `folds`, or leave them \
         out with `drop_folds`",
        folded(.left), folded(.right)
    )]
    FoldMismatch {
        /// The operation that was attempted.
        action: &'static str,
        /// The folds of the first sketch, if any.
        left: Option<String>,
        /// The folds of the second sketch, if any.
        right: Option<String>,
    },
    /// The operation needs folds, but the sketch has none.
    #[error("{what} needs a sketch with folds; sketch the rows with `folds=16`")]
    NoFolds {
        /// The requested operation.
        what: &'static str,
    },
    /// The operation needs rows in every fold, but some folds are empty.
    #[error(
        "{what} needs rows in every fold, but {empty} of {folds} have none; use fewer folds, or \
         deal them by a column with more different values"
    )]
    EmptyFolds {
        /// The requested operation.
        what: &'static str,
        /// Number of empty folds.
        empty: usize,
        /// Number of folds, as text.
        folds: String,
    },
    /// The retained rows come from a plan other than the sketch's.
    #[error(
        "the sketch was made with another plan ({sketch}) than this one ({plan}); give the plan \
         that it was made with"
    )]
    AnotherPlan {
        /// Fingerprint of the sketch's plan.
        sketch: String,
        /// Fingerprint of the given plan.
        plan: String,
    },
    /// The result of a merge or subtraction would not be the sketch of any rows.
    #[error("cannot {action}: {what} would {how}{}", if *.action == "subtract" { ",
        so the second sketch holds rows that the first does not" } else { "" })]
    Impossible {
        /// The operation that was attempted.
        action: &'static str,
        /// The sum that would be invalid.
        what: String,
        /// How it would be invalid.
        how: String,
    },
    /// The file is not a valid plan or sketch.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The rows are in GPU memory, but only the CPU can sketch them.
    #[error(
        "rows in GPU memory cannot be sketched where {reason}; `device=cpu` copies them to this \
         machine"
    )]
    NotOnDevice {
        /// The part of the plan or of the request that needs the CPU.
        reason: &'static str,
    },
    /// The GPU cannot be used, or failed before it finished.
    #[error("{0}; `device=cpu` works without a GPU")]
    Device(nysketch_cuda::DeviceError),
    /// The sums of the GPU differ from those FORMAT.md defines, or its distances differ from those
    /// of the CPU.
    #[error(
        "{name} does not compute what FORMAT.md defines, so its results cannot be trusted; use \
         `device=cpu`"
    )]
    WrongDevice {
        /// Name of the GPU.
        name: String,
    },
    /// The sketch cannot be masked, or the masked sketches cannot be added up.
    #[error(transparent)]
    Masking(#[from] MaskingError),
    /// A ledger cannot be used, or forbids a use.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The sketch does not keep the sums that a decoder needs.
    #[error(
        "{task} needs {what}, which this sketch does not keep; sketch again with `collect={what}`"
    )]
    MissingSums {
        /// The task of the decoder.
        task: &'static str,
        /// Names of the missing sums.
        what: String,
    },
    /// More centres or components were requested than the sketch can distinguish.
    #[error(
        "k = {k} is more than the {available} {what} of the sketch; ask for at most {available}"
    )]
    TooManyComponents {
        /// Number requested.
        k: usize,
        /// Number available.
        available: usize,
        /// The unit of the available number.
        what: &'static str,
    },
    /// More centres or components were requested than there are cells. A plan with other landmarks
    /// would have more.
    #[error(
        "k = {k} is more than the {available} cells with rows of the sketch; ask for at most {available}, or, if the \
         rows have more different values than that, plan with `clusters={k}`"
    )]
    TooFewCells {
        /// Number requested.
        k: usize,
        /// Number of cells with rows.
        available: usize,
    },
    /// The constraints on the atoms leave no room for all of them.
    #[error(
        "{k} atoms at least {separation} apart do not fit{}; lower `separation` or `k`, or raise \
         `radius`",
        .radius.map_or(String::new(), |r| format!(" within {r} of the centre"))
    )]
    NoRoom {
        /// Number of atoms requested.
        k: usize,
        /// Smallest allowed distance between two atoms.
        separation: f64,
        /// Largest allowed distance from the plan's centre.
        radius: Option<f64>,
    },
    /// The model file cannot be used.
    #[error("the model {how}")]
    BadModel {
        /// The reason.
        how: String,
    },
    /// A matrix algorithm did not converge.
    #[error("{what} did not converge on a {size} x {size} matrix")]
    NoConvergence {
        /// Name of the algorithm.
        what: &'static str,
        /// Size of the matrix.
        size: usize,
    },
    /// The reader of the rows failed.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// The operating system's random source failed, so noise cannot be drawn.
    #[error("the operating system's random source failed: {0}")]
    Randomness(String),
    /// The plan is not private. The amount of noise depends on the largest contribution of one row,
    /// and only a private plan bounds it.
    #[error(
        "the plan of this sketch is not private: it was made from rows, which it shows, and does not bound what one row adds; \
         make one with `private` and `bounds`, from public rows or none, and sketch with it"
    )]
    NotPrivate,
    /// Two computations of the sensitivity of sums disagree, which is a defect of the program.
    #[error(
        "nothing was released: a row is said to move {mechanism} by at most √{claimed} units, but a second computation finds √{bound}; \
         this is a defect of the program, please report it with the plan"
    )]
    SensitivityContradicted {
        /// Which sums.
        mechanism: &'static str,
        /// The square that the noise is for.
        claimed: String,
        /// The square by the second computation.
        bound: String,
    },
    /// The noise is too small for the sensitivity of the sums, which is a defect of the program.
    #[error(
        "nothing was released: noise of variance {noise} on {mechanism} is too little for its budget; \
         this is a defect of the program, please report it with the plan"
    )]
    TooLittleNoise {
        /// Which sums.
        mechanism: &'static str,
        /// The variance.
        noise: String,
    },
    /// The operation needs exact sums, but was called on the reconstruction of a release.
    #[error(
        "cannot {action} the reconstruction of a release: noisy releases support only fit, inspect \
         and report"
    )]
    Released {
        /// The requested operation.
        action: &'static str,
    },
    /// Rows cannot be subtracted, because the plan protects people rather than rows.
    #[error(
        "the plan protects people by '{column}' and counts a limited number of rows of each; \
         without the subtracted rows, other rows would count. Sketch the remaining rows instead"
    )]
    PeopleSubtracted {
        /// Name of the column that identifies people.
        column: String,
    },
    /// The caller cancelled the operation.
    #[error("stopped before the end; nothing was written")]
    Cancelled,
}

impl Error {
    /// Whether a GPU could not be used or failed before it finished. Another GPU may succeed.
    pub fn is_of_device(&self) -> bool {
        matches!(self, Error::Device(_) | Error::WrongDevice { .. })
    }

    /// The row number that the error names, if it names one.
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

    /// Changes the row number that the error names, if it names one, by `number`.
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

    /// Whether the request is wrong, as opposed to the data.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::Parameter { .. }
                | Error::NoRoom { .. }
                | Error::NeedsSketch { .. }
                | Error::Masking(MaskingError::PartyId { .. } | MaskingError::Session { .. })
        )
    }

    /// Wraps an error of a row reader.
    pub fn source(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Error::Source(error.into())
    }

    /// Refuses the value of a parameter.
    pub fn parameter(name: &'static str, expected: impl Into<String>, got: impl ToString) -> Self {
        Error::Parameter { name, expected: expected.into(), got: got.to_string() }
    }
}

/// Names of the parameters that messages mention.
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

/// Returns `message` with each parameter in backquotes, and its value if it has one, replaced by
/// the result of `spell`.
///
/// ```
/// use nysketch_core::error::respell;
/// let option = |name: &str, value: Option<&str>| match value {
///     Some(value) => format!("--{name} {value}"),
///     None => format!("--{name}"),
/// };
/// assert_eq!(respell("use `scale=standard`", option), "use --scale standard");
/// ```
pub fn respell(message: &str, spell: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut pieces = message.split('`');
    let mut out = pieces.next().unwrap_or_default().to_string();
    // Every second piece is between two backquotes, unless one of the backquotes is part of the
    // user's own text.
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

/// Describes the folds of a sketch in words.
fn folded(folds: &Option<String>) -> String {
    folds.as_ref().map_or("without folds".into(), |folds| format!("with {folds}"))
}

/// Formats a number in plain digits if that is short, and in scientific notation otherwise.
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
