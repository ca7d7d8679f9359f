//! The clusters of each model: one card per cluster, and their profiles in a table coloured by
//! deviation.

use super::curve::model_name;
use super::map::labels;
use super::models::{MOST_CLUSTERS, MOST_COLUMNS, Shown, TaskCurve};
use super::overview::trait_html;
use crate::markup::escape;
use crate::page::{Page, name, sign};
use crate::plot::{STRONGEST, class, telling_aspects};
use crate::words::describe::{beside, doubts, estimated, lacking, notes, summary};
use crate::words::numbers::{count, short, thousands};
use anyhow::Result;
use nysketch::clusters::{Aspect, Cluster, Facts, Trait, telling};
use nysketch::model::Shape;
use nysketch::recipe::words::{self, percent};
use nysketch::{Context as Decoding, Model, Task};
use std::fmt::Write;

/// Number of clusters up to which the cards come first.
const FEW: usize = 12;
/// Maximum number of columns on a card.
const COLUMNS: usize = 5;

pub fn section(
    page: &mut Page,
    decoding: &Decoding<'_>,
    shown: &Shown<'_>,
    curves: &[TaskCurve],
) -> Result<()> {
    if shown.models.is_empty() {
        return Ok(());
    }
    page.heading("Clusters");
    for (i, model) in shown.models.iter().enumerate() {
        let open = if i == shown.first { " open" } else { "" };
        let name = escape(&model_name(model, curves));
        let labels: Vec<String> =
            labels(decoding.sketch(), model).iter().map(usize::to_string).collect();
        page.push(&format!(
            "<details class=\"model\" data-task=\"{}\" data-k=\"{}\" data-name=\"{name}\" data-labels=\"{}\"{open}>\
             <summary>{name}</summary>\n",
            model.task.name(),
            model.k(),
            labels.join(" ")
        ));
        one(page, decoding, model)?;
        page.push("</details>\n");
    }
    Ok(())
}

fn one(page: &mut Page, decoding: &Decoding<'_>, model: &Model) -> Result<()> {
    page.push(&format!("<h3>{}</h3>\n", count(model.k() as u64, "cluster")));
    let few = decoding.is_small();
    if let Some(explanation) = few.then(|| decoding.explain(model)).transpose()?.flatten() {
        let verdict = explanation.verdict.text();
        page.text(&format!("Against the noise of the sketch: {verdict}."));
    }
    if model.task == Task::Gmm {
        let risk =
            decoding.risk(model).map_or(String::new(), |r| format!("; {}", estimated(model, r)));
        page.text(&format!("A {}{risk}.", summary(model)));
    }
    for said in notes(model).iter().chain(&doubts(model)) {
        page.text(&format!("{}.", sentence_case(said)));
    }
    let mut clusters = model.clusters();
    clusters.sort_by(|a, b| b.share.total_cmp(&a.share));
    if clusters.len() > MOST_CLUSTERS {
        clusters.truncate(MOST_CLUSTERS);
        page.note(&format!(
            "The {MOST_CLUSTERS} largest of {} clusters.",
            thousands(model.k() as u64)
        ));
    }
    let mut cards = String::from("<ul class=\"cards\">\n");
    clusters.iter().for_each(|c| cards.push_str(&card(c, model)));
    cards.push_str("</ul>\n");
    clusters.sort_by_key(|c| c.label);
    // With few clusters, the cards come first; with many, the overview does.
    if clusters.len() > FEW {
        profiles(page, &clusters, model);
        page.push(&cards);
    } else {
        page.push(&cards);
        profiles(page, &clusters, model);
    }
    Ok(())
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |c| c.to_uppercase().chain(letters).collect())
}

fn card(cluster: &Cluster, model: &Model) -> String {
    let share = 100.0 * cluster.share;
    let mut html = format!(
        "<li class=\"card\" data-label=\"{label}\"><h4>{}cluster {label}</h4>\
         <svg class=\"bar\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect width=\"100\" height=\"6\"/><path class=\"{}\" d=\"M0 3H{share:.1}\"/></svg>\
         {share:.1} % of the rows <small>({})</small>",
        sign(cluster.label),
        class(cluster.label),
        thousands(cluster.rows),
        label = cluster.label,
    );
    if let Some(spread) = cluster.spread {
        let all = whole_spread(model).map_or(String::new(), |s| format!("(all rows {})", short(s)));
        let _ = write!(html, "<br>spread {} <small>{all}</small>", short(spread));
    }
    if let Some(share) = lacking(model, cluster.label).filter(|share| *share > 0.0) {
        let _ = write!(html, "<br>{} of the numbers missing", percent(share));
    }
    let telling = telling(&cluster.traits);
    let unusual = telling.iter().filter(|t| t.deviations != 0.0).take(COLUMNS);
    let lines: String = unusual.map(|t| format!("<li>{}</li>", trait_html(t, model))).collect();
    let _ = writeln!(html, "<ul>{lines}</ul></li>");
    html
}

/// Returns the spread of all rows around their mean, in the coordinates of the fit.
fn whole_spread(model: &Model) -> Option<f64> {
    model.profile.as_ref().map(|profile| model.spread(&profile.deviation))
}

