//! The file format of a model. An error names the field that is missing for the task.

use super::{Model, SCHEMA, Shape};
use crate::covariance::{Covariance, CovarianceKind, SymmetricMatrix};
use crate::model::densities::Densities;
use crate::model::intervals::Intervals;
use crate::model::report::Report;
use crate::model::task::Task;
use nysketch_core::error::names::Named;
use nysketch_core::error::{Error, Result};
use nysketch_core::recipe::{Category, Number, Recipe, Step};
use nysketch_core::sketch::profile::Profile;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// All fields that a file may have. Numbers are read directly into their vectors, so that reading
/// takes little more memory than the model.
#[derive(Debug, Deserialize)]
struct ModelFile {
    schema: u32,
    task: Task,
    columns: Vec<String>,
    categories: Option<Vec<CategoryFile>>,
    steps: Option<Vec<StepFile>>,
    units: Option<Vec<[usize; 2]>>,
    least_present: Option<usize>,
    level_shares: Option<Vec<Vec<f64>>>,
    scale: Vec<f64>,
    rows: u64,
    plan: String,
    report: Report,
    profile: Option<Profile>,
    densities: Option<Densities>,
    intervals: Option<Intervals>,
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

/// A category in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CategoryFile {
    name: String,
    levels: Vec<String>,
    weight: f64,
}

/// The source of a numeric column, in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    input: String,
    step: String,
}

/// The derivation of the columns from those of a table; omitted if they are unchanged.
#[derive(Debug, Serialize)]
struct RecipeFile {
    categories: Vec<CategoryFile>,
    steps: Vec<StepFile>,
    units: Vec<[usize; 2]>,
    least_present: Option<usize>,
}

/// Writes the preprocessing, or omits it if the columns are unchanged.
pub(super) fn recipe<S: Serializer>(
    recipe: &Recipe,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let names: Vec<String> = recipe.numbers.iter().map(|n| n.input.clone()).collect();
    if recipe.is_plain(&names) {
        return None::<RecipeFile>.serialize(serializer);
    }
    Some(RecipeFile {
        categories: recipe
            .categories
            .iter()
            .map(|c| CategoryFile {
                name: c.name.clone(),
                levels: c.levels.clone(),
                weight: c.weight,
            })
            .collect(),
        steps: recipe
            .numbers
            .iter()
            .map(|n| StepFile { input: n.input.clone(), step: n.step.name().into() })
            .collect(),
        units: recipe.units.iter().map(|u| [u.start, u.end]).collect(),
        least_present: recipe.least_present,
    })
    .serialize(serializer)
}

/// The part of the file that is read first.
#[derive(Debug, Deserialize)]
struct Version {
    schema: Option<u64>,
}

impl Model {
    /// Reads a model from its JSON file. The schema version is read first, so that a newer file is
    /// not reported as damaged.
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
    /// Reads a file of a supported schema version.
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
        // Backquotes mark names of parameters, which front ends respell as options; use other
        // quotes.
        serde_json::from_str(text).map_err(|e| bad(format!("is not valid: {e}").replace('`', "'")))
    }

    /// Converts the file to a model, which is not checked yet.
    fn into_model(mut self) -> Result<Model> {
        let shape = self.shape()?;
        let recipe = self.recipe()?;
        let levels = self.level_shares.take().unwrap_or_default();
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
            intervals,
            ..
        } = self;
        // Schema 1 stores the decoder and the use of calibrated landmarks in one string.
        if schema == 1
            && let Some(name) = report.decoder.strip_suffix(" (calibrated landmarks)")
        {
            report.decoder = name.into();
            report.calibrated = true;
        }
        // Models of earlier schemas are converted to schema 3, which can represent them all.
        let schema = schema.max(3);
        Ok(Model {
            schema,
            task,
            columns,
            recipe,
            levels,
            scale,
            rows,
            plan,
            shape,
            profile,
            densities,
            intervals,
            report,
        })
    }

    /// Returns the derivation of the columns; earlier schemas have unchanged columns only.
    fn recipe(&mut self) -> Result<Recipe> {
        if self.schema < 4 {
            return Ok(Recipe::plain(self.columns.iter().cloned()));
        }
        let mut recipe = Recipe::default();
        for StepFile { input, step } in field(&mut self.steps, "steps", self.task)? {
            let step = Step::from_name(&step).map_err(|e| bad(format!("is not valid: {e}")))?;
            recipe.numbers.push(Number { input, step });
        }
        for CategoryFile { name, levels, weight } in
            field(&mut self.categories, "categories", self.task)?
        {
            recipe.categories.push(Category { name, levels, weight });
        }
        let units = field(&mut self.units, "units", self.task)?;
        recipe.units = units.into_iter().map(|[start, end]| start..end).collect();
        recipe.least_present = self.least_present;
        Ok(recipe)
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
                // Earlier schemas have diagonal covariances only.
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

    /// Returns the covariances of k components.
    fn covariances(&mut self, kind: CovarianceKind, k: usize) -> Result<Vec<Covariance>> {
        if !kind.is_matrix() {
            let variances = field(&mut self.variances, "variances", self.task)?;
            return Ok(variances.into_iter().map(Covariance::Diagonal).collect());
        }
        let matrices = field(&mut self.covariances, "covariances", self.task)?;
        let mut covariances = matrices
            .into_iter()
            .map(|rows| {
                SymmetricMatrix::from_rows(&rows)
                    .map(Covariance::Full)
                    .map_err(|how| bad(format!("has a covariance that {how}")))
            })
            .collect::<Result<Vec<_>>>()?;
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

/// Returns a field that the task requires.
fn field<T>(value: &mut Option<T>, name: &str, task: Task) -> Result<T> {
    value.take().ok_or_else(|| bad(format!("has the task {task}, but no {name}")))
}

/// The fields that are written for each kind of model.
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
                let variances = if covariance.is_matrix() {
                    Vec::new()
                } else {
                    covariances.iter().map(Covariance::variances).collect()
                };
                let mut covariances: Vec<_> = covariances
                    .iter()
                    .filter_map(|c| match c {
                        &Covariance::Diagonal(_) => None,
                        Covariance::Full(matrix) => Some(matrix),
                    })
                    .collect();
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
