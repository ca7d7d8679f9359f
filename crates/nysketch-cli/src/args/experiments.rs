//! Commands for synthetic data and for the experiments of the paper.

use super::values::picture;
use clap::{Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

/// See the whole path in half a minute; no files needed.
///
/// Generates a Gaussian mixture, sketches it, subtracts rows and merges them back, learns k-means and a
/// mixture from the sketch alone, and prints their risks beside honest baselines. Writes a picture and a page.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch demo
  nysketch demo --rows 500000 -o clusters.svg

JSON fields: rows, columns, landmarks, bytes, planning_seconds, sketching_seconds, same_bytes,
  picture, page, results [{task, from, risk, relative, bytes, seconds}]")]
pub struct Demo {
    /// Picture of the clusters to write, .svg or .png; the page is beside it, with .html
    #[arg(short, long, value_name = "FILE", default_value = "nysketch-demo.svg", value_parser = picture())]
    pub output: PathBuf,
    /// Rows to generate
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(5000..=100_000_000))]
    pub rows: u64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Write synthetic data to try things with.
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

/// Run the paper's experiments and draw its figures.
///
/// Section 5 and appendix E of "Mean Nyström Embeddings for Adaptive Compressive Learning": random Fourier and
/// Nyström sketches (uniform, BLESS, greedy) decoded by CL-OMPR, the best of five pursuits from the same starts, beside our decoders and what all rows, 2,000
/// rows or the landmarks alone give. Writes trials.csv with every fit, each picture as SVG and PNG, and a page,
/// index.html. An interrupted run continues where it stopped; more trials or figures in the same folder
/// add to what is there. Real data is read from the folder --data, and skipped without it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  nysketch reproduce fig3 --quick -o figures
  nysketch reproduce all --trials 50 --data data -o figures     # many hours on 2 cores

Files of --data (others are skipped): mnist_spectral.npy, mnist_labels.npy, cifar10_resnet18_pca50.npy,
  cifar10_labels.npy, esc50_mfcc20.npy, esc50_labels.npy: rows, and one class number per row;
  fma2000_mfcc.parquet with columns mfcc_mean_01 to mfcc_mean_20

JSON fields: folder, trials, seed, quick, fits, new, failed, missing, panels, page, seconds")]
pub struct Reproduce {
    /// Figure to make
    #[arg(value_enum)]
    pub what: Figure,
    /// Folder to write to, or to continue in
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Folder with the real data
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Trials per fit (figure 2: at most 10) [default: 50; 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub trials: Option<u32>,
    /// At most 10,000 rows and sketches of 400 numbers: a few minutes
    #[arg(long)]
    pub quick: bool,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// Risk against the sketch size: k-means and Gaussian modelling
    Fig1,
    /// Gaussian modelling against the kernel variance, for several sketch sizes
    Fig2,
    /// k-means on more synthetic data, and agreement with the classes of CIFAR10
    Fig3,
    /// Gaussian modelling against the sketch size and the kernel variance
    Fig4,
    /// All of them
    All,
}

impl Figure {
    /// Whether it is, or holds, the figure of this number.
    pub fn includes(self, number: u8) -> bool {
        self == Figure::All || self as u8 + 1 == number
    }
}
