//! Thresholds of a change: from the command line, otherwise from a file, otherwise defaults.

use crate::args::Diff;
use crate::output::Usage;
use anyhow::{Context, Result};
use nysketch::drift::DriftParams;
use serde::Deserialize;

/// Number of columns and cells that are shown.
const TOP: usize = 5;

/// The file of `--config`: options of `diff` under their own names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    level: Option<f64>,
    tolerance: Option<f64>,
    draws: Option<u64>,
    top: Option<usize>,
    seed: Option<u64>,
    #[serde(default)]
    same_weekday: bool,
}

/// The parameters of a comparison.
pub struct Thresholds {
    pub params: DriftParams,
    pub top: usize,
    pub same_weekday: bool,
}

impl Thresholds {
    pub fn of(args: &Diff) -> Result<Self> {
        let file = match &args.config {
            None => File::default(),
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {name}"))?;
                toml::from_str(&text).map_err(|error: toml::de::Error| {
                    // Text in backquotes would be respelled as an option.
                    Usage(format!("{name}: {}", error.message().replace('`', "'")))
                })?
            }
        };
        let default = DriftParams::default();
        let draws = args.draws.or(file.draws).map_or(default.draws, |n| n as usize);
        let params = default
            .draws(draws)
            .seed(args.seed.or(file.seed).unwrap_or(default.seed))
            .level(args.level.or(file.level).unwrap_or(default.level))
            .tolerance(args.tolerance.or(file.tolerance));
        params.check()?;
        Ok(Thresholds {
            params,
            top: args.top.or(file.top).unwrap_or(TOP),
            same_weekday: args.same_weekday || file.same_weekday,
        })
    }
}
