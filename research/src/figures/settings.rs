//! The experiments of section 5 and appendix E of the paper.
//!
//! The paper names the data, k, the kernel variances of figure 1 and the number of trials. It does
//! not give the settings of its figures in the text. The numbers of rows, the sketch sizes, the
//! variances of figures 2 and 4, the λ of BLESS and the settings of the further synthetic sets are
//! choices of this file.
//!
//! Both kinds of features are treated equally: the same starts and bounds, from the moments of the
//! rows, and the best of five pursuits by objective, with the first pursuit shown as well. p is the
//! number of parameters of a model: kd for k-means and 2kd for mixtures.

use nysketch::Task;

/// The source of the rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// The mixture of appendix E.1, drawn again for every trial.
    Mixture { rows: usize, dims: usize, separation: f64 },
    /// Files in the data folder: rows with this number of columns, and one class per row.
    Files { rows: &'static str, labels: &'static str, dims: usize },
    /// A table in the data folder, of which only these columns are used; without classes.
    Columns { rows: &'static str, names: &'static [&'static str] },
}

/// A learning task on some rows, and the grids over which it is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Study {
    /// Name of the rows in file names and in the table of trials.
    pub set: &'static str,
    /// Title for display.
    pub title: &'static str,
    pub source: Source,
    pub task: Task,
    pub k: usize,
    /// Sketch sizes: numbers of landmarks, or twice the numbers of frequencies.
    pub sizes: &'static [usize],
    /// Larger sizes, which take minutes: run only in the first trials, by the paper's methods whose
    /// size can be chosen.
    pub large: &'static [usize],
    /// λ of BLESS, whose sketch sizes are random.
    pub lambdas: &'static [f64],
    /// σ² for Nyström features and for random Fourier features.
    pub sigma2: [f64; 2],
    /// σ² of the sweep, and its sketch size.
    pub variances: &'static [f64],
    pub size_of_sweep: usize,
}

/// λ from coarse to fine.
const LAMBDAS: [f64; 6] = [3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4];

const SYNTHETIC: Study = Study {
    set: "synthetic",
    title: "synthetic, k = 10, d = 10",
    source: Source::Mixture { rows: 100_000, dims: 10, separation: 2.0 },
    task: Task::Kmeans,
    k: 10,
    sizes: &[20, 50, 100, 200, 400, 800],
    large: &[],
    lambdas: &LAMBDAS,
    sigma2: [81.0; 2],
    variances: &[],
    size_of_sweep: 0,
};

const MNIST: Study = Study {
    set: "mnist",
    title: "MNIST, spectral features, d = 10",
    source: Source::Files { rows: "mnist_spectral.npy", labels: "mnist_labels.npy", dims: 10 },
    sigma2: [0.3; 2],
    ..SYNTHETIC
};

const CIFAR: Study = Study {
    set: "cifar10",
    title: "CIFAR10, ResNet18 features, d = 50",
    source: Source::Files {
        rows: "cifar10_resnet18_pca50.npy",
        labels: "cifar10_labels.npy",
        dims: 50,
    },
    sizes: &[50, 100, 250, 500, 1000],
    large: &[1500],
    lambdas: LAMBDAS.split_at(5).0,
    sigma2: [450.0; 2],
    ..SYNTHETIC
};

/// A substitute for FMA. Its variance is about five times that of FMA, and so is σ².
const AUDIO: Study = Study {
    set: "audio",
    title: "audio (ESC-50 for FMA), d = 20",
    source: Source::Files { rows: "esc50_mfcc20.npy", labels: "esc50_labels.npy", dims: 20 },
    sizes: &[40, 100, 200, 400, 800],
    sigma2: [25_000.0; 2],
    ..SYNTHETIC
};

/// The tracks of FMA that are available, with the paper's features and σ². They are few, so only
/// sketch sizes up to 1,990 are smaller than the data.
const FMA: Study = Study {
    set: "fma",
    title: "audio (1,990 tracks of FMA), d = 20",
    source: Source::Columns { rows: "fma2000_mfcc.parquet", names: &MFCC_MEANS },
    sigma2: [5000.0; 2],
    ..AUDIO
};

const MFCC_MEANS: [&str; 20] = [
    "mfcc_mean_01",
    "mfcc_mean_02",
    "mfcc_mean_03",
    "mfcc_mean_04",
    "mfcc_mean_05",
    "mfcc_mean_06",
    "mfcc_mean_07",
    "mfcc_mean_08",
    "mfcc_mean_09",
    "mfcc_mean_10",
    "mfcc_mean_11",
    "mfcc_mean_12",
    "mfcc_mean_13",
    "mfcc_mean_14",
    "mfcc_mean_15",
    "mfcc_mean_16",
    "mfcc_mean_17",
    "mfcc_mean_18",
    "mfcc_mean_19",
    "mfcc_mean_20",
];

