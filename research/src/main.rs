//! `nysketch-research`: the paper's experiments with this project's features and decoders.

mod figures;

use clap::{Parser, ValueEnum};
use nysketch_cli::parts::{Common, finish, stop_on_signals};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the paper's experiments and draw its figures.
///
/// Section 5 and appendix E of "Mean Nyström Embeddings for Adaptive Compressive Learning": random
/// Fourier and
/// Nyström sketches (uniform, BLESS, greedy) decoded by CL-OMPR, the best of five pursuits from the
/// same starts, beside our decoders and what all rows, 2,000
/// rows or the landmarks alone give. Writes trials.csv with every fit, each picture as SVG and PNG,
/// and a page,
/// index.html. An interrupted run continues where it stopped; more trials or figures in the same
/// folder
/// add to what is there. Real data is read from the folder --data, and skipped without it.
#[derive(Debug, Parser)]
#[command(
    name = "nysketch-research",
    version,
    max_term_width = 100,
    after_help = "Examples:
  nysketch-research fig3 --quick -o figures
  nysketch-research all --trials 50 --data data -o figures     # many hours on 2 cores

Files of --data (others are skipped): mnist_spectral.npy, mnist_labels.npy, cifar10_resnet18_pca50.npy,
  cifar10_labels.npy, esc50_mfcc20.npy, esc50_labels.npy: rows, and one class number per row;
  fma2000_mfcc.parquet with columns mfcc_mean_01 to mfcc_mean_20

JSON fields: folder, trials, seed, quick, fits, new, failed, missing, panels, page, seconds"
)]
struct Figures {
    /// Figure to make
    #[arg(value_enum)]
    what: Figure,
    /// Folder to write to, or to continue in
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Folder with the real data
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Trials per fit (figure 2: at most 10) [default: 50; 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: Option<u32>,
    /// At most 10,000 rows and sketches of 400 numbers: a few minutes
    #[arg(long)]
    quick: bool,
    /// Seed of all random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Figure {
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
    fn includes(self, number: u8) -> bool {
        self == Figure::All || self as u8 + 1 == number
    }
}

fn main() -> ExitCode {
    stop_on_signals();
    let args = Figures::parse();
    ExitCode::from(finish(figures::run(&args, &args.common).map(|()| 0), args.common.json, 1))
}
