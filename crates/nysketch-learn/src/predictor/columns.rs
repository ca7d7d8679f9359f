//! The columns of a prediction: their names, their content and the models that have them.
//!
//! | column | content | models |
//! |---|---|---|
//! | `label` | nearest centre or most likely component, from 0; -1 if unusable | all but pca |
//! | `distance` | distance to that centre or mean, in the coordinates of the fit | all but pca |
//! | `log_density` | log density of the row, in nats | mixtures |
//! | `outlier` | log density below the threshold; missing if unusable | mixtures, on request |
//! | `p0`, `p1`, … | probability of each component | mixtures, on request |
//! | `pc1`, `pc2`, … | coordinate along each principal component | pca |

use super::rows::ModelRows;
use super::{Detail, Predictions, Predictor};
use crate::model::{Model, Shape};
use nysketch_core::error::{Error, Result};

/// One column of a prediction.
///
/// | column | content | models |
/// |---|---|---|
/// | `label` | nearest centre or most likely component, from 0; -1 if unusable | all but pca |
/// | `distance` | distance to that centre or mean, in the coordinates of the fit | all but pca |
/// | `log_density` | log density of the row, in nats | mixtures |
/// | `outlier` | log density below the threshold; missing if unusable | mixtures, on request |
/// | `p0`, `p1`, … | probability of each component | mixtures, on request |
/// | `pc1`, `pc2`, … | coordinate along each principal component | pca |
///
/// ```
/// use nysketch::predictor::Column;
/// use nysketch::{FitParams, Task, fit};
/// # fn main() -> nysketch::Result<()> {
/// # use nysketch::{Mixture, PlanParams, Sketch, SketchParams, Table, plan_for};
/// # let rows = Mixture::new(2, 3, 4.0, 7)?.rows(0, 900).values;
/// # let table = Table::unnamed(2, rows.clone())?;
/// # let plan = std::sync::Arc::new(plan_for(&table, PlanParams::default().landmarks(60))?.0);
/// # let sketch = Sketch::of(&plan, &table, SketchParams::default(), &())?;
/// let model = fit(&sketch, &FitParams::new(Task::Gmm, 2))?;
/// let mut columns = Column::of(&model);
/// columns.extend(Column::probabilities(&model).unwrap());
/// let names: Vec<String> = columns.iter().map(|c| c.name()).collect();
/// assert_eq!(names, ["label", "distance", "log_density", "p0", "p1"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Column {
    /// `label`, the only integer column.
    Label,
    /// `distance`.
    Distance,
    /// `log_density`.
    LogDensity,
    /// `outlier`.
    Outlier {
        /// The log density below which a row is an outlier.
        threshold: f64,
    },
    /// `p0`, `p1`, …
    Probability(usize),
    /// `pc1`, `pc2`, …, with indices from 0 here.
    Coordinate(usize),
}

/// The content of a column, one value for each row.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Labels; -1 for an unusable row.
    Labels(Vec<i32>),
    /// Numbers; NaN for an unusable row.
    Numbers(Vec<f64>),
    /// Flags; `None` for an unusable row.
    Flags(Vec<Option<bool>>),
}

impl Values {
    /// Appends the values of later rows of the same column.
    pub fn append(&mut self, later: Values) {
        match (self, later) {
            (Values::Labels(all), Values::Labels(mut later)) => all.append(&mut later),
            (Values::Numbers(all), Values::Numbers(mut later)) => all.append(&mut later),
            (Values::Flags(all), Values::Flags(mut later)) => all.append(&mut later),
            _ => unreachable!("a column keeps its type"),
        }
    }
}

impl Column {
    /// Returns the columns that a model has by default.
    pub fn of(model: &Model) -> Vec<Column> {
        match model.shape {
            Shape::Centres { .. } => vec![Column::Label, Column::Distance],
            Shape::Mixture { .. } => vec![Column::Label, Column::Distance, Column::LogDensity],
            Shape::Components { .. } => (0..model.k()).map(Column::Coordinate).collect(),
        }
    }

    /// Returns the probability columns of a mixture; `None` for other models.
    pub fn probabilities(model: &Model) -> Option<Vec<Column>> {
        matches!(model.shape, Shape::Mixture { .. })
            .then(|| (0..model.k()).map(Column::Probability).collect())
    }

