//! Tables as csv files, with lines that a hostile party could send.

use super::draw::Rng;
use super::plans::WHO;
use super::{Case, Reading};
use nysketch::Plan;
use nysketch_tables::Format;
use std::io::Write;

/// Fields with more than one possible meaning.
const FIELDS: [&[u8]; 58] = [
    b"true",
    b"True",
    b"TRUE",
    b"false",
    b"False",
    b"FALSE",
    b" true ",
    b"tRUE",
    b"yes",
    b"",
    b" ",
    b"NA",
    b"N/A",
    b"NaN",
    b"nan",
    b"-nan",
    b"null",
    b"None",
    b"#N/A",
    b"inf",
    b"-inf",
    b"Infinity",
    b"+1",
    b".5",
    b"5.",
    b"1e3",
    b"1E-3",
    b"1e400",
    b"-1e400",
    b"1e-400",
    b"0x10",
    b"1_000",
    b"1 000",
    b"9007199254740993",
    b"-9007199254740993",
    b"36893488147419103232",
    b"--1",
    b"1e",
    b"e1",
    b"2013-01-31",
    b"2013-01-31T05:15:00Z",
    b"2013-01-31 05:15:00+01:00",
    b"2013-02-30",
    b"05:15",
    b"unknown",
    b"\"1\"",
    b"\"1\"5",
    b"\"1\" ",
    b"\"\"",
    b"\"\"\"1\"\"\"",
    b"\"1",
    b"1\"",
    b"\"",
    b"\xff\xfe",
    b"\xc3\x28",
    b"\x00",
    b"\xef\xbb\xbf1",
    b"\xd9\xa1",
];

/// Lines that may not look like rows.
const LINES: [&[u8]; 16] = [
    b"",
    b" ",
    b",",
    b"\"",
    b"\"\"",
    b"\"a,\"",
    b"PAR1",
    b"ARROW1",
    b"\x93NUMPY",
    b"{\"schema\":2",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"PK\x03\x04",
    b"\xff\xfe1",
    b"\xef\xbb\xbf",
    b"#comment",
];

/// The kind of most fields of a column.
#[derive(Debug, Clone, Copy)]
enum Style {
    Numbers,
    Truths,
    Dates,
    /// Half truth values, and half texts or numbers.
    HalfText,
    HalfNumbers,
    Anything,
}

/// A column of the file, with its bounds if the plan reads it.
struct Column {
    name: String,
    bounds: Option<(f64, f64)>,
    style: Style,
}

pub fn case(rng: &mut Rng, plan: &Plan, what: String) -> Case {
    let mut reading = Reading { threads: 1 + rng.below(2), ..Reading::default() };
    reading.no_header = rng.once_in(4);
    let mut columns = columns_of(rng, plan);
    if !reading.no_header {
        for name in ["note", "id"].into_iter().take(rng.below(3)) {
            columns.push(Column { name: name.into(), bounds: None, style: style(rng) });
        }
        rng.shuffle(&mut columns);
    }
    let delimiter = rng.pick(b",,,;\t|");
    reading.delimiter = Some(delimiter).filter(|d| *d != b',');
    let rows = rng.rows();
    let mut lines: Vec<Vec<u8>> =
        (0..rows).map(|i| line(rng, &columns, delimiter, i, "p")).collect();
    for _ in 0..rng.below(3) {
        if !lines.is_empty() && rng.once_in(4) {
            let at = rng.below(lines.len());
            lines[at] = hostile(rng, &columns, delimiter, at, "p");
        }
    }
    let most = plan.people().map_or(1, |people| 1 + rng.below(2 * people.rows as usize));
    let (mut more, mut new) = (lines.clone(), Vec::new());
    for _ in 0..most {
        let row = match rng.below(5) {
            0 | 1 => hostile(rng, &columns, delimiter, rows, "new"),
            _ => line(rng, &columns, delimiter, rows, "new"),
        };
        new.push(row.clone());
        more.insert(rng.below(more.len() + 1), row);
    }
    let header = (!reading.no_header).then(|| header(rng, &columns, delimiter));
    let style = LineStyle {
        end: rng.pick(&[&b"\n"[..], b"\r\n", b"\r"]),
        last: rng.once_in(2),
        mark: rng.once_in(4) && header.is_some(),
        zip: rng.below(12),
    };
    if reading.no_header && rng.once_in(3) {
        reading.format = Some(Format::Csv);
    }
    let whole = |lines: &[Vec<u8>]| style.files(header.as_deref(), lines);
    let (before, after, alone) = (whole(&lines), whole(&more), whole(&new));
    let guessed_otherwise = !reading.no_header
        && (0..columns.len()).filter(|j| columns[*j].bounds.is_some()).any(|j| {
            let kind = |lines: &[Vec<u8>]| old_guess(lines, delimiter, j);
            kind(&lines) != kind(&more)
        });
    let shown = String::from_utf8_lossy(&new.join(&b'\n')).chars().take(400).collect::<String>();
    let what = format!("{what} ({reading:?}, {} and {shown:?})", lines.len());
    Case { what, reading, before, after, alone, guessed_otherwise }
}

