//! `nysketch demo`: the whole path on generated data.

use crate::args::{Common, Demo};
use anyhow::Result;

pub fn run(_args: &Demo, _common: &Common) -> Result<()> {
    Ok(())
}
