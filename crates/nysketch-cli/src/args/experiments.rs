//! Commands for synthetic data.

use super::values::picture;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

/// Run the whole path in half a minute, without files.
///
/// Generates a Gaussian mixture, sketches it, subtracts rows and merges them back, learns k-means
/// and a
/// mixture from the sketch alone, and prints their risks next to honest baselines. Writes a picture
/// and a page.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch demo
  nysketch demo --rows 500000 -o clusters.svg

JSON fields: rows, columns, landmarks, bytes, planning_seconds, sketching_seconds, same_bytes,
  picture, page, results [{task, from, risk, relative, bytes, seconds}]")]
pub struct Demo {
    /// Picture of the clusters to write (.svg or .png); the page gets the same name with .html
    #[arg(short, long, value_name = "FILE", default_value = "nysketch-demo.svg",
        value_parser = picture())]
    pub output: PathBuf,
    /// Number of rows to generate
    #[arg(long, default_value_t = 100_000,
        value_parser = clap::value_parser!(u64).range(5000..=100_000_000))]
    pub rows: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Write synthetic data to try the other commands with.
///
/// A balanced mixture of K unit Gaussians in D dimensions whose means are drawn from
/// N(0, (S·K^(1/D))²): the synthetic data of the paper. The same seed gives the same rows.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch generate gmm --rows 1000000 --dims 20 --clusters 10 -o x.parquet
  nysketch generate gmm --rows 1000 --dims 2 --clusters 3 --labels y.npy -o x.csv

JSON fields: file, rows, dims, clusters, separation, seed")]
pub struct Generate {
    /// What to generate
    #[arg(value_enum)]
    pub what: GenerateKind,
    /// File to write: .parquet, .npy (both float32) or .csv
    #[arg(short, long, value_name = "FILE", aliases = ["out", "output-file"])]
    pub output: PathBuf,
    /// Number of rows
    #[arg(long, value_name = "N")]
    pub rows: u64,
    /// Number of columns
    #[arg(long, value_name = "D")]
    pub dims: usize,
    /// Number of clusters
    #[arg(long, value_name = "K")]
    pub clusters: usize,
    /// Separation of the clusters
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    pub separation: f64,
    /// Also write the cluster of each row to this file: .parquet, .npy or .csv
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum GenerateKind {
    /// A Gaussian mixture
    Gmm,
}