fn columns_of(rng: &mut Rng, plan: &Plan) -> Vec<Column> {
    let private = plan.private.as_ref().unwrap();
    let inputs = plan.recipe.numbers.iter().map(|n| n.input.clone());
    let bounds = private.low.iter().copied().zip(private.high.iter().copied());
    let number = |(name, bounds)| Column { name, bounds: Some(bounds), style: style(rng) };
    let mut columns: Vec<Column> = inputs.zip(bounds).map(number).collect();
    if plan.people().is_some() {
        columns.push(Column { name: WHO.into(), bounds: None, style: Style::Anything });
    }
    columns
}

fn style(rng: &mut Rng) -> Style {
    use Style::{Anything, Dates, HalfNumbers, HalfText, Numbers, Truths};
    rng.pick(&[Numbers, Numbers, Numbers, Truths, Dates, HalfText, HalfNumbers, Anything])
}

/// A line whose fields mostly follow the style of their column.
fn line(rng: &mut Rng, columns: &[Column], delimiter: u8, i: usize, person: &str) -> Vec<u8> {
    let quoted = rng.once_in(6);
    let all_good = rng.once_in(2) || person == "new";
    let fields = columns.iter().map(|column| {
        let mut field = match (column.name == WHO, column.bounds) {
            (true, _) if person == "new" => b"new".to_vec(),
            (true, _) => format!("{person}{}", rng.below(9)).into_bytes(),
            (_, Some(bounds)) if all_good => good(rng, bounds),
            (_, bounds) => styled(rng, column.style, bounds.unwrap_or((0.0, 1.0)), i),
        };
        if (quoted || field.contains(&delimiter)) && !field.contains(&b'"') {
            field = [b"\"", &field[..], b"\""].concat();
        }
        field
    });
    fields.collect::<Vec<_>>().join(&delimiter)
}

/// A number that can be read.
fn good(rng: &mut Rng, bounds: (f64, f64)) -> Vec<u8> {
    match rng.below(10) {
        0 => {
            rng.pick(&[&b"true"[..], b"False", b" 1 ", b"+1", b"1e3", b"9007199254740993"]).to_vec()
        }
        _ => rng.number(bounds).to_string().into_bytes(),
    }
}

fn styled(rng: &mut Rng, style: Style, bounds: (f64, f64), i: usize) -> Vec<u8> {
    let truth = rng.pick(&[&b"true"[..], b"false", b"True"]).to_vec();
    match style {
        Style::Numbers => good(rng, bounds),
        Style::Truths => truth,
        Style::Dates => format!("2013-01-{:02}", 1 + rng.below(28)).into_bytes(),
        Style::HalfText if i.is_multiple_of(2) => b"unknown".to_vec(),
        Style::HalfNumbers if i.is_multiple_of(2) => b"7".to_vec(),
        Style::HalfText | Style::HalfNumbers => truth,
        Style::Anything => rng.pick(&FIELDS).to_vec(),
    }
}

