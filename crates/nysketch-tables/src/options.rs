//! The options of reading tables.

use crate::store::{Local, Store};
use nysketch_core::{Choice, Named, Plan, Recipe};
use std::sync::Arc;

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated text, plain or compressed with gzip or Zstandard.
    Csv,
    /// Tab-separated text, plain or compressed with gzip or Zstandard.
    Tsv,
    /// NumPy array of one or two dimensions.
    Npy,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, file or stream.
    Arrow,
}

impl Named for Format {
    const PARAMETER: &'static str = "`format`";
    const TABLE: &'static [Choice<Self>] = &[
        Choice::new(Format::Csv, "csv", "Comma-separated text"),
        Choice::new(Format::Tsv, "tsv", "Tab-separated text"),
        Choice::new(Format::Npy, "npy", "NumPy array"),
        Choice::new(Format::Parquet, "parquet", "Apache Parquet"),
        Choice::new(Format::Arrow, "arrow", "Arrow IPC, file or stream"),
    ];
}

/// Whether the first line of a CSV file contains the names of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// The first line contains names; a line that looks like data is an error.
    #[default]
    Expected,
    /// The first line contains names, even if they are numbers.
    Present,
    /// There is no header; columns are called `c0`, `c1`, …
    Absent,
    /// The first line contains names unless all of its fields are numbers. Useful for tables such
    /// as matrices, which usually have no header.
    Guessed,
}

/// The columns to read and their types.
///
/// Numbers and booleans are numbers; text is a category. Dates are excluded by default. A vector is
/// one column per coordinate: `emb[0]`, `emb[1]`, …; the name `emb` selects all of its coordinates.
///
/// ```
/// use nysketch_core::RowSource;
/// use nysketch_tables::{Columns, Dataset, ReadOptions};
///
/// // All columns except one:
/// let some = Columns::default().except(["id"]);
/// // A name, a range of columns and a pattern:
/// let more = Columns::matching(["age", "x1..x9", "temp*"]);
/// // The columns of a plan or a model, in their order:
/// let these = Columns::exactly(["x1", "x2"]);
/// # let _ = (some, more, these);
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("flights.csv");
/// std::fs::write(&file, "when,carrier,gate,delay\n2013-01-01T05:15,UA,7,2\n2013-01-01T05:29,AA,,4\n")?;
/// let columns = Columns::default().categorical(["gate"]).dates(["when"]);
/// let flights = Dataset::open([file], &ReadOptions::default().columns(columns))?;
/// assert_eq!(flights.columns(), ["when", "delay"]);
/// assert!(flights.is_time(0));
/// let categories: Vec<&str> = flights.categories().iter().map(|c| c.name.as_str()).collect();
/// assert_eq!(categories, ["carrier", "gate"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Columns {
    /// Named columns, in this order. The list decides the type of each column, and values do not:
    /// in a CSV file, `true` and `false` are the numbers 1 and 0. Files that do not name their
    /// columns are matched by position.
    Exactly {
        /// Columns of numbers.
        numbers: Vec<String>,
        /// Columns of `numbers` that are points in time.
        times: Vec<String>,
        /// Columns of categories, of any type that can be written as text.
        categories: Vec<String>,
    },
    /// Columns that match a pattern, or all columns.
    ///
    /// Every pattern is a name, a range `FIRST..LAST` or has wildcards, such as `x*`.
    Matching {
        /// Columns to read; all numbers and all text if `None`.
        include: Option<Vec<String>>,
        /// Columns to exclude.
        exclude: Vec<String>,
        /// Columns to read as categories, whatever their type.
        categorical: Vec<String>,
        /// Columns to read as numbers, even if they look like text.
        numeric: Vec<String>,
        /// Columns to read as points in time.
        dates: Vec<String>,
    },
}

impl Default for Columns {
    /// All columns of numbers and of text.
    fn default() -> Self {
        Columns::Matching {
            include: None,
            exclude: Vec::new(),
            categorical: Vec::new(),
            numeric: Vec::new(),
            dates: Vec::new(),
        }
    }
}

/// Converts patterns or names to owned strings.
fn owned<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Vec<String> {
    patterns.into_iter().map(Into::into).collect()
}

