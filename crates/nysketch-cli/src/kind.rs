//! The kind of a file, determined by its first bytes. Outputs replace only results of their own
//! kind, and messages name the kind of an unsuitable file.

use nysketch::format::may_be_file;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The kind of contents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "`Kind::name` describes each variant")]
pub enum Kind {
    Plan,
    Sketch,
    Release,
    /// The masked sketch of one party.
    Masked,
    Model,
    /// A file that starts like a plan or a sketch but is not a valid one.
    Damaged,
    Checkpoint,
    /// The secret key of a party.
    Key,
    /// The record of the uses of a key, a sketch or a deletion.
    Ledger,
    /// The guarantees of a release, for a data-protection officer.
    Statement,
    Svg,
    Png,
    /// A page written by nysketch; other pages are text.
    Page,
    Parquet,
    Npy,
    Arrow,
    /// JSON that is not a model.
    Json,
    /// Drift metrics for a monitoring system.
    Metrics,
    /// Text that may be a table.
    Text,
    Folder,
    Empty,
    Other,
}

/// Number of bytes that determine a kind; the first line of a checkpoint and the first fields of a
/// model are shorter.
const START: u64 = 512;

/// The first line of a statement.
pub const STATEMENT: &str = "# Statement on a release of nysketch";

/// Maximum length of a header in bytes.
const LONGEST_HEADER: u32 = 1 << 24;

/// Extensions that belong to certain kinds; results of other kinds cannot use them.
const EXTENSIONS: &[(&[&str], &[Kind])] = &[
    (&["nys"], &[Kind::Plan, Kind::Sketch, Kind::Release, Kind::Masked]),
    (&["ckpt"], &[Kind::Checkpoint]),
    (&["json"], &[Kind::Model]),
    (&["key"], &[Kind::Key]),
    (&["ledger"], &[Kind::Ledger]),
    (&["md"], &[Kind::Statement]),
    (&["svg"], &[Kind::Svg]),
    (&["png"], &[Kind::Png]),
    (&["html", "htm"], &[Kind::Page]),
    (&["parquet", "parq", "pq"], &[Kind::Parquet]),
    (&["npy"], &[Kind::Npy]),
    (&["arrow", "arrows", "feather", "ipc"], &[Kind::Arrow]),
    (&["prom"], &[Kind::Metrics]),
    (&["csv", "tsv", "gz", "zst"], &[Kind::Text]),
    (&["txt"], &[Kind::Text, Kind::Metrics, Kind::Statement]),
    (&["pdf", "jpg", "jpeg", "gif", "webp", "xls", "xlsx", "yaml", "toml", "zip"], &[]),
];

impl Kind {
    /// Determines the kind of the file at a path. Only regular files are opened.
    pub fn of(path: &Path) -> io::Result<Kind> {
        let metadata = path.metadata()?;
        if metadata.is_dir() {
            return Ok(Kind::Folder);
        }
        if !metadata.is_file() {
            return Ok(Kind::Other);
        }
        Ok(match start(path)? {
            Start::Header(header) => Kind::of_header(&header),
            Start::Bytes(bytes) => Kind::of_start(&bytes),
        })
    }

