//! The table of trials: one line per fit, written while the work proceeds.
//!
//! A line begins with everything that determines its result. An interrupted run, or one with more
//! trials or figures, therefore continues from the existing lines.

use super::settings::{Job, REPLICATES, Study};
use super::trial::{Outcome, Search};
use anyhow::{Context, Result, bail};
use nysketch::Task;
use nysketch_cli::parts::keep_bytes;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

const HEADER: [&str; 24] = [
    "set",
    "task",
    "method",
    "decoder",
    "rows",
    "dims",
    "k",
    "size",
    "lambda",
    "sigma2",
    "seed",
    "trial",
    "data",
    "replicates",
    "version",
    "features",
    "risk",
    "ari",
    "single_risk",
    "single_ari",
    "objective",
    "rank",
    "status",
    "error",
];
/// Number of columns that identify a fit, and number of leading columns that seed it.
const KEY: usize = 15;
pub const SEEDING: usize = 12;
/// Increased when a fit with the same key would give a different result; separate for the paper's
/// methods for mixtures.
const MIXTURE_VERSION: u32 = 4;
const VERSION: u32 = 3;

/// The key of a fit, in the order of the columns.
pub type Key = Vec<String>;

/// The result of a fit, or the reason why there is none.
pub type Line = std::result::Result<Outcome, String>;

/// The rows and the seed of a study.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    pub rows: usize,
    pub dims: usize,
    /// Checksum of rows and classes that come from files.
    pub checksum: Option<u32>,
    pub seed: u64,
}

impl Run {
    /// Returns the key of a fit.
    pub fn key(&self, job: &Job) -> Key {
        let Job { study: Study { set, task, k, .. }, method, .. } = job;
        let text = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
        let pursued = method.of_paper() && *task == Task::Gmm;
        let version = if pursued { MIXTURE_VERSION } else { VERSION };
        vec![
            set.to_string(),
            task.name().into(),
            method.name().into(),
            method.decoder(*task).into(),
            self.rows.to_string(),
            self.dims.to_string(),
            k.to_string(),
            job.size.map_or(String::new(), |m| m.to_string()),
            text(job.lambda),
            text(job.sigma2),
            self.seed.to_string(),
            job.trial.to_string(),
            self.checksum.map_or(String::new(), |c| format!("{c:08x}")),
            if method.of_paper() { REPLICATES.to_string() } else { String::new() },
            version.to_string(),
        ]
    }
}

/// The table, in memory and in its file.
pub struct Trials {
    path: PathBuf,
    lines: BTreeMap<Key, Line>,
    file: Option<File>,
    /// Held while this run writes to the folder.
    lock: (PathBuf, File),
}

impl Drop for Trials {
    fn drop(&mut self) {
        // The lock belongs to the open file; a file that is left behind does no harm.
        drop(std::fs::remove_file(&self.lock.0));
    }
}

