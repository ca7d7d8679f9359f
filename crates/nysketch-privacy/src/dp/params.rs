//! Private plans that follow an earlier release.

use super::release::Release;
use nysketch_core::error::{Error, Result};
use nysketch_core::plan::private::People;
use nysketch_core::planning::PrivateParams;
use nysketch_core::rows::Table;

/// Number of points from which landmarks are chosen if there are no public rows.
const POINTS: usize = 20_000;

/// Returns the parameters of a plan for rows that have been released before: the cost of that
/// release counts in later ones. Both must protect the same unit, single rows or people by the same
/// column. (One more row of a person may displace another row of that person.)
pub fn after(mut params: PrivateParams, release: &Release) -> Result<PrivateParams> {
    let now = protected(params.people.as_ref());
    let before = protected(release.plan().people());
    if now != before {
        let expected = format!("one that protects {now}, too");
        return Err(Error::parameter("`release`", expected, before));
    }
    params.spent = release.total().0;
    Ok(params)
}

/// Names the unit of protection.
fn protected(people: Option<&People>) -> String {
    people.map_or("single rows".into(), |people| format!("people by '{}'", people.column))
}

/// Returns rows from which landmarks are chosen if there are no public rows: points spread over the
/// bounds, or rows that resemble those of a release, whose cost then counts.
pub fn made_up(
    params: PrivateParams,
    release: Option<&Release>,
    seed: u64,
) -> Result<(PrivateParams, Table)> {
    match release {
        None => {
            let table = params.anywhere(POINTS, seed)?;
            Ok((params, table))
        }
        Some(release) => Ok((after(params, release)?, release.like_its_rows(POINTS, seed)?)),
    }
}
