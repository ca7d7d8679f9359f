//! The parameters of a model.

use crate::atom::Atom;
use crate::covariance::{Covariance, CovarianceKind, Factor};
use crate::model::task::Task;
use nysketch_core::numeric::work::Work;
use nysketch_core::plan::frame::Frame;

/// The parameters, in the table's units.
///
/// ```
/// use nysketch::{FitParams, Shape, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Kmeans, 3))?;
/// let Shape::Centres { weights, centres } = &model.shape else { unreachable!("k-means") };
/// for (share, centre) in weights.iter().zip(centres) {
///     println!("{:.1} % of the rows around {centre:?}", 100.0 * share);
/// }
/// assert_eq!(centres.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// A Gaussian mixture.
    Mixture {
        /// Weights α with sum 1.
        weights: Vec<f64>,
        /// One mean per component.
        means: Vec<Vec<f64>>,
        /// The kind of covariance.
        covariance: CovarianceKind,
        /// One covariance per component: matrices or diagonals, depending on the kind, and all
        /// equal if tied.
        covariances: Vec<Covariance>,
    },
    /// Centres of clusters.
    Centres {
        /// Estimated share of the data at each centre.
        weights: Vec<f64>,
        /// One point per cluster.
        centres: Vec<Vec<f64>>,
    },
    /// Principal components of scaled columns.
    Components {
        /// Mean of each column.
        mean: Vec<f64>,
        /// Unit vectors, in order of decreasing variance.
        components: Vec<Vec<f64>>,
        /// Variance along each component.
        explained_variance: Vec<f64>,
        /// Share of the total variance along each component.
        explained_variance_ratio: Vec<f64>,
    },
}

impl Shape {
    /// Creates centres from atoms in the plan's coordinates.
    pub(crate) fn centres(frame: &Frame, atoms: &[Atom]) -> Self {
        let total: f64 = atoms.iter().map(|a| a.weight).sum();
        let equal = 1.0 / atoms.len() as f64;
        Shape::Centres {
            weights: atoms
                .iter()
                .map(|a| if total > 0.0 { a.weight / total } else { equal })
                .collect(),
            centres: atoms.iter().map(|a| frame.widen_coordinates(&a.mean)).collect(),
        }
    }

    /// Creates a mixture from atoms in the plan's coordinates.
    pub(crate) fn mixture(frame: &Frame, covariance: CovarianceKind, atoms: &[Atom]) -> Self {
        let total: f64 = atoms.iter().map(|a| a.weight).sum();
        Shape::Mixture {
            weights: atoms.iter().map(|a| a.weight / total).collect(),
            means: atoms.iter().map(|a| frame.widen_coordinates(&a.mean)).collect(),
            covariance,
            covariances: each(covariance, atoms.len(), |c| {
                atoms[c].covariance.scaled(&frame.scale)
            }),
        }
    }

    /// Returns the atoms of a mixture in the coordinates of a frame; `None` for other models.
    pub(crate) fn atoms(&self, frame: &Frame) -> Option<Vec<Atom>> {
        let Shape::Mixture { weights, means, covariance, covariances } = self else { return None };
        let inverse: Vec<f64> = frame.scale.iter().map(|s| 1.0 / s).collect();
        let covariances = each(*covariance, means.len(), |c| covariances[c].scaled(&inverse));
        Some(
            covariances
                .into_iter()
                .enumerate()
                .map(|(c, covariance)| Atom {
                    weight: weights[c],
                    mean: frame.coordinates(&means[c]),
                    covariance,
                    levels: Vec::new(),
                })
                .collect(),
        )
    }

    /// Returns the whitening factor of each component of a mixture; empty for other models.
    ///
    /// # Panics
    ///
    /// If a covariance is not positive definite. No model that was fitted or read has such a
    /// covariance.
    pub fn factors(&self) -> Vec<Factor> {
        let Shape::Mixture { covariance, covariances, .. } = self else { return Vec::new() };
        each(*covariance, covariances.len(), |c| {
            covariances[c].cholesky().expect("a positive definite covariance")
        })
    }

