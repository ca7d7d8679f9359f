//! Options for the rows to read, and for the device.

use super::values::{choices, delimiter, device, share};
use clap::{Args as ClapArgs, ValueEnum};
use nysketch::{DatePart, DeviceChoice, Named};
use nysketch_tables::Format;
use std::path::PathBuf;
use std::str::FromStr;

/// Where rows are worked on.
#[derive(Debug, ClapArgs)]
pub struct DeviceArg {
    /// Where to work on the rows: auto, cpu, cuda, or cuda:N for one GPU of several; the result is the same. With auto, on a
    /// GPU where there is one and the work is large enough to pay for starting it
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    pub device: DeviceChoice,
}

/// Which columns to read.
#[derive(Debug, Clone, Default, ClapArgs)]
pub struct ColumnArgs {
    /// Columns to read: names, ranges FIRST..LAST and patterns like 'x*' [default: all numbers, and texts of at most 50
    /// different values]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["cols", "column"])]
    pub columns: Option<Vec<String>>,
    /// Columns to leave out, written the same way
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["drop", "ignore", "exclude-columns"])]
    pub exclude: Vec<String>,
    /// Columns to read as categories, written the same way, whatever they hold and however many levels they have
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', aliases = ["categories", "categoricals"])]
    pub categorical: Vec<String>,
    /// Columns to read as numbers, written the same way, even if they look like text or like an id
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub numeric: Vec<String>,
    /// Columns of dates and times to read, written the same way, and what of them is measured: any of time, hour,
    /// weekday and month, as in when=hour+month [default: time+hour+weekday]
    #[arg(long, value_name = "A[=PART+…],…", value_delimiter = ',')]
    pub dates: Vec<DateArg>,
}

/// A column of dates, as it was typed.
#[derive(Debug, Clone)]
pub struct DateArg {
    /// A name, a range or a pattern.
    pub columns: String,
    /// What of it is measured.
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

/// What becomes of rows that lack values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum MissingArg {
    /// 'partial' where values are missing while planning, else 'error'
    #[default]
    Auto,
    /// A row that lacks a number is an error
    Error,
    /// Rows that lack a number are skipped and counted, like --skip-invalid
    Skip,
    /// Rows count by the values they have; those with less than a quarter of them are skipped
    Partial,
}

/// Which rows to read.
#[derive(Debug, Clone, ClapArgs)]
pub struct InputArgs {
    /// Files, folders or quoted patterns, read in this order: parquet, csv, tsv (also .gz, .zst),
    /// arrow, npy; '-' is csv or an Arrow stream on stdin, which can be read only once
    #[arg(required = true, value_name = "INPUT")]
    pub input: Vec<PathBuf>,
    /// Format of every file [default: by content, then by extension]
    #[arg(long, value_parser = choices::<Format>(), value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The first line of csv files is data; columns are named c0, c1, …
    #[arg(long)]
    pub no_header: bool,
    /// The first line of csv files holds names, even if they look like numbers
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,
    /// Character between the columns of csv files [default: comma, tab for .tsv]
    #[arg(long, value_name = "C", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Skip and count rows with missing, infinite or unreadable values instead of stopping
    #[arg(long)]
    pub skip_invalid: bool,
    /// Largest share of the rows that may be skipped before it is an error
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share)]
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
