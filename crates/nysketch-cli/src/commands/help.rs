//! `nysketch completions` and `nysketch man`.

use crate::args::{Args, Completions, Man};
use anyhow::{Context, Result};
use clap::CommandFactory;
use std::io::{self, Write};

pub fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "nysketch", &mut script);
    Ok(io::stdout().lock().write_all(&script)?)
}

pub fn man(args: &Man) -> Result<()> {
    let command = Args::command().disable_help_subcommand(true);
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return Ok(io::stdout().lock().write_all(&page)?);
    };
    let cannot = || format!("cannot write to {}", dir.display());
    std::fs::create_dir_all(dir).with_context(cannot)?;
    clap_mangen::generate_to(command, dir).with_context(cannot)
}