    /// Returns all numbers.
    pub(super) fn numbers(&self) -> Vec<&f64> {
        match self {
            Shape::Mixture { weights, means, covariances, .. } => {
                let numbers = covariances.iter().flat_map(Covariance::numbers);
                weights.iter().chain(means.iter().flatten()).chain(numbers).collect()
            }
            Shape::Centres { weights, centres } => {
                weights.iter().chain(centres.iter().flatten()).collect()
            }
            Shape::Components {
                mean,
                components,
                explained_variance,
                explained_variance_ratio,
            } => mean
                .iter()
                .chain(components.iter().flatten())
                .chain(explained_variance)
                .chain(explained_variance_ratio)
                .collect(),
        }
    }

    /// Returns the cost of checking the covariances and whitening rows.
    pub(super) fn work(&self) -> Work {
        match self {
            Shape::Mixture { covariance, means, covariances, .. } if covariance.is_matrix() => {
                let tied = *covariance == CovarianceKind::Tied;
                let d = means.first().map_or(0, Vec::len);
                Work::cholesky(d, if tied { 1 } else { covariances.len() })
            }
            _ => Work::default(),
        }
    }

    /// Returns the centres or means.
    pub(super) fn places(&self) -> &[Vec<f64>] {
        match self {
            Shape::Mixture { means, .. } => means,
            Shape::Centres { centres, .. } => centres,
            Shape::Components { mean, .. } => std::slice::from_ref(mean),
        }
    }

    /// Returns the rule of its kind that the shape breaks, if any.
    pub(super) fn broken(&self, task: Task, scale: &[f64]) -> Option<&'static str> {
        match self {
            Shape::Mixture { weights, means, covariance, covariances } => {
                if task != Task::Gmm {
                    Some("has means and covariances, but its task is another")
                } else if weights.len() != means.len() || covariances.len() != means.len() {
                    Some("does not have one weight, mean and covariance for each component")
                } else if !are_shares(weights) {
                    Some("has weights that are not shares of one")
                } else {
                    covariance.broken(covariances, scale)
                }
            }
            Shape::Centres { weights, centres } => {
                if task != Task::Kmeans && task != Task::Kmedians {
                    Some("has centres, but its task is another")
                } else if weights.len() != centres.len() || !are_shares(weights) {
                    Some("does not have one weight for each centre, shares of one")
                } else {
                    None
                }
            }
            Shape::Components {
                components, explained_variance, explained_variance_ratio, ..
            } => {
                let lengths = [explained_variance.len(), explained_variance_ratio.len()];
                if task != Task::Pca {
                    Some("has components, but its task is another")
                } else if lengths != [components.len(); 2] {
                    Some("does not have one variance for each component")
                } else if !components
                    .iter()
                    .all(|c| (c.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-6)
                {
                    Some("has a component that is not of length one")
                } else {
                    None
                }
            }
        }
    }

    /// Returns the lengths of the rows of all matrices, for checking a file.
    pub(super) fn widths(&self) -> Vec<usize> {
        match self {
            Shape::Mixture { means, covariances, .. } => {
                let covariances = covariances.iter().map(Covariance::dims);
                means.iter().map(Vec::len).chain(covariances).collect()
            }
            Shape::Centres { centres, .. } => centres.iter().map(Vec::len).collect(),
            Shape::Components { mean, components, .. } => {
                components.iter().chain(std::iter::once(mean)).map(Vec::len).collect()
            }
        }
    }
}

/// Returns whether all weights are shares of one.
fn are_shares(weights: &[f64]) -> bool {
    weights.iter().all(|w| *w >= 0.0) && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-6
}

/// Returns `of(c)` for each of k components, evaluated once and shared if covariances are tied.
fn each<T: Clone>(kind: CovarianceKind, k: usize, of: impl Fn(usize) -> T) -> Vec<T> {
    match kind {
        CovarianceKind::Tied if k > 0 => vec![of(0); k],
        _ => (0..k).map(of).collect(),
    }
}
