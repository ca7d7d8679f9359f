//! The drift of sketches from a baseline, in order: discrepancies above, p-values below.

use super::axis::{Axis, drawable};
use super::chart::{Area, Chart, LINE_HEIGHT, TEXT, legend, margin};
use super::palette::{DATA, INK, STANDS_OUT};
use super::scene::{Item, Scene};
use super::sign::Sign;
use crate::markup::shorten;

/// One sketch.
pub struct DriftPoint {
    /// Name of the sketch.
    pub name: String,
    /// Discrepancy at the middle bandwidth, and its expected value from noise alone.
    pub mmd: Option<f64>,
    /// Expected difference by chance.
    pub noise: Option<f64>,
    /// P-value of the difference.
    pub p_value: Option<f64>,
    /// Whether the difference is drift.
    pub drift: bool,
    /// The tooltip.
    pub title: String,
}

/// The contents of the chart.
pub struct DriftChart<'a> {
    /// The sketches, in order.
    pub points: &'a [DriftPoint],
    /// Name of the baseline.
    pub baseline: &'a str,
    /// p-values up to this level count as drift.
    pub level: f64,
}

/// Width per name, and maximum width of the picture. With more sketches, some names are omitted.
const NAME: f64 = 15.0;
const WIDEST: f64 = 6000.0;
const PANEL: f64 = 250.0;

/// Draws the panels that have values, or returns `None` if the sketches have neither kernel sums
/// nor cells.
pub fn drift(chart: &DriftChart<'_>) -> Option<Scene> {
    let points = chart.points;
    let any = |of: fn(&DriftPoint) -> Option<f64>| points.iter().any(|p| of(p).is_some());
    let panels = [any(|p| p.mmd), any(|p| p.p_value)];
    let names: Vec<String> = points.iter().map(|p| shorten(&p.name, 24)).collect();
    let width = (90.0 + NAME * points.len() as f64).clamp(760.0, WIDEST);
    let below = names.iter().map(|n| super::chart::width(n, TEXT)).fold(0.0, f64::max);
    let number = panels.iter().filter(|p| **p).count();
    if number == 0 {
        return None;
    }
    let height = 40.0 + PANEL * number as f64 + 2.0 * LINE_HEIGHT + below;
    let about = format!("Distance from {}", chart.baseline);
    let mut scene = Scene::new(width, height, about.clone());
    let mut area = Area::of(&scene);
    scene.push(Item::text((area.left, area.top + 0.5 * TEXT), about, TEXT + 2.0));
    area.top += LINE_HEIGHT;
    area.top += legend(&mut scene, area, &signs(panels, chart.level));
    let x = |last: bool| {
        let end = points.len() as f64 - 0.5;
        let name =
            |(i, n): (usize, &String)| (i as f64, if last { n.clone() } else { String::new() });
        Axis::linear(-0.5, end, "").marks(names.iter().enumerate().map(name))
    };
    let values = points.iter().flat_map(|p| [p.mmd, p.noise]).flatten();
    let top = values.filter(|v| drawable(*v)).fold(1e-12, f64::max);
    let mmd = Axis::linear(0.0, 1.08 * top, "MMD, middle bandwidth");
    let least = points.iter().filter_map(|p| p.p_value).fold(chart.level, f64::min);
    let p_value = Axis::logarithmic(0.7 * least, 1.0, "p-value");
    // Both panels are aligned at the left.
    let left = margin(&mmd).max(margin(&p_value));
    let part = |area: Area, y: &Axis| Area { left: area.left + left - margin(y), ..area };
    if panels[0] {
        let last = !panels[1];
        let outer = if last { area } else { Area { bottom: area.top + PANEL, ..area } };
        let panel = Chart::new(&mut scene, part(outer, &mmd), x(last), mmd);
        line(&mut scene, &panel, points, |p| p.noise, false);
        line(&mut scene, &panel, points, |p| p.mmd, true);
        area.top = outer.bottom;
    }
    if panels[1] {
        let panel = Chart::new(&mut scene, part(area, &p_value), x(true), p_value);
        let ends = [-0.5, points.len() as f64 - 0.5].map(|x| panel.at(x, chart.level));
        let threshold = Item::line(ends.into_iter().flatten()).stroke(STANDS_OUT, 1.5);
        scene.push(threshold.dash(7.0, 4.0).class("threshold"));
        line(&mut scene, &panel, points, |p| p.p_value, true);
    }
    Some(scene)
}

/// Draws values in order, as a line with marks or as a dashed line.
fn line(
    scene: &mut Scene,
    chart: &Chart,
    points: &[DriftPoint],
    of: fn(&DriftPoint) -> Option<f64>,
    marks: bool,
) {
    let at = |(i, p): (usize, &DriftPoint)| chart.at(i as f64, of(p)?);
    let line = Item::line(points.iter().enumerate().filter_map(at));
    if !marks {
        scene.push(line.stroke(INK, 1.5).dash(3.0, 3.0).class("noise"));
        return;
    }
    scene.push(line.stroke(DATA, 2.0).class("data"));
    for (i, p) in points.iter().enumerate() {
        let Some(place) = at((i, p)) else { continue };
        if p.drift {
            let ring = Item::mark(place, 7.0, Sign::Disc).stroke(STANDS_OUT, 2.0);
            scene.push(ring.class("ring"));
        }
        let mark = Item::mark(place, 3.5, Sign::Disc).fill(DATA).class("data dot");
        scene.push(mark.data("dot", i).title(p.title.clone()));
    }
}

fn signs(panels: [bool; 2], level: f64) -> Vec<(Item, String)> {
    let stroke = || Item::line([(-9.0, 0.0), (9.0, 0.0)]);
    let ring = Item::mark((0.0, 0.0), 6.0, Sign::Disc).stroke(STANDS_OUT, 2.0).class("ring");
    let mut signs = Vec::new();
    if panels[0] {
        let noise = stroke().stroke(INK, 1.5).dash(3.0, 3.0).class("noise");
        signs.push((noise, "noise to expect without drift".into()));
    }
    if panels[1] {
        let threshold = stroke().stroke(STANDS_OUT, 1.5).dash(7.0, 4.0).class("threshold");
        signs.push((threshold, format!("p = {level}: drift is below")));
        signs.push((ring, "drift".into()));
    }
    signs
}