/// More clusters in more dimensions. The ratio of σ² to the variance of the rows is as above.
const SYNTHETIC_KMEANS_2: Study = Study {
    set: "synthetic-k20",
    title: "synthetic, k = 20, d = 20",
    source: Source::Mixture { rows: 100_000, dims: 20, separation: 2.0 },
    k: 20,
    sizes: &[80, 200, 400, 800],
    lambdas: LAMBDAS.split_at(5).0.split_at(1).1,
    sigma2: [140.0; 2],
    ..SYNTHETIC
};

const SYNTHETIC_GMM: Study = Study {
    source: Source::Mixture { rows: 10_000, dims: 10, separation: 2.0 },
    task: Task::Gmm,
    sizes: &[50, 100, 200, 400, 800],
    lambdas: LAMBDAS.split_at(5).0,
    sigma2: [24.0; 2],
    variances: &[2.4, 7.6, 24.0, 76.0, 240.0, 760.0],
    size_of_sweep: 400,
    ..SYNTHETIC
};

const MNIST_GMM: Study = Study {
    task: Task::Gmm,
    sizes: &[50, 100, 200, 400, 800],
    sigma2: [0.095, 0.3],
    variances: &[0.0095, 0.03, 0.095, 0.3, 0.95, 3.0],
    size_of_sweep: 400,
    ..MNIST
};

const CIFAR_GMM: Study = Study {
    task: Task::Gmm,
    sizes: &[100, 250, 500, 1000],
    large: &[2000, 3000],
    sigma2: [300.0, 10_000.0],
    variances: &[95.0, 300.0, 950.0, 3000.0, 10_000.0],
    size_of_sweep: 1000,
    ..CIFAR
};

const AUDIO_GMM: Study = Study {
    task: Task::Gmm,
    sizes: &[100, 200, 400, 800],
    variances: &[2500.0, 7900.0, 25_000.0, 79_000.0, 250_000.0, 790_000.0],
    size_of_sweep: 400,
    ..AUDIO
};

const FMA_GMM: Study = Study { task: Task::Gmm, sizes: &[100, 200, 400, 800], ..FMA };

/// Fewer dimensions, with σ² in proportion.
const SYNTHETIC_GMM_2: Study = Study {
    set: "synthetic-d5",
    title: "synthetic, k = 10, d = 5",
    source: Source::Mixture { rows: 10_000, dims: 5, separation: 2.0 },
    sizes: &[25, 50, 100, 200, 400],
    sigma2: [12.0; 2],
    variances: &[1.2, 3.8, 12.0, 38.0, 120.0, 380.0],
    size_of_sweep: 200,
    ..SYNTHETIC_GMM
};

/// p = 2kd = 1200.
const SYNTHETIC_GMM_20: Study = Study {
    set: "synthetic-k20-d30",
    title: "synthetic, k = 20, d = 30",
    source: Source::Mixture { rows: 10_000, dims: 30, separation: 2.0 },
    k: 20,
    sizes: &[300, 600, 1200, 2400],
    variances: &[12.0, 24.0, 48.0, 96.0, 190.0],
    ..SYNTHETIC_GMM
};

/// The quantity that a panel shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Risk against the sketch size.
    BySize,
    /// Agreement with the labels against the sketch size.
    Agreement,
    /// Risk against σ².
    ByVariance,
    /// Risk of one method against σ², one curve per sketch size.
    Sizes(Method),
}

/// One picture.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    pub figure: u8,
    pub view: View,
    pub study: Study,
}

const fn panel(figure: u8, view: View, study: Study) -> Panel {
    Panel { figure, view, study }
}

/// Every picture, in the paper's order.
pub const PANELS: [Panel; 24] = [
    panel(1, View::BySize, SYNTHETIC),
    panel(1, View::BySize, AUDIO),
    panel(1, View::BySize, FMA),
    panel(1, View::BySize, MNIST),
    panel(1, View::BySize, CIFAR),
    panel(1, View::BySize, SYNTHETIC_GMM),
    panel(1, View::BySize, AUDIO_GMM),
    panel(1, View::BySize, FMA_GMM),
    panel(1, View::BySize, MNIST_GMM),
    panel(1, View::BySize, CIFAR_GMM),
    panel(2, View::Sizes(Method::Uniform), SYNTHETIC_GMM_20),
    panel(2, View::Sizes(Method::Fourier), SYNTHETIC_GMM_20),
    panel(3, View::BySize, SYNTHETIC_KMEANS_2),
    panel(3, View::Agreement, CIFAR),
    panel(4, View::BySize, SYNTHETIC_GMM),
    panel(4, View::ByVariance, SYNTHETIC_GMM),
    panel(4, View::BySize, SYNTHETIC_GMM_2),
    panel(4, View::ByVariance, SYNTHETIC_GMM_2),
    panel(4, View::BySize, AUDIO_GMM),
    panel(4, View::ByVariance, AUDIO_GMM),
    panel(4, View::BySize, MNIST_GMM),
    panel(4, View::ByVariance, MNIST_GMM),
    panel(4, View::BySize, CIFAR_GMM),
    panel(4, View::ByVariance, CIFAR_GMM),
];