/// A hostile line.
fn hostile(rng: &mut Rng, columns: &[Column], delimiter: u8, i: usize, person: &str) -> Vec<u8> {
    let mut fields: Vec<Vec<u8>> = Vec::new();
    for column in columns {
        let own = column.name == WHO && person == "new";
        fields.push(match rng.below(3) {
            _ if own => b"new".to_vec(),
            0 => rng.pick(&FIELDS).to_vec(),
            1 => styled(rng, column.style, column.bounds.unwrap_or((0.0, 1.0)), i),
            _ => good(rng, column.bounds.unwrap_or((0.0, 1.0))),
        });
    }
    // The person of a new row stays.
    let free = |j: &usize| columns[*j].name != WHO || person != "new";
    let free: Vec<usize> = (0..columns.len()).filter(free).collect();
    match rng.below(8) {
        // Lines without a new person must not count.
        0 if person != "new" || columns.iter().all(|c| c.name != WHO) => {
            return rng.pick(&LINES).to_vec();
        }
        1 => drop(fields.pop()),
        2 => fields.push(b"1".to_vec()),
        3 => {
            let at = rng.pick(&free);
            fields[at].insert(0, b'"');
        }
        4 => return vec![delimiter; rng.below(70_000)],
        5 => {
            let at = rng.pick(&free);
            fields[at] = b"9".repeat(1 + rng.below(70_000));
        }
        _ => {}
    }
    fields.join(&delimiter)
}

fn header(rng: &mut Rng, columns: &[Column], delimiter: u8) -> Vec<u8> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    for Column { name, .. } in columns {
        let special = name.bytes().any(|b| b == delimiter || b == b'"');
        names.push(if special || rng.once_in(5) {
            format!("\"{}\"", name.replace('"', "\"\"")).into_bytes()
        } else {
            name.clone().into_bytes()
        });
    }
    if rng.once_in(40) {
        names.pop();
    }
    names.join(&delimiter)
}

/// How lines become files.
struct LineStyle {
    end: &'static [u8],
    /// Whether the last line ends with a line break.
    last: bool,
    /// Whether there is a byte order mark.
    mark: bool,
    zip: usize,
}

impl LineStyle {
    fn files(&self, header: Option<&[u8]>, lines: &[Vec<u8>]) -> Vec<(String, Vec<u8>)> {
        let mut text = if self.mark { b"\xef\xbb\xbf".to_vec() } else { Vec::new() };
        let mut all: Vec<&[u8]> = header.into_iter().collect();
        all.extend(lines.iter().map(|line| &line[..]));
        text.extend(all.join(self.end));
        // A header alone needs its line break.
        if self.last || lines.is_empty() {
            text.extend_from_slice(if all.is_empty() { b"" } else { self.end });
        }
        vec![match self.zip {
            0 => {
                let mut out =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                out.write_all(&text).unwrap();
                ("x.csv.gz".into(), out.finish().unwrap())
            }
            1 => ("x.csv.zst".into(), zstd::encode_all(&text[..], 0).unwrap()),
            2 => ("x".into(), text),
            _ => ("x.csv".into(), text),
        }]
    }
}

/// Returns the type that a reader would guess from the first values of a column.
fn old_guess(lines: &[Vec<u8>], delimiter: u8, column: usize) -> &'static str {
    let (mut numbers, mut truths, mut dates, mut values) = (0, 0, 0, 0);
    for line in lines {
        let Some(field) = line.split(|b| *b == delimiter).nth(column) else { continue };
        let text = String::from_utf8_lossy(field);
        let text = text.trim().trim_matches('"');
        let missing = ["", "NA", "N/A", "null", "None", "#N/A"].contains(&text);
        match text.parse::<f64>() {
            _ if missing || values == 200 => continue,
            Ok(x) if x.is_nan() => continue,
            Ok(_) => numbers += 1,
            Err(_) if ["true", "false"].contains(&text.to_lowercase().as_str()) => truths += 1,
            Err(_) => dates += usize::from(text.starts_with("2013-01-")),
        }
        values += 1;
    }
    let plain = numbers + truths;
    match () {
        () if 2 * dates > values => "dates",
        () if values - plain > plain => "text",
        () if truths > numbers => "truth values",
        () => "numbers",
    }
}
