//! The models that a page shows.

use super::request::ReportRequest;
use anyhow::Result;
use nysketch::decoder::Curve;
use nysketch::{Context as Decoding, FitParams, Model, Task};

/// Maximum number of clusters of a model on a page (the largest), and of columns (the most
/// informative).
pub const MOST_CLUSTERS: usize = 200;
pub const MOST_COLUMNS: usize = 300;
/// Maximum number of values of all models together. Each takes about 35 bytes, so the page stays
/// below two megabytes. The model that is shown first is always included.
const MOST_NUMBERS: usize = 60_000;
/// Size of a cluster's card, apart from its values, in units of a value.
const CARD: usize = 30;

/// Models for every k.
pub struct TaskCurve {
    pub task: Task,
    pub curve: Curve,
    /// k and risk of given models, to be added to the curve.
    pub given: Vec<(usize, f64)>,
}

impl TaskCurve {
    /// Returns k and risk of all models, by increasing k.
    pub fn points(&self) -> Vec<(usize, f64)> {
        let mut points: Vec<(usize, f64)> =
            self.curve.points.iter().map(|p| (p.k, p.risk)).collect();
        points.extend(&self.given);
        points.sort_by_key(|p| p.0);
        points.dedup_by_key(|p| p.0);
        points
    }
}

/// The models on the page.
pub struct Shown<'a> {
    pub models: Vec<&'a Model>,
    /// Index of the model that is shown first.
    pub first: usize,
    /// k of the models that are left out to limit the size of the page.
    pub left_out: Vec<usize>,
    /// Whether principal components were among the models; they have no clusters to show.
    pub components: bool,
}

impl<'a> Shown<'a> {
    pub fn first(&self) -> Option<&'a Model> {
        self.models.get(self.first).copied()
    }
}

/// Returns the name of a task.
pub fn task_name(task: Task) -> &'static str {
    match task {
        Task::Kmeans => "k-means",
        Task::Kmedians => "k-medians",
        Task::Gmm => "Gaussian mixture",
        Task::Pca => "principal components",
    }
}

/// Returns a curve for each task of the given models, or for k-means by default, if the sketch
/// allows risks and at least two centres. Each task has its own risk and therefore its own curve.
pub fn curves(decoding: &Decoding<'_>, request: &ReportRequest<'_>) -> Result<Vec<TaskCurve>> {
    let (sketch, plan) = (decoding.sketch(), decoding.plan());
    let places =
        if plan.collect.cells { sketch.cells().len() } else { plan.features.points().len() };
    let most = places.min(request.most_clusters);
    let known = plan.landmarks().is_some() && (plan.collect.cells || plan.collect.kernel);
    let mut tasks: Vec<Task> = Vec::new();
    for task in request.models.iter().map(|m| m.task).filter(|t| *t != Task::Pca) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    if tasks.is_empty() {
        tasks.push(Task::Kmeans);
    }
    tasks.retain(|task| known && most >= 2 && (plan.collect.cells || *task != Task::Gmm));
    let curve = |task| {
        let params = FitParams::new(task, 1).seed(request.seed).threads(request.threads);
        let given = request.models.iter().filter(|m| m.task == task);
        let given = given.filter_map(|m| Some((m.k(), decoding.risk(m)?))).collect();
        Ok(TaskCurve { task, curve: decoding.curve(&params, 1, most)?, given })
    };
    tasks.into_iter().map(curve).collect()
}

/// Returns the given models, or the models of the curve, as many as fit on the page. The ones
/// nearest to the suggested k are preferred.
pub fn shown<'a>(request: &ReportRequest<'a>, curves: &'a [TaskCurve]) -> Shown<'a> {
    let clusters = |m: &&Model| m.task != Task::Pca;
    let given: Vec<&Model> = request.models.iter().copied().filter(clusters).collect();
    let components = given.len() < request.models.len();
    let mut candidates = given.clone();
    if let (true, Some(of)) = (given.is_empty(), curves.first()) {
        let best = of.curve.best().k;
        let more = of.curve.points.iter().filter(|p| p.k > 1 || best == 1);
        candidates = more.map(|p| &p.model).collect();
        candidates.sort_by_key(|m| m.k().abs_diff(best));
    }
    let first = candidates.first().copied();
    let mut room = MOST_NUMBERS;
    let (mut models, mut left_out) = (Vec::new(), Vec::new());
    for model in candidates {
        let per_cluster = model.columns.len().min(MOST_COLUMNS) + CARD;
        let numbers = model.k().min(MOST_CLUSTERS) * per_cluster;
        if models.is_empty() || numbers <= room {
            room = room.saturating_sub(numbers);
            models.push(model);
        } else {
            left_out.push(model.k());
        }
    }
    models.sort_by_key(|m| (m.task.name(), m.k()));
    left_out.sort_unstable();
    let is_first = |m: &&Model| first.is_some_and(|f| std::ptr::eq(f, *m));
    let first = models.iter().position(is_first).unwrap_or(0);
    Shown { models, first, left_out, components }
}
