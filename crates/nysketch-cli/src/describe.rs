//! Words for plans and changes that several commands show.

use crate::output::{count, short};
use nysketch::drift::Drift;
use nysketch::{Features, Plan};

/// "400 landmarks (dsquared)".
pub fn measured_at(plan: &Plan) -> String {
    match &plan.features {
        Features::Nystrom(points, sampling) => {
            format!("{} ({})", count(points.len() as u64, "landmark"), sampling.name())
        }
        Features::Fourier(points) => format!("{} Fourier frequencies", points.len()),
    }
}

/// A place by the columns in which it is the most unusual.
pub fn place(mean: &[f64], drift: &Drift, plan: &Plan) -> String {
    let unusual = |k: usize| {
        let column = drift.columns.iter().find(|c| c.column == plan.columns[k]);
        column.map_or(0.0, |c| {
            let spread = c.deviations[0].max(c.deviations[1]);
            if spread > 0.0 { ((mean[k] - c.means[0]) / spread).abs() } else { 0.0 }
        })
    };
    let mut order: Vec<usize> = (0..mean.len()).collect();
    order.sort_by(|i, j| unusual(*j).total_cmp(&unusual(*i)));
    let named = order.iter().take(4).map(|&k| format!("{} {}", plan.columns[k], short(mean[k])));
    named.collect::<Vec<_>>().join(", ")
}
