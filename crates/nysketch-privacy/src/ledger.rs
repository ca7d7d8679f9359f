//! Ledgers: files with a line for each use of something that must be counted.
//!
//! A line is on the disk before what it stands for is given out. Of several processes one at a time reads and writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The ledger of a file: its name and `.SUFFIX`, beside the file itself where the path is a link to it.
pub fn beside(file: &Path, suffix: &str) -> PathBuf {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let mut name = real.into_os_string();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// Shows the lines so far to `decide`, and adds the one it returns, if it does. A last line without an end was cut by a crash, before
/// what it stood for was given out, and is dropped.
pub fn update<E>(
    path: &Path,
    failed: impl Fn(io::Error) -> E,
    decide: impl FnOnce(&[&str]) -> Result<Option<String>, E>,
) -> Result<(), E> {
    let mut file = open(path).map_err(&failed)?;
    // Where there are no locks, two processes could pass at once: better none.
    file.lock().map_err(&failed)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(&failed)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines: Vec<&str> = text[..whole].lines().collect();
    match decide(&lines)? {
        None => Ok(()),
        Some(line) => append(&mut file, path, whole as u64, &line).map_err(&failed),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Puts a line at `end`, for good.
fn append(file: &mut File, path: &Path, end: u64, line: &str) -> io::Result<()> {
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_all()?;
    // The name of a new file is in its folder.
    #[cfg(unix)]
    {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
