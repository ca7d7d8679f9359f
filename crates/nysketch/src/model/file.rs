//! A model's file, field by field: what each task needs is named where it is missing.

use super::{Model, SCHEMA, Shape};
use crate::error::{Error, Result};
use crate::profile::Profile;
use crate::report::Report;
use crate::task::Task;
use serde::Deserialize;

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
    weights: Option<Vec<f64>>,
    centres: Option<Vec<Vec<f64>>>,
    means: Option<Vec<Vec<f64>>>,
    variances: Option<Vec<Vec<f64>>>,
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
            Some(schema) if schema == 1 || schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                return Err(bad(format!("has schema {schema}, this program reads 1 and {SCHEMA}")));
            }
            None => return Err(bad("has no schema: it is not a model of nysketch".into())),
        }
        serde_json::from_str(text).map_err(|e| bad(format!("is not valid: {e}")))
    }

    /// The model, which is not checked yet.
    fn into_model(mut self) -> Result<Model> {
        let shape = self.shape()?;
        let ModelFile { schema, task, columns, scale, rows, plan, mut report, profile, .. } = self;
        // Schema 1 says in one word which decoder ran and whether the model is that of calibrated landmarks.
        if schema == 1
            && let Some(name) = report.decoder.strip_suffix(" (calibrated landmarks)")
        {
            report.decoder = name.into();
            report.calibrated = true;
        }
        Ok(Model { schema: SCHEMA, task, columns, scale, rows, plan, shape, profile, report })
    }

    fn shape(&mut self) -> Result<Shape> {
        fn field<T>(value: &mut Option<T>, name: &str, task: Task) -> Result<T> {
            value.take().ok_or_else(|| bad(format!("has the task {task}, but no {name}")))
        }
        let task = self.task;
        Ok(match task {
            Task::Kmeans | Task::Kmedians => Shape::Centres {
                weights: field(&mut self.weights, "weights", task)?,
                centres: field(&mut self.centres, "centres", task)?,
            },
            Task::Gmm => Shape::Mixture {
                weights: field(&mut self.weights, "weights", task)?,
                means: field(&mut self.means, "means", task)?,
                variances: field(&mut self.variances, "variances", task)?,
            },
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
}
