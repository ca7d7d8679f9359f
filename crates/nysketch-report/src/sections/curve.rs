//! The number of clusters: a curve for each task, and a slider over the models.

use super::models::{Shown, TaskCurve, task_name};
use crate::markup::escape;
use crate::page::Page;
use crate::plot::{self, Curve};
use crate::words::describe::risk_name;
use nysketch::{Model, Task};

pub fn section(page: &mut Page, curves: &[TaskCurve], shown: &Shown<'_>) {
    if !curves.is_empty() {
        page.heading("How many clusters?");
    }
    for of in curves {
        let word = if of.task == Task::Gmm { "least BIC" } else { "suggested" };
        let marked = Some((of.curve.best().k, word));
        let risk = format!("{} ({})", risk_name(&of.curve.best().model), task_name(of.task));
        let bic: Vec<(usize, f64)> =
            of.curve.points.iter().filter_map(|p| Some((p.k, p.bic?))).collect();
        let icl: Vec<(usize, f64)> =
            of.curve.points.iter().filter_map(|p| Some((p.k, p.icl?))).collect();
        page.push(&format!("<figure class=\"curve\" data-task=\"{}\">\n", of.task.name()));
        let least_icl = of.curve.least_icl().map(|p| (p.k, "least ICL"));
        let pictures =
            [(of.points(), risk.as_str(), marked), (bic, "BIC", marked), (icl, "ICL", least_icl)];
        for (points, name, marked) in pictures {
            if !points.is_empty() {
                let scene = plot::curve(&Curve { points: &points, marked, names: ["k", name] });
                page.push(&plot::element(&scene, "picture choice"));
            }
        }
        page.push("</figure>\n");
    }
    if !curves.is_empty() {
        page.note("Estimated from the sketch.");
    }
    if shown.models.len() > 1 {
        let name = escape(&model_name(shown.models[shown.first], curves));
        page.push(&format!(
            "<div class=\"tools choose\"><label for=\"model\">Clusters shown</label>\
             <input type=\"range\" id=\"model\" min=\"0\" max=\"{}\" step=\"1\" value=\"{}\" aria-valuetext=\"{name}\">\
             <output id=\"chosen\" for=\"model\">{name}</output></div>\n",
            shown.models.len() - 1,
            shown.first
        ));
    }
}

/// Names a model: "k-means, k = 5".
pub fn model_name(model: &Model, curves: &[TaskCurve]) -> String {
    let suggested = |c: &TaskCurve| c.task == model.task && c.curve.best().k == model.k();
    let mark = if curves.iter().any(suggested) { " (suggested)" } else { "" };
    format!("{}, k = {}{mark}", task_name(model.task), model.k())
}