    /// Determines the kind from the header of a file that starts like a plan or a sketch. Quotes
    /// inside the strings of the metadata have more backslashes.
    pub fn of_header(header: &[u8]) -> Kind {
        let says = |kind: &[u8]| memchr::memmem::find(header, kind).is_some();
        let kinds = [
            (Kind::Plan, says(br#"\"kind\":\"plan\""#)),
            (Kind::Sketch, says(br#"\"kind\":\"sketch\""#)),
            (Kind::Release, says(br#"\"kind\":\"release\""#)),
            (Kind::Masked, says(br#"\"kind\":\"masked\""#)),
        ];
        let mut said = kinds.into_iter().filter(|(_, said)| *said);
        match (said.next(), said.next()) {
            (Some((kind, _)), None) => kind,
            _ => Kind::Damaged,
        }
    }

    /// Determines the kind from the first bytes of a file that is neither a plan nor a sketch.
    fn of_start(start: &[u8]) -> Kind {
        let text = String::from_utf8_lossy(start);
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let lower = text.get(..15.min(text.len())).unwrap_or("").to_ascii_lowercase();
        if start.is_empty() {
            Kind::Empty
        } else if start.starts_with(b"\x93NUMPY") {
            Kind::Npy
        } else if start.starts_with(b"PAR1") {
            Kind::Parquet
        } else if start.starts_with(b"ARROW1") || start.starts_with(b"\xff\xff\xff\xff") {
            Kind::Arrow
        } else if start.starts_with(b"\x89PNG") {
            Kind::Png
        } else if text.starts_with("{\"nysketch_checkpoint\"") {
            Kind::Checkpoint
        } else if text.starts_with("nysketch secret key ") {
            Kind::Key
        } else if text.starts_with("{\"nysketch_ledger\":") {
            Kind::Ledger
        } else if text.starts_with(STATEMENT) {
            Kind::Statement
        } else if text.starts_with('{') && text.contains("\"schema\"") && text.contains("\"task\"")
        {
            Kind::Model
        } else if text.starts_with('{') {
            Kind::Json
        } else if lower.starts_with("<svg") || text.starts_with("<?xml") && text.contains("<svg") {
            Kind::Svg
        } else if text.contains("<meta name=\"generator\" content=\"nysketch\">") {
            Kind::Page
        } else if text.starts_with("# HELP nysketch_") {
            Kind::Metrics
        } else if !start.contains(&0) {
            Kind::Text
        } else {
            Kind::Other
        }
    }

    /// Returns the name of the kind with its article.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plan => "a plan",
            Kind::Sketch => "a sketch",
            Kind::Release => "a release, whose sums have noise",
            Kind::Masked => "a masked sketch",
            Kind::Model => "a model",
            Kind::Damaged => "a damaged plan or sketch",
            Kind::Checkpoint => "a checkpoint",
            Kind::Key => "a secret key",
            Kind::Ledger => "a ledger",
            Kind::Statement => "a statement on a release",
            Kind::Svg => "an SVG picture",
            Kind::Png => "a PNG picture",
            Kind::Page => "a web page",
            Kind::Parquet => "a Parquet table",
            Kind::Npy => "a NumPy array",
            Kind::Arrow => "an Arrow table",
            Kind::Json => "a JSON file",
            Kind::Metrics => "a file of metrics",
            Kind::Text => "a text file",
            Kind::Folder => "a folder",
            Kind::Empty => "an empty file",
            Kind::Other => "not a file of nysketch",
        }
    }

    /// Returns the command that reads such a file.
    pub fn remedy(self, path: &Path) -> Option<String> {
        let file = path.display();
        match self {
            Kind::Plan => {
                Some(format!("make a sketch with it: nysketch sketch INPUT --plan {file} -o s.nys"))
            }
            Kind::Sketch => Some(format!(
                "learn a model from it: nysketch fit kmeans {file} -k 10 -o model.json"
            )),
            Kind::Release => Some(format!(
                "releases cannot be merged, subtracted or tested, since no test knows their noise; \
                 learn from it: nysketch fit kmeans {file} -k 10 -o model.json"
            )),
            Kind::Masked => Some(
                "it reveals nothing alone; merge all files of its session: nysketch merge FILES -o \
                 s.nys"
                    .into(),
            ),
            Kind::Model => Some(format!(
                "apply it to rows: nysketch predict {file} INPUT -o labels.parquet; or look at it: \
                 nysketch inspect {file}"
            )),
            Kind::Parquet | Kind::Npy | Kind::Arrow | Kind::Text => {
                Some(format!("if it is a table, sketch it first: nysketch sketch {file} -o s.nys"))
            }
            Kind::Checkpoint => {
                Some("continue from it: nysketch sketch … --checkpoint FILE --resume".into())
            }
            _ => None,
        }
    }

    /// Whether the file is a table. Tables are replaced only on request, because the file may be
    /// the only copy.
    pub fn is_table(self) -> bool {
        matches!(self, Kind::Parquet | Kind::Npy | Kind::Arrow | Kind::Text)
    }

    /// Returns the kind that an extension implies; `Other` if it implies none.
    pub fn by_extension(path: &Path) -> Kind {
        let extension = extension(path);
        let known = EXTENSIONS.iter().find(|(names, _)| names.contains(&extension.as_str()));
        known.and_then(|(_, kinds)| kinds.first()).copied().unwrap_or(Kind::Other)
    }

    /// Whether a file of this kind may have this name: extensions of other kinds are refused.
    pub fn may_be_called(self, path: &Path) -> bool {
        let extension = extension(path);
        EXTENSIONS
            .iter()
            .find(|(names, _)| names.contains(&extension.as_str()))
            .is_none_or(|(_, kinds)| kinds.contains(&self))
            && (self != Kind::Page || !extension.is_empty())
    }

    /// Returns the usual extension.
    pub fn extension(self) -> &'static str {
        EXTENSIONS.iter().find(|(_, kinds)| kinds.contains(&self)).map_or("", |(names, _)| names[0])
    }
}

/// The start of a file.
enum Start {
    /// The complete header of a possible plan or sketch.
    Header(Vec<u8>),
    /// The first bytes of another file.
    Bytes(Vec<u8>),
}

fn start(path: &Path) -> io::Result<Start> {
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    (&mut file).take(START).read_to_end(&mut start)?;
    if !may_be_file(&start) {
        return Ok(Start::Bytes(start));
    }
    let length = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
    file.take(u64::from(length.min(LONGEST_HEADER))).read_to_end(&mut start)?;
    Ok(Start::Header(start))
}

/// Returns the header of a regular file that starts like a plan or a sketch, possibly with some
/// bytes after it.
pub fn header(path: &Path) -> io::Result<Option<Vec<u8>>> {
    if !path.metadata()?.is_file() {
        return Ok(None);
    }
    Ok(match start(path)? {
        Start::Header(header) => Some(header),
        Start::Bytes(_) => None,
    })
}

fn extension(path: &Path) -> String {
    path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let of = |start: &[u8]| Kind::of_start(start);
        assert_eq!(of(b""), Kind::Empty);
        assert_eq!(of(b"a,b\n1,2\n"), Kind::Text);
        assert_eq!(of(b"\x93NUMPY\x01\0"), Kind::Npy);
        assert_eq!(of(b"{\n  \"schema\": 2,\n  \"task\": \"kmeans\""), Kind::Model);
        assert_eq!(of(b"{\"a\": 1}"), Kind::Json);
        assert_eq!(of(b"nysketch secret key 1\nid a\n"), Kind::Key);
        assert_eq!(of(b"{\"nysketch_ledger\":1,\"kind\":\"sessions\"}\n"), Kind::Ledger);
        assert_eq!(of(STATEMENT.as_bytes()), Kind::Statement);
        let ours = br#"<!doctype html><html><meta name="generator" content="nysketch">"#;
        assert_eq!((of(ours), of(b"<!DOCTYPE html><html>")), (Kind::Page, Kind::Text));
        assert_eq!(of(b"\xef\xbb\xbf<svg xmlns"), Kind::Svg);
        assert_eq!(of(b"\x7fELF\0\0"), Kind::Other);
        // The limit falls inside a character.
        assert_eq!(of("é".repeat(9).as_bytes()), Kind::Text);
    }

    #[test]
    fn extensions_decide() {
        let called = |kind: Kind, name: &str| kind.may_be_called(Path::new(name));
        assert!(called(Kind::Sketch, "day") && called(Kind::Sketch, "day.nys"));
        assert!(called(Kind::Sketch, "2024.01") && !called(Kind::Sketch, "day.parquet"));
        assert!(
            called(Kind::Page, "r.html")
                && !called(Kind::Page, "r.pdf")
                && !called(Kind::Page, "r")
        );
        assert!(!called(Kind::Model, "m.nys") && called(Kind::Model, "m.json"));
        assert!(!called(Kind::Sketch, "a.key") && !called(Kind::Model, "a.ledger"));
    }
}