impl Columns {
    /// Selects these columns of numbers, in this order.
    pub fn exactly<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let (times, categories) = (Vec::new(), Vec::new());
        Columns::Exactly { numbers: owned(names), times, categories }
    }

    /// Selects the columns that a plan or a model needs.
    ///
    /// ```
    /// use nysketch_core::Recipe;
    /// use nysketch_tables::Columns;
    ///
    /// assert_eq!(Columns::of_recipe(&Recipe::plain(["x", "y"])), Columns::exactly(["x", "y"]));
    /// ```
    pub fn of_recipe(recipe: &Recipe) -> Self {
        Columns::Exactly {
            numbers: recipe.inputs(),
            times: recipe.times(),
            categories: recipe.categories.iter().map(|c| c.name.clone()).collect(),
        }
    }

    /// Selects the columns that match a name, a range or a pattern.
    pub fn matching<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let mut columns = Columns::default();
        if let Columns::Matching { include, .. } = &mut columns {
            *include = Some(owned(patterns));
        }
        columns
    }

    /// Excludes some columns; from [`Columns::Exactly`] only names can be removed.
    pub fn except<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        let without = owned(patterns);
        match &mut self {
            Columns::Exactly { numbers, times, categories } => {
                for names in [numbers, times, categories] {
                    names.retain(|name| !without.contains(name));
                }
            }
            Columns::Matching { exclude, .. } => exclude.extend(without),
        }
        self
    }

    /// Reads some columns as categories, whatever their type.
    pub fn categorical<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        match &mut self {
            Columns::Exactly { categories: list, .. }
            | Columns::Matching { categorical: list, .. } => list.extend(owned(patterns)),
        }
        self
    }

    /// Reads some columns as numbers, even if they look like text.
    pub fn numeric<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        match &mut self {
            Columns::Exactly { numbers: list, .. } | Columns::Matching { numeric: list, .. } => {
                list.extend(owned(patterns));
            }
        }
        self
    }

    /// Reads some columns as points in time.
    pub fn dates<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        let more = owned(patterns);
        match &mut self {
            Columns::Exactly { numbers, times, .. } => {
                numbers.extend(more.clone());
                times.extend(more);
            }
            Columns::Matching { dates, .. } => dates.extend(more),
        }
        self
    }
}

/// The columns to read in addition to numbers and categories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extras {
    /// Column of row weights.
    pub weight: Option<String>,
    /// Column whose text is returned with every row, such as a group or a label.
    pub key: Option<String>,
    /// Patterns of columns to keep unchanged.
    pub keep: Vec<String>,
}

impl Extras {
    /// Returns the columns that are weights or keys.
    pub(crate) fn taken(&self) -> Vec<&str> {
        self.weight.iter().chain(&self.key).map(String::as_str).collect()
    }

    /// Sets the column of row weights.
    pub fn weight(mut self, column: Option<impl Into<String>>) -> Self {
        self.weight = column.map(Into::into);
        self
    }

    /// Sets the column whose text is returned with every row.
    pub fn key(mut self, column: Option<impl Into<String>>) -> Self {
        self.key = column.map(Into::into);
        self
    }

    /// Adds columns to keep unchanged.
    pub fn keep<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Self {
        self.keep = patterns.into_iter().map(Into::into).collect();
        self
    }
}

/// The options of reading tables. The defaults usually suffice: formats are recognised by content.
///
/// ```
/// use nysketch_tables::{Columns, Extras, Header, ReadOptions};
///
/// let options = ReadOptions::default()
///     .delimiter(b';')
///     .header(Header::Absent)
///     .columns(Columns::exactly(["c0", "c2"]))
///     .extras(Extras::default().weight(Some("c1")))
///     .skip_invalid(true);
/// # let _ = options;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Format of every file; if `None`, determined by the content, then by the extension.
    pub format: Option<Format>,
    /// Whether CSV files name their columns.
    pub header: Header,
    /// Separator of the columns in CSV files; if `None`, a comma, or a tab for `.tsv`.
    pub delimiter: Option<u8>,
    /// Whether text in a column of numbers of a CSV file is a missing value instead of an error.
    pub skip_invalid: bool,
    /// Whether missing values are expected. Otherwise, a missing value is reported before an error
    /// in a later row.
    pub allow_missing: bool,
    /// Whether each row is read separately, for private plans: no row can change how another row is
    /// read, or whether the table is read at all. Needs [`Columns::Exactly`].
    ///
    /// * A row that cannot be parsed is invalid and never an error: its numbers are infinite.
    /// * In a CSV file, a line is a row, and every line break ends it, also within quotes. The
    ///   first line names the columns, even if the names look like numbers, unless
    ///   [`header`](Self::header) is [`Header::Absent`]. Without a header, the columns are in the
    ///   given order or are called `c0`, `c1`, …, and the extension or [`format`](Self::format)
    ///   decides the format, because the first line is a row.
    /// * A CSV file may mix times with and without a zone. In a column of lists, each list needs
    ///   the coordinates that are read.
    /// * A declared type applies to all rows of a file. A column of an unusable type is an error.
    pub rowwise: bool,
    /// The columns to read and their types.
    pub columns: Columns,
    /// The columns to read in addition.
    pub extras: Extras,
    /// The store that contains the files.
    pub store: Arc<dyn Store>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            format: None,
            header: Header::default(),
            delimiter: None,
            skip_invalid: false,
            allow_missing: false,
            rowwise: false,
            columns: Columns::default(),
            extras: Extras::default(),
            store: Arc::new(Local),
        }
    }
}

