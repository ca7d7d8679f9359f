//! Clusters compared with all rows: a heat map of columns and clusters, in standard deviations.

use super::chart::{LINE_HEIGHT, TEXT, width};
use super::map::class;
use super::palette::{ABOVE, BELOW, Colour, colour, tint};
use super::scene::{Anchor, Item, Point, Scene};
use super::sign::Sign;
use crate::markup::shorten;
use nysketch::Model;
use nysketch::clusters::{Aspect, Cluster};
use std::collections::BTreeMap;

/// Maximum number of columns in a picture; the ones that differ most between clusters are kept.
pub const MOST_COLUMNS: usize = 100;
/// Maximum number of clusters in a picture; the largest are kept.
const MOST_CLUSTERS: usize = 200;
/// Deviation from which a share distinguishes a cluster from all rows.
const TELLING: f64 = 0.1;
/// Deviation from which colours have full strength.
pub const STRONGEST: f64 = 3.0;
/// Maximum number of clusters side by side if there are few columns.
const ABREAST: usize = 16;
const FEW_COLUMNS: usize = 20;
const CELL: Point = (42.0, 19.0);

/// Returns the aspects in which clusters differ most from all rows, at most `most`, in table order.
pub fn telling_aspects(clusters: &[Cluster], most: usize) -> Vec<Aspect> {
    let mut largest: BTreeMap<Aspect, f64> = BTreeMap::new();
    for t in clusters.iter().flat_map(|c| &c.traits) {
        let known = largest.entry(t.aspect).or_default();
        *known = known.max(t.deviations.abs());
    }
    // Shares that are the same in all clusters carry no information, and there may be many.
    largest.retain(|aspect, far| match aspect {
        Aspect::Number(_) | Aspect::Cycle(..) => true,
        Aspect::Level(..) | Aspect::Missing(_) => *far >= TELLING,
    });
    let mut order: Vec<(Aspect, f64)> = largest.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    order.truncate(most);
    order.sort_by_key(|(aspect, _)| *aspect);
    order.into_iter().map(|(aspect, _)| aspect).collect()
}

/// Returns the colour of a deviation.
fn heat(deviations: f64) -> Colour {
    let strength = (deviations.abs() / STRONGEST).min(1.0);
    tint(if deviations < 0.0 { BELOW } else { ABOVE }, 0.8 * strength)
}

/// Draws the heat map of a model, or returns `None` if its sketch had no profile of all rows.
pub fn profiles(model: &Model) -> Option<Scene> {
    let mut clusters = model.clusters();
    clusters.sort_by(|a, b| b.share.total_cmp(&a.share));
    clusters.truncate(MOST_CLUSTERS);
    let columns = telling_aspects(&clusters, MOST_COLUMNS);
    if columns.is_empty() {
        return None;
    }
    let abreast = if columns.len() <= FEW_COLUMNS { ABREAST } else { clusters.len() };
    let mut bands: Vec<Scene> =
        clusters.chunks(abreast).map(|some| band(model, some, &columns)).collect();
    bands.push(scale(model, columns.len()));
    Some(Scene::stacked(bands))
}

/// Draws some clusters side by side, with columns as rows.
fn band(model: &Model, clusters: &[Cluster], columns: &[Aspect]) -> Scene {
    let name = |aspect: &Aspect| shorten(&model.name_of(*aspect), 32);
    let names: Vec<String> = columns.iter().map(name).collect();
    let left = 10.0 + names.iter().map(|n| width(n, TEXT)).fold(60.0, f64::max) + 8.0;
    let top = 10.0 + 3.0 * LINE_HEIGHT;
    let (across, down) = (clusters.len() as f64, columns.len() as f64);
    let about = format!("Profiles of {across} clusters in {down} columns");
    let mut scene = Scene::new(left + CELL.0 * across + 16.0, top + CELL.1 * down + 6.0, about);
    for (row, name) in names.iter().enumerate() {
        let at = (left - 8.0, top + CELL.1 * (row as f64 + 0.5));
        scene.push(Item::text(at, name.clone(), TEXT).anchor(Anchor::End));
    }
    for (i, cluster) in clusters.iter().enumerate() {
        let middle = left + CELL.0 * (i as f64 + 0.5);
        let mark = Item::mark((middle, 18.0), 6.0, Sign::of(cluster.label));
        scene.push(mark.fill(colour(cluster.label)).class(&class(cluster.label)));
        let text = |y: f64, text: String| Item::text((middle, y), text, TEXT - 1.5);
        scene.push(text(18.0 + LINE_HEIGHT, cluster.label.to_string()).anchor(Anchor::Middle));
        let share = format!("{:.1} %", 100.0 * cluster.share);
        scene.push(text(18.0 + 1.9 * LINE_HEIGHT, share).anchor(Anchor::Middle));
        for t in &cluster.traits {
            let Ok(row) = columns.binary_search(&t.aspect) else { continue };
            let corner = (left + CELL.0 * i as f64, top + CELL.1 * row as f64);
            let title = format!(
                "{}, cluster {}: {} (all rows {}, {} standard deviations)",
                shorten(&model.name_of(t.aspect), 80),
                cluster.label,
                model.text_of(t.aspect, t.value),
                model.text_of(t.aspect, t.overall),
                signed(t.deviations)
            );
            let end = (corner.0 + CELL.0 - 1.0, corner.1 + CELL.1 - 1.0);
            scene.push(Item::rectangle(corner, end).fill(heat(t.deviations)).title(title));
            let at = (corner.0 + 0.5 * CELL.0, corner.1 + 0.5 * CELL.1);
            let text = Item::text(at, signed(t.deviations), TEXT - 2.0);
            scene.push(text.anchor(Anchor::Middle));
        }
    }
    scene
}

/// Formats a deviation: "+2.1"; a value near zero has no sign.
pub fn signed(deviations: f64) -> String {
    match deviations.abs() {
        z if z < 0.05 => "0.0".into(),
        z if z < 99.95 => format!("{deviations:+.1}"),
        _ => format!("{deviations:+.0e}"),
    }
}

/// Draws the colour scale and states how many columns are shown.
fn scale(model: &Model, shown: usize) -> Scene {
    let mut scene = Scene::new(480.0, 3.0 * LINE_HEIGHT, "");
    let y = LINE_HEIGHT;
    for i in -6..=6 {
        let (x, deviations) = (10.0 + 14.0 * f64::from(i + 6), 0.5 * f64::from(i));
        scene.push(Item::rectangle((x, y - 7.0), (x + 13.0, y + 7.0)).fill(heat(deviations)));
    }
    let text = "−3 … +3 standard deviations from the mean of all rows";
    scene.push(Item::text((198.0, y), text, TEXT - 2.5));
    let all = telling_aspects(&model.clusters(), usize::MAX).len();
    if shown < all {
        let text = format!("The {shown} of {all} columns and levels in which clusters differ most");
        scene.push(Item::text((10.0, y + 1.2 * LINE_HEIGHT), text, TEXT - 1.0));
    }
    scene
}
