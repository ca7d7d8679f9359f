//! A model's file, field by field: what each task needs is named where it is missing.

use super::{Model, SCHEMA, Shape};
use crate::covariance::{Covariance, CovarianceKind, SymmetricMatrix};
use crate::densities::Densities;
use crate::error::{Error, Result};
use crate::profile::Profile;
use crate::report::Report;
use crate::task::Task;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// Every field that a file may have. Numbers go straight into their places, so that reading takes little more
/// memory than the model.
#[derive(Debug, Deserialize)]
struct ModelFile {
    schema: u32,
    task: Task,
    columns: Vec<String>,
    scale: Vec<f64>,
    rows: u64,
    plan: String,
    report: Report,
    profile: Option<Profile>,
    densities: Option<Densities>,
    weights: Option<Vec<f64>>,
    centres: Option<Vec<Vec<f64>>>,
    means: Option<Vec<Vec<f64>>>,
    covariance: Option<CovarianceKind>,
    variances: Option<Vec<Vec<f64>>>,
    covariances: Option<Vec<Vec<Vec<f64>>>>,
    mean: Option<Vec<f64>>,
    components: Option<Vec<Vec<f64>>>,
    explained_variance: Option<Vec<f64>>,
    explained_variance_ratio: Option<Vec<f64>>,
}

/// What is read first.
#[derive(Debug, Deserialize)]
struct Version {
    schema: Option<u64>,
}

impl Model {
    /// Reads a model's file. The schema is read first, so that a newer file is not called damaged.
    pub fn from_json(text: &str) -> Result<Self> {
        let model = ModelFile::read(text)?.into_model()?;
        model.check()?;
        Ok(model)
    }
}

fn bad(how: String) -> Error {
    Error::BadModel { how }
}

impl ModelFile {
    /// Reads a file of a schema that is known.
    fn read(text: &str) -> Result<Self> {
        let version: Version =
            serde_json::from_str(text).map_err(|e| bad(format!("is not valid JSON: {e}")))?;
        match version.schema {
            Some(schema) if (1..=u64::from(SCHEMA)).contains(&schema) => {}
            Some(schema) => {
                return Err(bad(format!("has schema {schema}, this program reads 1 to {SCHEMA}")));
            }
            None => return Err(bad("has no schema: it is not a model of nysketch".into())),
        }
        serde_json::from_str(text).map_err(|e| bad(format!("is not valid: {e}")))
    }

    /// The model, which is not checked yet.
    fn into_model(mut self) -> Result<Model> {
        let shape = self.shape()?;
        let ModelFile {
            schema,
            task,
            columns,
            scale,
            rows,
            plan,
            mut report,
            profile,
            densities,
            ..
        } = self;
        // Schema 1 says in one word which decoder ran and whether the model is that of calibrated landmarks.
        if schema == 1
            && let Some(name) = report.decoder.strip_suffix(" (calibrated landmarks)")
        {
            report.decoder = name.into();
            report.calibrated = true;
        }
        Ok(Model {
            schema: SCHEMA,
            task,
            columns,
            scale,
            rows,
            plan,
            shape,
            profile,
            densities,
            report,
        })
    }

    fn shape(&mut self) -> Result<Shape> {
        let task = self.task;
        Ok(match task {
            Task::Kmeans | Task::Kmedians => Shape::Centres {
                weights: field(&mut self.weights, "weights", task)?,
                centres: field(&mut self.centres, "centres", task)?,
            },
            Task::Gmm => {
                let means = field(&mut self.means, "means", task)?;
                // Earlier schemas know no others.
                let covariance = match self.schema {
                    1 | 2 => CovarianceKind::Diag,
                    _ => field(&mut self.covariance, "covariance", task)?,
                };
                Shape::Mixture {
                    weights: field(&mut self.weights, "weights", task)?,
                    covariance,
                    covariances: self.covariances(covariance, means.len())?,
                    means,
                }
            }
            Task::Pca => {
                let ratio = &mut self.explained_variance_ratio;
                Shape::Components {
                    mean: field(&mut self.mean, "mean", task)?,
                    components: field(&mut self.components, "components", task)?,
                    explained_variance: field(
                        &mut self.explained_variance,
                        "explained_variance",
                        task,
                    )?,
                    explained_variance_ratio: field(ratio, "explained_variance_ratio", task)?,
                }
            }
        })
    }

    /// k covariances.
    fn covariances(&mut self, kind: CovarianceKind, k: usize) -> Result<Vec<Covariance>> {
        if !kind.is_matrix() {
            let variances = field(&mut self.variances, "variances", self.task)?;
            return Ok(variances.into_iter().map(Covariance::Diagonal).collect());
        }
        let matrix = |rows: Vec<Vec<f64>>| {
            SymmetricMatrix::from_rows(&rows)
                .map(Covariance::Full)
                .map_err(|how| bad(format!("has a covariance that {how}")))
        };
        let matrices = field(&mut self.covariances, "covariances", self.task)?;
        let mut covariances = matrices.into_iter().map(matrix).collect::<Result<Vec<_>>>()?;
        if kind == CovarianceKind::Tied {
            if covariances.len() != 1 {
                return Err(
                    bad("does not have one covariance, which tied components share".into()),
                );
            }
            covariances.resize(k, covariances[0].clone());
        }
        Ok(covariances)
    }
}

/// A field that the task needs.
fn field<T>(value: &mut Option<T>, name: &str, task: Task) -> Result<T> {
    value.take().ok_or_else(|| bad(format!("has the task {task}, but no {name}")))
}

/// What each task writes.
#[derive(Serialize)]
#[serde(untagged)]
enum ShapeFile<'a> {
    Mixture {
        weights: &'a [f64],
        means: &'a [Vec<f64>],
        covariance: CovarianceKind,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        variances: Vec<Cow<'a, [f64]>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        covariances: Vec<&'a SymmetricMatrix>,
    },
    Centres {
        weights: &'a [f64],
        centres: &'a [Vec<f64>],
    },
    Components {
        mean: &'a [f64],
        components: &'a [Vec<f64>],
        explained_variance: &'a [f64],
        explained_variance_ratio: &'a [f64],
    },
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let file = match self {
            Shape::Mixture { weights, means, covariance, covariances } => {
                let matrix = |c| match c {
                    &Covariance::Diagonal(_) => None,
                    Covariance::Full(matrix) => Some(matrix),
                };
                let variances = match covariance.is_matrix() {
                    true => Vec::new(),
                    false => covariances.iter().map(Covariance::variances).collect(),
                };
                let mut covariances: Vec<_> = covariances.iter().filter_map(matrix).collect();
                if *covariance == CovarianceKind::Tied {
                    covariances.truncate(1);
                }
                ShapeFile::Mixture {
                    weights,
                    means,
                    covariance: *covariance,
                    variances,
                    covariances,
                }
            }
            Shape::Centres { weights, centres } => ShapeFile::Centres { weights, centres },
            Shape::Components {
                mean,
                components,
                explained_variance,
                explained_variance_ratio,
            } => ShapeFile::Components {
                mean,
                components,
                explained_variance,
                explained_variance_ratio,
            },
        };
        file.serialize(serializer)
    }
}
