//! The list of parties that add up masked sketches, and its fingerprint.

use anyhow::{Context, Result, anyhow};
use nysketch::masking::{Parties, Party};
use serde::Deserialize;
use std::path::Path;

/// The list as it is written.
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

/// Reads a list of parties: TOML, a table `[[party]]` with `id` and `public` for each.
pub fn read_parties(path: &Path) -> Result<Parties> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let list: Written = toml::from_str(&text).map_err(|error: toml::de::Error| {
        let line = |at: usize| text.get(..at).map_or(0, |before| before.lines().count().max(1));
        let place =
            error.span().map_or(String::new(), |span| format!("line {}: ", line(span.start)));
        // Backquotes would be taken for options.
        anyhow!("{name}: {place}{}", error.message().replace('`', "'"))
    })?;
    let party = |line: &Line| Party::from_text(&line.id, &line.public);
    let parties: nysketch::Result<Vec<Party>> = list.party.iter().map(party).collect();
    parties.and_then(Parties::new).map_err(|error| anyhow!("{name}: {error}"))
}

/// A fingerprint as it is read aloud: four digits at a time.
pub fn in_groups(fingerprint: &str) -> String {
    let groups = fingerprint.as_bytes().chunks(4).map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(" ")
}
