//! The number of landmarks: one rule for planning, for warnings of decoders, and for every front
//! end.

/// Default number of landmarks, if the number of clusters is not given.
pub const DEFAULT_LANDMARKS: usize = 400;

/// Number of landmarks per cluster, if the number of clusters is given. A cell that is cut by a
/// border serves two clusters.
pub(crate) const LANDMARKS_PER_CLUSTER: usize = 10;

/// Default number of landmarks: enough cells for the clusters to learn.
pub fn default_landmarks(clusters: Option<usize>) -> usize {
    DEFAULT_LANDMARKS.max(clusters.unwrap_or(0).saturating_mul(LANDMARKS_PER_CLUSTER))
}

/// Default number of landmarks for a table with this number of rows, if a plan can have at most
/// `max`.
pub(crate) fn possible_landmarks(clusters: Option<usize>, rows: u64, max: usize) -> usize {
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    // Small tables have fewer rows than the default. The choice of landmarks then finds that all
    // rows are landmarks.
    default_landmarks(clusters).min(rows.max(DEFAULT_LANDMARKS)).min(max)
}

/// If there are fewer than half the landmarks that k clusters need, and a table with this number of
/// rows could have more: the recommended number. `max` is the largest number of landmarks of a
/// plan.
pub fn too_few(landmarks: usize, k: usize, rows: u64, max: usize) -> Option<usize> {
    let possible = usize::try_from(rows).unwrap_or(usize::MAX).min(max);
    let enough = k.saturating_mul(LANDMARKS_PER_CLUSTER).min(possible);
    (landmarks < enough.div_ceil(2)).then(|| default_landmarks(Some(k)).min(possible))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u64 = 1 << 40;

    #[test]
    fn landmarks_follow_the_clusters_as_far_as_possible() {
        assert_eq!(default_landmarks(Some(3)), DEFAULT_LANDMARKS);
        let rule = default_landmarks(Some(1000));
        assert_eq!(rule, 1000 * LANDMARKS_PER_CLUSTER);
        assert_eq!(default_landmarks(Some(usize::MAX)), usize::MAX);
        assert_eq!(possible_landmarks(Some(1000), MANY, usize::MAX), rule);
        assert_eq!(possible_landmarks(Some(1000), 900, usize::MAX), 900);
        assert_eq!(possible_landmarks(Some(1000), MANY, 700), 700);
        assert_eq!(possible_landmarks(Some(1000), 50, usize::MAX), DEFAULT_LANDMARKS);
        assert_eq!(possible_landmarks(None, MANY, usize::MAX), DEFAULT_LANDMARKS);
    }

    #[test]
    fn few_landmarks_are_noticed_where_more_are_possible() {
        let rule = default_landmarks(Some(1000));
        assert_eq!(too_few(rule / 2, 1000, MANY, usize::MAX), None);
        assert_eq!(too_few(rule / 2 - 1, 1000, MANY, usize::MAX), Some(rule));
        assert_eq!(too_few(400, 1000, 900, usize::MAX), Some(900), "rows are few");
        assert_eq!(too_few(400, 1000, MANY, 700), None, "a plan cannot have more");
        assert_eq!(too_few(60, 5, MANY, usize::MAX), None, "fewer than the default, but enough");
        assert_eq!(too_few(9, 5, MANY, usize::MAX), Some(DEFAULT_LANDMARKS));
    }
}
