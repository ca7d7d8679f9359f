//! Planning with all rows on one machine.

use super::distant::{Finder, distant_rows_by};
use super::draft::Draft;
use super::params::PlanParams;
use super::report::Planned;
use super::roles::{TableColumns, preliminary};
use super::valid::PlanValid;
use crate::error::Result;
use crate::pass::gpus::Gpus;
use crate::plan::Plan;
use crate::planning::survey::{SurveyPart, survey_part};
use crate::recipe::View;
use crate::rows::{Progress, RowSource};

/// Makes a plan. Reads the source once, and a second time for D² landmarks if there are more rows
/// than the sample holds.
///
/// ```
/// use nysketch_core::{PlanParams, Table, make_plan};
/// # fn main() -> nysketch_core::Result<()> {
/// // Parameters are checked before the source is opened.
/// let params = PlanParams::default().landmarks(10).check()?;
/// let table = Table::unnamed(1, (0..100).map(f64::from).collect())?;
/// let plan = make_plan(&table, &params, &())?.plan;
/// assert_eq!(plan.landmark_rows().len(), 10);
/// # Ok(())
/// # }
/// ```
pub fn make_plan(
    source: &dyn RowSource,
    params: &PlanValid,
    progress: &dyn Progress,
) -> Result<Planned> {
    params.device().check()?;
    let found = survey_rows(source, params, progress)?.finish()?;
    let rows = found.rows;
    progress.stage("choosing landmarks");
    let draft = Draft::new(&TableColumns::of(source), found, params)?;
    let mut remarks = Vec::new();
    let distant = match draft.wants_distant_rows() {
        Some((first, count)) => {
            let (gpus, unused) = gpus_for(&first, rows, params)?;
            let finder = gpus.as_ref().map_or_else(|| Finder::search(&first), Finder::gpus);
            let distant =
                distant_rows_by(finder, &first, count, source, params.threads(), progress)?;
            remarks.extend(unused);
            remarks.extend(gpus.and_then(|gpus| gpus.remark()));
            Some(distant)
        }
        None => None,
    };
    progress.stage("choosing landmarks");
    let mut planned = draft.finish(distant)?;
    planned.report.notes.extend(remarks);
    Ok(planned)
}

/// Starts GPUs with the landmarks of a plan, if they were requested or make planning faster.
/// Otherwise, returns the reason why a GPU that would be faster is not used.
fn gpus_for(plan: &Plan, rows: u64, params: &PlanValid) -> Result<(Option<Gpus>, Option<String>)> {
    if plan.is_partial() || !plan.categories().is_empty() {
        return Ok((None, None));
    }
    let landmarks = plan.features.points();
    let operations = 2.0 * rows as f64 * landmarks.data().len() as f64;
    let threads = params.threads();
    params.device().start(operations, threads, |ordinal| Gpus::new(landmarks, ordinal))
}

/// Reads a source, which may hold only a part of the rows, once and surveys all columns that may be
/// measured.
pub fn survey_rows(
    source: &dyn RowSource,
    params: &PlanValid,
    progress: &dyn Progress,
) -> Result<SurveyPart> {
    let (columns, recipe) = preliminary(&TableColumns::of(source), &params.params)?;
    let view = View::of_codes(&recipe, &columns, source)?;
    let width = view.columns().len() + view.categories().len();
    survey_part(&view, params.weighting(), params.survey(width), progress)
}

/// Checks the parameters and makes a plan for the rows of `source`, without reporting progress.
///
/// ```
/// use nysketch_core::{PlanParams, Planned, Table, plan_for};
/// # fn main() -> nysketch_core::Result<()> {
/// let table = Table::unnamed(1, (0..100).map(f64::from).collect())?;
/// let params = PlanParams::default().landmarks(10).seed(3);
/// let Planned { plan, report } = plan_for(&table, params)?;
/// assert_eq!((plan.landmark_rows().len(), report.rows), (10, 100));
/// # Ok(())
/// # }
/// ```
pub fn plan_for(source: &dyn RowSource, params: PlanParams) -> Result<Planned> {
    make_plan(source, &params.check()?, &())
}
