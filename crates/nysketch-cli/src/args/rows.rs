//! Options for the rows to read, and for the device.

use super::values::{choices, delimiter, device, share};
use clap::{Args as ClapArgs, ValueEnum};
use nysketch::{DatePart, DeviceChoice, Named};
use nysketch_tables::Format;
use std::path::PathBuf;
use std::str::FromStr;

/// The device.
#[derive(Debug, ClapArgs)]
pub struct DeviceArg {
    /// Device for the work: auto, cpu, cuda, or cuda:N for one of several GPUs; results are the
    /// same. 'auto' uses a GPU for work that is large enough
    #[arg(hide_short_help = true, long, value_name = "DEVICE", default_value = "auto",
        value_parser = device)]
    pub device: DeviceChoice,
}

/// The columns to read.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct ColumnArgs {
    /// Columns to read: names, ranges FIRST..LAST and patterns such as 'x*' [default: numbers, and
    /// text with at most 50 different values]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["cols", "column"])]
    pub columns: Option<Vec<String>>,
    /// Columns to leave out: names, ranges and patterns
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["drop", "ignore",
        "exclude-columns"])]
    pub exclude: Vec<String>,
    /// Columns to read as categories, whatever they contain and however many levels they have
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["categories",
        "categoricals"])]
    pub categorical: Vec<String>,
    /// Columns to read as numbers, even if they look like text or ids
    #[arg(hide_short_help = true, long, value_name = "A,B,…", value_delimiter = ',')]
    pub numeric: Vec<String>,
    /// Columns of dates and times to read, with the parts to measure (time, hour, weekday, month),
    /// as in when=hour+month [default: time+hour+weekday]
    #[arg(long, value_name = "A[=PART+…],…", value_delimiter = ',')]
    pub dates: Vec<DateArg>,
}

/// A column of dates, as it was typed.
#[derive(Debug, Clone)]
pub struct DateArg {
    /// A name, a range or a pattern.
    pub columns: String,
    /// The parts to measure.
    pub parts: Vec<DatePart>,
}

impl FromStr for DateArg {
    type Err = String;

    /// COLUMN, or COLUMN=PART+PART.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((columns, parts)) = text.rsplit_once('=') else {
            return Ok(DateArg { columns: text.to_string(), parts: DatePart::DEFAULT.to_vec() });
        };
        let parts: Result<Vec<DatePart>, _> = parts.split('+').map(DatePart::from_name).collect();
        let parts =
            parts.map_err(|_| "expected COLUMN, or COLUMN=PART+… of time, hour, weekday, month")?;
        Ok(DateArg { columns: columns.to_string(), parts })
    }
}

/// The treatment of rows with missing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MissingArg {
    /// 'partial' if values are missing while planning, otherwise 'error'
    #[default]
    Auto,
    /// A row with a missing number is an error
    Error,
    /// Rows with a missing number are skipped and counted, as with --skip-invalid
    Skip,
    /// Rows contribute the values they have; rows with less than a quarter of their values are
    /// skipped
    Partial,
}

/// The rows to read.
#[derive(Debug, Clone, ClapArgs)]
pub struct InputArgs {
    /// Files, folders or quoted patterns, read in this order: Parquet, csv and tsv (also .gz and
    /// .zst), Arrow, npy; '-' reads csv or an Arrow stream from stdin
    #[arg(required = true, value_name = "INPUT")]
    pub input: Vec<PathBuf>,
    /// Format of every file [default: recognised by content, then by extension]
    #[arg(hide_short_help = true, long, value_parser = choices::<Format>(), value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Treat the first line of csv files as data; columns are named c0, c1, …
    #[arg(hide_short_help = true, long)]
    pub no_header: bool,
    /// Treat the first line of csv files as names, even if they look like numbers
    #[arg(hide_short_help = true, long, conflicts_with = "no_header")]
    pub header: bool,
    /// Character between the columns of csv files, '\t' for a tab [default: comma; tab for .tsv]
    #[arg(hide_short_help = true, long, value_name = "C", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Skip and count rows with missing, infinite or unreadable values instead of stopping
    #[arg(long)]
    pub skip_invalid: bool,
    /// Largest share of rows that may be skipped before the command fails
    #[arg(hide_short_help = true, long, value_name = "SHARE", default_value_t = 0.5,
        value_parser = share)]
    pub max_skipped: f64,
}

impl InputArgs {
    /// One file, as it is.
    pub fn of(path: &std::path::Path) -> Self {
        InputArgs {
            input: vec![path.to_path_buf()],
            format: None,
            no_header: false,
            header: false,
            delimiter: None,
            skip_invalid: false,
            max_skipped: 1.0,
        }
    }
}