/// Maximum number of trials of figure 2; one with `--quick`. Its largest sketches take as long as
/// all others together.
const MOST_TRIALS_OF_FIGURE_2: u32 = 10;
/// Maximum number of trials of the large sketches.
const MOST_TRIALS_OF_LARGE: u32 = 3;
/// Number of pursuits of which the best is used, for both kinds of features.
pub const REPLICATES: usize = 5;
/// Number of rows in the subsample that serves as a baseline.
pub const SUBSAMPLE: usize = 2000;
/// For `--quick`: number of rows, and sketch size. Every second variance is used.
const QUICK_ROWS: usize = 10_000;
const QUICK_SIZE: usize = 400;

/// A way to learn a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// CL-OMPR from random Fourier features.
    Fourier,
    /// CL-OMPR from Nyström features at uniform landmarks.
    Uniform,
    /// CL-OMPR from Nyström features at landmarks chosen by approximate leverage scores.
    Bless,
    /// CL-OMPR from Nyström features at landmarks chosen by the greedy rule.
    Greedy,
    /// The default decoder of kernel sums, with the plan's defaults.
    Kernel,
    /// The cells decoder, with the plan's defaults.
    Cells,
    /// k-means or EM on uniform landmarks alone.
    Landmarks,
    /// k-means or EM on [`SUBSAMPLE`] rows.
    Subsample,
    /// One cluster: the mean of all rows, or one Gaussian. A model that is not better has found no
    /// structure.
    One,
    /// Lloyd or EM on all rows.
    AllRows,
}

impl Method {
    /// Returns the name in the table of trials.
    pub fn name(self) -> &'static str {
        match self {
            Method::Fourier => "fourier",
            Method::Uniform => "nystrom-uniform",
            Method::Bless => "nystrom-bless",
            Method::Greedy => "nystrom-greedy",
            Method::Kernel => "ours-kernel",
            Method::Cells => "ours-cells",
            Method::Landmarks => "landmarks-alone",
            Method::Subsample => "2000-rows",
            Method::One => "one-cluster",
            Method::AllRows => "all-rows",
        }
    }

    /// Returns the name in pictures.
    pub fn title(self) -> &'static str {
        match self {
            Method::Fourier => "random Fourier",
            Method::Uniform => "Nyström, uniform",
            Method::Bless => "Nyström, BLESS",
            Method::Greedy => "Nyström, greedy",
            Method::Kernel => "ours: kernel sums",
            Method::Cells => "ours: cells",
            Method::Landmarks => "landmarks alone",
            Method::Subsample => "2,000 rows",
            Method::One => "one cluster",
            Method::AllRows => "all rows",
        }
    }

    /// Returns the name of the decoder or algorithm that makes the model.
    pub fn decoder(self, task: Task) -> &'static str {
        match (self, task) {
            (Method::Kernel, _) => "kernel",
            (Method::Cells, _) => "cells",
            _ if self.of_paper() => "clompr",
            (_, Task::Gmm) => "em",
            _ => "lloyd",
        }
    }

    /// Returns whether the method is in the paper and decoded by CL-OMPR.
    pub fn of_paper(self) -> bool {
        self <= Method::Greedy
    }
}

/// One fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    pub study: Study,
    pub method: Method,
    /// Sketch size, if it can be chosen.
    pub size: Option<usize>,
    pub lambda: Option<f64>,
    pub sigma2: Option<f64>,
    pub trial: u32,
}

impl Study {
    fn job(self, method: Method, size: Option<usize>, trial: u32) -> Job {
        let sigma2 = match method {
            Method::Fourier => Some(self.sigma2[1]),
            _ => method.of_paper().then_some(self.sigma2[0]),
        };
        Job { study: self, method, size, lambda: None, sigma2, trial: 0 }.at(trial)
    }

    /// Returns the fit on all rows, with which the fits of a trial are compared.
    pub fn reference(self, trial: u32) -> Job {
        self.job(Method::AllRows, None, trial)
    }

    /// Returns the number of parameters of a model divided by k.
    pub fn parameters_per_cluster(&self, dims: usize) -> usize {
        if self.task == Task::Gmm { 2 * dims } else { dims }
    }

