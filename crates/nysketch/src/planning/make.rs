//! All steps of planning where the rows lie on one machine.

use super::distant::distant_rows;
use super::draft::Draft;
use super::params::{PlanParams, PlanValid};
use super::report::PlanReport;
use crate::error::Result;
use crate::plan::Plan;
use crate::rows::{Progress, RowSource};
use crate::survey::survey;

/// Makes a plan. Reads the source once, and once more for D² landmarks on data larger than the
/// sample.
pub fn make_plan(
    source: &dyn RowSource,
    params: &PlanValid,
    progress: &dyn Progress,
) -> Result<(Plan, PlanReport)> {
    let found = survey(source, params.weighting(), params.survey(), progress)?;
    let draft = Draft::new(source.columns(), found, params)?;
    let distant = match draft.wants_distant_rows() {
        Some((first, count)) => {
            Some(distant_rows(&first, count, source, params.threads(), progress)?)
        }
        None => None,
    };
    draft.finish(distant)
}

/// Checks the parameters and makes a plan for the rows of `source`, unwatched.
pub fn plan_for(source: &dyn RowSource, params: PlanParams) -> Result<(Plan, PlanReport)> {
    make_plan(source, &params.check()?, &())
}