    /// Returns the flag of the rows whose density under a mixture is below that of all but about
    /// this share of the rows of the sketch.
    pub fn outlier(model: &Model, share: f64) -> Result<Column> {
        if !matches!(model.shape, Shape::Mixture { .. }) {
            let got = format!("{share} for a {} model", model.task);
            return Err(Error::parameter("`flag`", "used with a mixture", got));
        }
        let Some(densities) = &model.densities else {
            let expected = "used with a mixture that knows the densities of its rows: fit it \
                            again, from a sketch with cells";
            return Err(Error::parameter("`flag`", expected, share));
        };
        match densities.threshold(share) {
            Some(threshold) => Ok(Column::Outlier { threshold }),
            None => {
                let (min, max) = densities.range();
                let expected = format!("a share of the rows between {min} and {max}");
                Err(Error::parameter("`flag`", expected, share))
            }
        }
    }

    /// Returns the name of the column.
    pub fn name(self) -> String {
        match self {
            Column::Label => "label".into(),
            Column::Distance => "distance".into(),
            Column::LogDensity => "log_density".into(),
            Column::Outlier { .. } => "outlier".into(),
            Column::Probability(c) => format!("p{c}"),
            Column::Coordinate(c) => format!("pc{}", c + 1),
        }
    }

    /// Returns whether the column contains labels, which are integers.
    pub fn is_label(self) -> bool {
        self == Column::Label
    }

    fn detail(self) -> Detail {
        match self {
            Column::Label | Column::Distance => Detail::Label,
            Column::LogDensity | Column::Outlier { .. } => Detail::Density,
            Column::Probability(_) | Column::Coordinate(_) => Detail::All,
        }
    }
}

impl Predictor<'_> {
    /// Returns the requested columns of a prediction, each with a value for every row. Rows may
    /// contain any values: unusable rows get the label -1, NaN and no flag.
    pub fn columns<'r>(&self, rows: impl Into<ModelRows<'r>>, columns: &[Column]) -> Vec<Values> {
        let rows = rows.into();
        let (d, k) = (self.model().columns.len(), self.model().k());
        let n = rows.len(d);
        let mut usable = Vec::with_capacity(n);
        for i in 0..n {
            let row = rows.some(i..i + 1, d);
            if self.model().unusable(row.values, row.codes).is_none() {
                usable.push(i);
            }
        }
        let all = usable.len() == n;
        let (mut values, mut codes) = (Vec::new(), Vec::new());
        for i in usable.iter().filter(|_| !all) {
            let row = rows.some(*i..i + 1, d);
            values.extend_from_slice(row.values);
            codes.extend_from_slice(row.codes);
        }
        let some = ModelRows { values: &values, codes: &codes };
        let detail = columns.iter().map(|c| c.detail()).max().unwrap_or(Detail::Label);
        let predictions = self.predict(if all { rows } else { some }, detail);
        let placed = Placed { predictions, rows: n, usable, k };
        columns.iter().map(|column| placed.column(*column)).collect()
    }
}

/// The predictions of the usable rows, and their places among all rows.
struct Placed {
    predictions: Predictions,
    /// Number of all rows.
    rows: usize,
    /// The index of each usable row.
    usable: Vec<usize>,
    /// Number of centres or components of the model.
    k: usize,
}

impl Placed {
    /// Returns a column, with a value for every row.
    fn column(&self, column: Column) -> Values {
        let p = &self.predictions;
        match column {
            Column::Label => {
                Values::Labels(self.spread(p.label.iter().map(|l| *l as i32).collect(), -1))
            }
            Column::Distance => {
                self.numbers(p.squared_distance.iter().map(|d2| d2.sqrt()).collect())
            }
            Column::LogDensity => self.numbers(p.log_density.clone()),
            Column::Outlier { threshold } => {
                let flags = p.log_density.iter().map(|l| Some(*l < threshold)).collect();
                Values::Flags(self.spread(flags, None))
            }
            Column::Probability(c) | Column::Coordinate(c) => {
                self.numbers(p.transformed.iter().skip(c).step_by(self.k).copied().collect())
            }
        }
    }

    fn numbers(&self, values: Vec<f64>) -> Values {
        Values::Numbers(self.spread(values, f64::NAN))
    }

    /// Places the values of the usable rows among all rows, with `filler` elsewhere.
    fn spread<T: Copy>(&self, values: Vec<T>, filler: T) -> Vec<T> {
        if self.usable.len() == self.rows {
            return values;
        }
        let mut all = vec![filler; self.rows];
        self.usable.iter().zip(values).for_each(|(i, value)| all[*i] = value);
        all
    }
}