    /// Returns the maximum number of rows to use.
    pub fn most_rows(quick: bool) -> usize {
        if quick { QUICK_ROWS } else { usize::MAX }
    }
}

impl Panel {
    /// Returns the name of the panel's files.
    pub fn name(&self) -> String {
        let task = self.study.task.name();
        let view = match self.view {
            View::BySize => "size",
            View::Agreement => "ari",
            View::ByVariance => "variance",
            View::Sizes(Method::Fourier) => "fourier",
            View::Sizes(_) => "nystrom",
        };
        format!("fig{}-{task}-{}-{view}", self.figure, self.study.set)
    }

    fn sizes(&self, quick: bool) -> impl Iterator<Item = usize> + use<> {
        self.study.sizes.iter().copied().filter(move |m| !quick || *m <= QUICK_SIZE)
    }

    fn variances(&self, quick: bool) -> impl Iterator<Item = f64> + use<> {
        self.study.variances.iter().copied().step_by(if quick { 2 } else { 1 })
    }

    /// Returns the fits of one trial.
    pub fn jobs(&self, trial: u32, quick: bool) -> Vec<Job> {
        let study = self.study;
        let most = if quick { 1 } else { MOST_TRIALS_OF_FIGURE_2 };
        if self.figure == 2 && trial >= most {
            return Vec::new();
        }
        let mut jobs = vec![study.reference(trial)];
        let sweep = |method: Method, size: usize| {
            let job = study.job(method, Some(size), trial);
            self.variances(quick).map(move |s| Job { sigma2: Some(s), ..job })
        };
        match self.view {
            View::BySize | View::Agreement => {
                for method in [Method::Fourier, Method::Uniform] {
                    jobs.extend(self.sizes(quick).map(|m| study.job(method, Some(m), trial)));
                }
                if !quick && trial < MOST_TRIALS_OF_LARGE {
                    for method in [Method::Fourier, Method::Uniform, Method::Greedy] {
                        jobs.extend(study.large.iter().map(|m| study.job(method, Some(*m), trial)));
                    }
                }
                let coarse = study.lambdas.len() / if quick { 2 } else { 1 };
                let bless = study.job(Method::Bless, None, trial);
                jobs.extend(
                    study.lambdas[..coarse].iter().map(|l| Job { lambda: Some(*l), ..bless }),
                );
                for method in [Method::Greedy, Method::Kernel, Method::Cells, Method::Landmarks] {
                    jobs.extend(self.sizes(quick).map(|m| study.job(method, Some(m), trial)));
                }
                jobs.push(study.job(Method::Subsample, None, trial));
            }
            View::ByVariance => {
                let size = study.size_of_sweep.min(if quick { QUICK_SIZE } else { usize::MAX });
                for method in [Method::Fourier, Method::Uniform, Method::Greedy] {
                    jobs.extend(sweep(method, size));
                }
            }
            View::Sizes(method) => {
                self.sizes(quick).for_each(|size| jobs.extend(sweep(method, size)));
            }
        }
        jobs.push(study.job(Method::One, None, trial));
        jobs
    }
}

impl Job {
    /// Returns the same fit in another trial. Fits on all rows have a single trial if every trial
    /// has the same rows.
    pub fn at(self, trial: u32) -> Job {
        let of_all_rows = matches!(self.method, Method::One | Method::AllRows);
        let same_rows = !matches!(self.study.source, Source::Mixture { .. });
        Job { trial: if of_all_rows && same_rows { 0 } else { trial }, ..self }
    }

    /// Estimates the work of a fit in arbitrary units, to predict the remaining time.
    pub fn cost(&self, rows: usize, dims: usize) -> f64 {
        let (n, d, k) = (rows as f64, dims as f64, self.study.k as f64);
        let m = match (self.size, self.lambda) {
            (Some(m), _) => m as f64,
            (None, Some(lambda)) => 15.0 * lambda.powf(-0.4),
            (None, None) => 0.0,
        };
        let evaluation = n * d * k + n * d * m / 8.0;
        let mixture = if self.study.task == Task::Gmm { 3.0 } else { 1.0 };
        1e6 + mixture * evaluation
            + match self.method {
                Method::Fourier => 1200.0 * k * m * k * d,
                paper if paper.of_paper() => 500.0 * k * m * (m + 6.0 * k * d) + 10.0 * m * m * m,
                Method::One => 0.0,
                Method::AllRows => 60.0 * mixture * evaluation,
                Method::Subsample => 100.0 * SUBSAMPLE as f64 * d * k,
                Method::Landmarks => 100.0 * m * d * k,
                _ => 3e8,
            }
    }
}