impl ReadOptions {
    /// Sets the format of every file.
    pub fn format(mut self, format: impl Into<Option<Format>>) -> Self {
        self.format = format.into();
        self
    }

    /// Sets whether the first line of CSV files contains names.
    pub fn header(mut self, header: Header) -> Self {
        self.header = header;
        self
    }

    /// Sets the ASCII character that separates the columns of CSV files.
    pub fn delimiter(mut self, delimiter: impl Into<Option<u8>>) -> Self {
        self.delimiter = delimiter.into();
        self
    }

    /// Sets whether text in a column of numbers is a missing value, so that its row can be skipped.
    pub fn skip_invalid(mut self, skip: bool) -> Self {
        self.skip_invalid = skip;
        self
    }

    /// Sets whether missing values are expected.
    pub fn allow_missing(mut self, allow: bool) -> Self {
        self.allow_missing = allow;
        self
    }

    /// Sets whether rows are read separately.
    pub fn rowwise(mut self, rowwise: bool) -> Self {
        self.rowwise = rowwise;
        self
    }

    /// Reads the rows that a plan measures: the plan decides which columns are read and their
    /// types. Rows of a private plan are read separately.
    ///
    /// ```
    /// use nysketch_core::{PlanParams, PrivateParams, RowSource, plan_for, rows::read_in_order};
    /// use nysketch_tables::{Dataset, ReadOptions};
    ///
    /// let private = PrivateParams::new([("age".into(), 0.0, 120.0)]);
    /// let anywhere = private.anywhere(100, 0)?;
    /// let plan = plan_for(&anywhere, PlanParams::default().landmarks(5).private(private))?.plan;
    /// let folder = tempfile::tempdir()?;
    /// let file = folder.path().join("x.csv");
    /// std::fs::write(&file, "age\ntrue\n2013-01-31\n\"open\n47\n")?;
    /// let table = Dataset::open([&file], &ReadOptions::default().for_plan(&plan))?;
    /// let mut ages: Vec<f64> = Vec::new();
    /// read_in_order(&table, &(), |block| Ok(ages.extend(&block.values)))?;
    /// assert_eq!(ages, [1.0, f64::INFINITY, f64::INFINITY, 47.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_plan(self, plan: &Plan) -> Self {
        let private = plan.private.is_some();
        let options = self.for_recipe(&plan.recipe);
        let skip_invalid = options.skip_invalid || private;
        options.rowwise(private).skip_invalid(skip_invalid)
    }

    /// Whether the first line of a CSV file is a row, which must not affect how the file is read.
    pub(crate) fn first_line_is_row(&self) -> bool {
        self.rowwise && self.header == Header::Absent
    }

    /// Reads the rows to which a model is applied: the model decides which columns are read and
    /// their types.
    pub fn for_recipe(self, recipe: &Recipe) -> Self {
        self.columns(Columns::of_recipe(recipe)).allow_missing(recipe.least_present.is_some())
    }

    /// Sets the columns to read.
    pub fn columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }

    /// Sets the columns to read in addition to numbers and categories.
    pub fn extras(mut self, extras: Extras) -> Self {
        self.extras = extras;
        self
    }

    /// Sets the store that contains the files.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Arc::new(store);
        self
    }
}