impl Trials {
    /// Opens the table of a folder, which may be empty. A line that was cut off by an interruption
    /// is dropped.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("trials.csv");
        let lock = folder.join("trials.lock");
        let held =
            File::create(&lock).with_context(|| format!("cannot write {}", lock.display()))?;
        if let Err(TryLockError::WouldBlock) = held.try_lock() {
            bail!("another run is writing to {}", folder.display());
        }
        let mut trials = Trials { path, lines: BTreeMap::new(), file: None, lock: (lock, held) };
        if trials.path.exists() {
            let name = trials.path.display().to_string();
            let bytes =
                std::fs::read(&trials.path).with_context(|| format!("cannot read {name}"))?;
            let end = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1);
            trials.read(&bytes[..end]).with_context(|| {
                format!("{name} is not a table of trials of this version; choose another folder")
            })?;
        }
        trials.save()?;
        Ok(trials)
    }

    fn read(&mut self, table: &[u8]) -> Result<()> {
        let mut reader = csv::Reader::from_reader(table);
        if !table.is_empty() && reader.headers()? != HEADER[..] {
            bail!("it has other columns");
        }
        for record in reader.records() {
            let record = record?;
            let key = record.iter().take(KEY).map(str::to_string).collect();
            let present = |i: usize| Some(&record[KEY + i]).filter(|text| !text.is_empty());
            // Failed fits are tried again.
            if present(8).is_some() {
                continue;
            }
            let number = |i: usize| present(i).map(str::parse::<f64>).transpose();
            let single_ari = number(4)?;
            let search = match (number(5)?, present(6), present(7)) {
                (Some(objective), Some(rank), Some(status)) => {
                    Some(Search { objective, rank: rank.parse()?, status: status.into() })
                }
                _ => None,
            };
            let outcome = Outcome {
                features: present(0).map(str::parse).transpose()?,
                risk: record[KEY + 1].parse()?,
                ari: number(2)?,
                single: number(3)?.map(|risk| (risk, single_ari)),
                search,
            };
            self.lines.insert(key, Ok(outcome));
        }
        Ok(())
    }

    /// Returns the result of a completed fit.
    pub fn get(&self, key: &Key) -> Option<&Line> {
        self.lines.get(key)
    }

    /// Adds a fit to the table and to its file.
    pub fn add(&mut self, key: Key, line: Line) -> Result<()> {
        let text = record(&key, &line)?;
        if self.file.is_none() {
            let opened = File::options().append(true).open(&self.path);
            self.file =
                Some(opened.with_context(|| format!("cannot write {}", self.path.display()))?);
        }
        if let Some(file) = &mut self.file {
            file.write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        self.lines.insert(key, line);
        Ok(())
    }

    /// Rewrites the table in the order of the keys, so that it does not depend on the order of the
    /// work.
    pub fn save(&mut self) -> Result<()> {
        self.file = None;
        let mut text = HEADER.join(",") + "\n";
        let mut sorted: Vec<_> = self.lines.iter().collect();
        sorted.sort_by(|a, b| in_order(a.0).cmp(&in_order(b.0)));
        for (key, line) in sorted {
            text.push_str(&record(key, line)?);
        }
        keep_bytes(&self.path, text.as_bytes())
    }
}

/// Returns a sort key in which numbers are in numerical order.
fn in_order(key: &Key) -> Vec<(u64, &str)> {
    let place = |text: &str| match text.parse::<f64>() {
        // Positive floats sort in the same order as their bits.
        Ok(x) if x >= 0.0 => x.to_bits(),
        _ => 0,
    };
    key.iter().map(|text| (place(text), text.as_str())).collect()
}

fn record(key: &Key, line: &Line) -> Result<String> {
    let text = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
    let found: [String; 9] = match line {
        Ok(o) => [
            o.features.map_or(String::new(), |f| f.to_string()),
            o.risk.to_string(),
            text(o.ari),
            text(o.single.map(|single| single.0)),
            text(o.single.and_then(|single| single.1)),
            text(o.search.as_ref().map(|s| s.objective)),
            o.search.as_ref().map_or(String::new(), |s| s.rank.to_string()),
            o.search.as_ref().map_or(String::new(), |s| s.status.clone()),
            String::new(),
        ],
        Err(why) => {
            let mut found: [String; 9] = Default::default();
            found[8].clone_from(why);
            found
        }
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(key.iter().chain(&found))?;
    Ok(String::from_utf8(writer.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_back_but_for_the_line_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let key = |trial: &str| {
            let mut key = vec![String::from("a"); KEY];
            key[SEEDING - 1] = trial.into();
            key
        };
        let search = Search { objective: 1e-3 / 3.0, rank: 18, status: "Converged".into() };
        let found = Ok(Outcome {
            features: Some(20),
            risk: 0.1 + 0.2,
            ari: None,
            single: Some((0.7, Some(0.1))),
            search: Some(search),
        });
        let mut trials = Trials::open(folder.path()).unwrap();
        trials.add(key("10"), found.clone()).unwrap();
        trials.add(key("9"), Err("no, \"never\"".into())).unwrap();
        let path = folder.path().join("trials.csv");
        let mut cut = std::fs::read_to_string(&path).unwrap();
        cut.push_str("a,a,a,half a li");
        std::fs::write(&path, &cut).unwrap();
        assert!(Trials::open(folder.path()).is_err(), "one run at a time");
        drop(trials);
        let mut again = Trials::open(folder.path()).unwrap();
        assert_eq!(again.get(&key("10")), Some(&found));
        assert_eq!(again.get(&key("9")), None, "what failed is tried again");
        again.add(key("9"), found.clone()).unwrap();
        again.save().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let nine = text.find(",9,").unwrap();
        assert!(nine < text.find(",10,").unwrap(), "{text}");
        drop(again);
        std::fs::write(&path, "x,y\n1,2\n").unwrap();
        assert!(Trials::open(folder.path()).is_err());
    }
}