/// Adds the table, with columns as rows; with many clusters, clusters are the rows.
fn profiles(page: &mut Page, clusters: &[Cluster], model: &Model) {
    let centres = match &model.shape {
        Shape::Centres { centres, .. } | Shape::Mixture { means: centres, .. } => centres,
        Shape::Components { .. } => return,
    };
    let told = model.profile.is_some();
    let aspects = if told {
        telling_aspects(clusters, MOST_COLUMNS)
    } else {
        Aspect::all(&model.recipe).into_iter().take(MOST_COLUMNS).collect()
    };
    let mut table = vec![vec![Cell::Head("column".into(), String::new())]];
    if told {
        let of_all =
            |text: &str| Cell::Head(format!("all rows<small>{text}</small>"), String::new());
        table[0].extend([of_all("mean"), of_all("deviation")]);
    }
    table[0].extend(clusters.iter().map(|c| {
        let text = format!("{}{}<small>{:.1} %</small>", sign(c.label), c.label, 100.0 * c.share);
        Cell::Head(text, format!(" data-label=\"{}\"", c.label))
    }));
    for &aspect in &aspects {
        let mut row = vec![Cell::Head(name(&model.name_of(aspect)), String::new())];
        let of = |c: &Cluster| c.traits.iter().find(|t| t.aspect == aspect).copied();
        let traits: Vec<Option<Trait>> = clusters.iter().map(of).collect();
        if told {
            let overall = traits.iter().flatten().next().map(|t| t.overall);
            row.push(Cell::Plain(overall.map_or(String::new(), |x| model.text_of(aspect, x))));
            row.push(Cell::Plain(deviation(model, aspect)));
        }
        row.extend(clusters.iter().zip(&traits).map(|(c, t)| match t {
            Some(t) => {
                let [value, _] = beside(t, &model.recipe);
                Cell::Value(value, Some(t.deviations))
            }
            None => {
                let value = value_of(model, &centres[c.label], c.label, aspect);
                Cell::Value(value.map_or("-".into(), |x| model.text_of(aspect, x)), None)
            }
        }));
        table.push(row);
    }
    let across = clusters.len() > 15 && clusters.len() > aspects.len();
    if across {
        table = transposed(table);
    }
    page.push("<h3>Profiles</h3>\n");
    if told {
        page.push(&scale());
    }
    page.push(
        "<div class=\"tools\"><button type=\"button\" class=\"transpose\">Rows to columns</button>\
         <button type=\"button\" class=\"numbers\">Numbers or colours</button></div>\n",
    );
    page.push(&format!(
        "<div class=\"tall\" tabindex=\"0\" role=\"region\" aria-label=\"Profiles\"><table \
         class=\"heat sortable{}\">\n",
        if across { " across" } else { "" }
    ));
    for (i, row) in table.iter().enumerate() {
        let cells: String = row.iter().map(|cell| cell.html(i == 0)).collect();
        page.push(&match i {
            0 => format!("<thead><tr>{cells}</tr></thead><tbody>\n"),
            _ => format!("<tr>{cells}</tr>\n"),
        });
    }
    page.push("</tbody></table></div>\n");
    let all = if told {
        telling_aspects(clusters, usize::MAX).len()
    } else {
        Aspect::all(&model.recipe).len()
    };
    if aspects.len() < all {
        page.note(&format!(
            "The {} of {} columns and levels in which clusters differ most.",
            aspects.len(),
            thousands(all as u64)
        ));
    }
}

/// Returns the value of a cluster in an aspect, from the model alone.
fn value_of(model: &Model, centre: &[f64], label: usize, aspect: Aspect) -> Option<f64> {
    let levels = model.levels.get(label).map_or(&[][..], Vec::as_slice);
    Facts { numbers: centre, levels, missing: &[] }.value(aspect, &model.recipe)
}

/// Formats the standard deviation of a numeric column over all rows.
fn deviation(model: &Model, aspect: Aspect) -> String {
    match (aspect, &model.profile) {
        (Aspect::Number(j), Some(profile)) => {
            words::deviation(model.recipe.numbers[j].step, profile.deviation[j])
        }
        _ => String::new(),
    }
}

/// A cell of the table; heads are HTML with attributes.
#[derive(Clone)]
enum Cell {
    Head(String, String),
    Plain(String),
    Value(String, Option<f64>),
}

impl Cell {
    fn html(&self, top: bool) -> String {
        match self {
            Cell::Head(html, attributes) => {
                let scope = if top { "col" } else { "row" };
                format!("<th scope={scope}{attributes}>{html}</th>")
            }
            Cell::Plain(text) | Cell::Value(text, None) => format!("<td>{text}</td>"),
            Cell::Value(text, Some(z)) => match heat(*z) {
                0 => format!("<td data-z={z:.2}>{text}</td>"),
                n if n < 0 => format!("<td class=n{} data-z={z:.2}>{text}</td>", -n),
                n => format!("<td class=p{n} data-z={z:.2}>{text}</td>"),
            },
        }
    }
}

fn transposed(table: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    let columns = table.first().map_or(0, Vec::len);
    (0..columns).map(|i| table.iter().map(|row| row[i].clone()).collect()).collect()
}

/// Returns the strength of a colour, from −6 to 6.
fn heat(deviations: f64) -> i32 {
    (6.0 * deviations / STRONGEST).round().clamp(-6.0, 6.0) as i32
}

/// Returns the legend of the colours.
fn scale() -> String {
    let colours: String = (-6..=6)
        .map(|n: i32| match n {
            0 => "<i></i>".to_string(),
            n if n < 0 => format!("<i class=n{}></i>", -n),
            n => format!("<i class=p{n}></i>"),
        })
        .collect();
    format!(
        "<p class=\"scale\"><span>−{STRONGEST}</span>{colours}<span>+{STRONGEST} standard \
         deviations from the mean of all rows</span></p>\n"
    )
}
