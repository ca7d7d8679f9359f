//! The list of parties that add masked sketches, and its fingerprint.

use anyhow::{Context, Result, anyhow};
use nysketch::masking::{Parties, Party};
use serde::Deserialize;
use std::path::Path;

/// A list of parties as it is written in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    party: Vec<Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: String,
    public: String,
}

/// Reads a list of parties: a TOML file with a table `[[party]]` for each, with `id` and `public`.
pub fn read_parties(path: &Path) -> Result<Parties> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let list: Written = toml::from_str(&text).map_err(|error: toml::de::Error| {
        let line = |at: usize| text.get(..at).map_or(0, |before| before.lines().count().max(1));
        let place =
            error.span().map_or(String::new(), |span| format!("line {}: ", line(span.start)));
        // Messages show text in backquotes as an option.
        anyhow!("{name}: {place}{}", error.message().replace('`', "'"))
    })?;
    let party = |line: &Line| Party::from_text(&line.id, &line.public);
    let parties: nysketch::Result<Vec<Party>> = list.party.iter().map(party).collect();
    parties.and_then(Parties::new).map_err(|error| anyhow!("{name}: {error}"))
}

/// Formats a fingerprint in groups of four digits, for reading aloud.
pub fn in_groups(fingerprint: &str) -> String {
    let groups = fingerprint.as_bytes().chunks(4).map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(" ")
}
