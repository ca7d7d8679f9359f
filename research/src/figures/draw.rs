//! Draws the paper's figures with logarithmic axes, medians, and bands of one standard deviation.

use super::curves::{Chart, Curve, Point, Style};
use super::settings::Method;
use nysketch_report::plot::{
    Anchor, Area, Axis, CLUSTERS, Chart as Plot, Colour, INK, Item, LINE_HEIGHT, Scene, Sign, TEXT,
    legend,
};

/// At the column width of a paper, 85 mm, text is about 7 points high.
const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 300.0;
/// Smaller differences in nats are drawn at this value, because axes are logarithmic.
const LEAST_NATS: f64 = 1e-3;
/// Risks above this multiple of the largest median of the paper's methods are outside the picture.
const HEADROOM: f64 = 1.75;

pub fn draw(chart: &Chart) -> Scene {
    let signs: Vec<(Item, String)> = chart.curves.iter().map(sign).collect();
    // The height of the legend does not depend on its position.
    let everywhere = |height| Scene::new(WIDTH, height, chart.title.clone());
    let mut trial = everywhere(HEIGHT);
    let area = Area::of(&trial);
    let below = legend(&mut trial, area, &signs);
    let mut scene = everywhere(HEIGHT + below + 20.0);
    let mut area = Area::of(&scene);
    let at = (0.5 * WIDTH, area.top + 0.5 * TEXT);
    scene.push(Item::text(at, chart.title.clone(), TEXT + 1.0).anchor(Anchor::Middle));
    area.top += LINE_HEIGHT;
    legend(&mut scene, Area { top: HEIGHT + 10.0, ..area }, &signs);
    plot(chart, &mut scene, Area { bottom: HEIGHT, ..area });
    scene
}

fn colour(style: Style) -> Colour {
    match style {
        Style::Method(Method::Fourier) => CLUSTERS[5],
        Style::Method(Method::Uniform) => CLUSTERS[0],
        Style::Method(Method::Bless) => CLUSTERS[2],
        Style::Method(Method::Greedy) => CLUSTERS[1],
        Style::Method(Method::Kernel) => CLUSTERS[3],
        Style::Method(Method::Cells) => INK,
        Style::Method(Method::Landmarks) => CLUSTERS[4],
        Style::Method(Method::Subsample) => CLUSTERS[7],
        Style::Method(Method::One | Method::AllRows) => CLUSTERS[9],
        Style::Size(i) => [CLUSTERS[4], CLUSTERS[0], CLUSTERS[2], CLUSTERS[5]][i.min(3)],
    }
}

/// Applies the line style of a curve.
fn stroke(item: Item, style: Style) -> Item {
    let item = item.stroke(colour(style), 2.0);
    match dashes(style) {
        Some((stroke, gap)) => item.dash(stroke, gap),
        None => item,
    }
}

fn sign(curve: &Curve) -> (Item, String) {
    (stroke(Item::line([(-10.0, 0.0), (10.0, 0.0)]), curve.style), curve.name.clone())
}

/// Returns lengths of dashes and gaps: solid lines for the paper's methods, dashes for ours, dots
/// for baselines.
fn dashes(style: Style) -> Option<(f64, f64)> {
    match style {
        Style::Method(Method::Kernel | Method::Cells) => Some((9.0, 5.0)),
        Style::Method(Method::Landmarks | Method::Subsample | Method::One) => Some((2.0, 5.0)),
        _ => None,
    }
}

fn is_guide(style: Style) -> bool {
    dashes(style).is_some()
}

/// Returns the lowest and highest y of the picture.
fn y_range(chart: &Chart) -> (f64, f64) {
    if chart.agreement {
        return (0.0, 1.0);
    }
    let medians = |guides: bool| {
        let curves = chart.curves.iter().filter(move |c| guides || !is_guide(c.style));
        curves.flat_map(|c| c.points.iter().map(|p| p.median)).filter(|m| m.is_finite())
    };
    let floor = if chart.nats { LEAST_NATS } else { 0.97 };
    let high = medians(false).fold(floor, f64::max) * HEADROOM;
    let low = medians(true).fold(f64::INFINITY, f64::min).min(high / 2.0);
    let room = if chart.nats { 1.5 } else { 1.03 };
    ((low / room).max(floor), high.max(2.0 * floor))
}

fn plot(chart: &Chart, scene: &mut Scene, area: Area) {
    let xs = || {
        let of_curves = chart.curves.iter().filter(|c| !c.flat);
        of_curves.flat_map(|c| c.points.iter().map(|p| p.x)).filter(|x| *x > 0.0)
    };
    let (left, right) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    if !(left < right) {
        return;
    }
    let (x, y) = ((left / 1.12, right * 1.12), y_range(chart));
    let y_axis = if chart.agreement {
        Axis::linear(y.0, y.1, chart.y_name)
    } else {
        Axis::logarithmic(y.0, y.1, chart.y_name)
    };
    let plot = Plot::new(scene, area, Axis::logarithmic(x.0, x.1, &chart.x_name), y_axis);
    for (at, style) in &chart.marks {
        let line = [y.0, y.1].into_iter().filter_map(|y| plot.at(*at, y));
        scene.push(Item::line(line).stroke(colour(*style), 1.0).dash(4.0, 4.0));
    }
    for curve in chart.curves.iter().filter(|c| !c.flat && !is_guide(c.style)) {
        let up = curve.points.iter().map(|p| (p.x, p.median + p.deviation));
        let down = curve.points.iter().rev().map(|p| (p.x, p.median - p.deviation));
        let band = up.chain(down).filter_map(|(x, y)| plot.at(x, y));
        scene.push(Item::area(band).fill(colour(curve.style)).opacity(0.13));
    }
    for curve in &chart.curves {
        for line in inside(curve, x, y) {
            let line = line.into_iter().filter_map(|(x, y)| plot.at(x, y));
            scene.push(stroke(Item::line(line), curve.style));
        }
        let shown = |p: &&Point| !curve.flat && p.median <= y.1;
        for place in curve.points.iter().filter(shown).filter_map(|p| plot.at(p.x, p.median)) {
            scene.push(Item::mark(place, 2.5, Sign::Disc).fill(colour(curve.style)));
        }
    }
}

/// Returns the pieces of a curve below the upper edge of the picture. Values below the lower edge
/// are drawn at it.
fn inside(curve: &Curve, x: (f64, f64), y: (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let points: Vec<(f64, f64)> = match (curve.flat, curve.points.first()) {
        (true, Some(p)) => vec![(x.0, p.median), (x.1, p.median)],
        _ => curve.points.iter().map(|p| (p.x, p.median)).collect(),
    };
    let pieces = points.split(|p| !(p.1 <= y.1)).filter(|piece| piece.len() > 1);
    pieces.map(|piece| piece.iter().map(|p| (p.0, p.1.max(y.0))).collect()).collect()
}
