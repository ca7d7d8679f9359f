//! A curve over k: risks of models, or shares of variance.

use super::axis::{Axis, drawable};
use super::chart::{Area, Chart, LINE_HEIGHT, TEXT, legend, width};
use super::palette::{DATA, STANDS_OUT};
use super::scene::{Item, Scene};
use super::sign::Sign;
use crate::words::numbers::short;

/// The contents of a curve.
pub struct Curve<'a> {
    /// k and its value, by increasing k.
    pub points: &'a [(usize, f64)],
    /// The k to mark, and the label of the mark.
    pub marked: Option<(usize, &'a str)>,
    /// Names of the quantities on the axes.
    pub names: [&'a str; 2],
}

/// Draws a curve. Values that cannot be drawn are counted below it.
pub fn curve(curve: &Curve<'_>) -> Scene {
    let Curve { points, marked, names } = curve;
    let mut scene = Scene::new(640.0, 400.0, format!("{} over {}", names[1], names[0]));
    let mut area = Area::of(&scene);
    if let Some((k, word)) = marked {
        let ring = Item::mark((0.0, 0.0), 6.0, Sign::Disc).stroke(STANDS_OUT, 2.0).class("ring");
        area.top += legend(&mut scene, area, &[(ring, format!("{word}: k = {k}"))]);
    }
    let missing = points.iter().filter(|p| !drawable(p.1)).count();
    if missing > 0 {
        let text = format!("{missing} of {} values are too large to draw", points.len());
        scene.push(Item::text((area.left, area.bottom - 0.5 * TEXT), text, TEXT));
        area.bottom -= LINE_HEIGHT;
    }
    let x = Axis::around(points.iter().map(|p| p.0 as f64), names[0]);
    let x = x.marks(marks(points, area.right - area.left - 80.0));
    let y = Axis::around(points.iter().map(|p| p.1), names[1]);
    let chart = Chart::new(&mut scene, area, x, y);
    let at = |(k, value): &(usize, f64)| chart.at(*k as f64, *value);
    let line = Item::line(points.iter().filter_map(at)).stroke(DATA, 2.0);
    scene.push(line.class("data"));
    for point in points.iter().filter(|p| marked.is_some_and(|m| m.0 == p.0)) {
        let Some(place) = at(point) else { continue };
        scene.push(Item::mark(place, 8.0, Sign::Disc).stroke(STANDS_OUT, 2.0).class("ring"));
    }
    for point in *points {
        let Some(place) = at(point) else { continue };
        let title = format!("k = {}: {}", point.0, short(point.1));
        let mark = Item::mark(place, 4.0, Sign::Disc).fill(DATA).title(title);
        scene.push(mark.class("data k").data("k", point.0));
    }
    scene
}

/// Returns marks at every k, or at every second, fifth, tenth, …, so that they do not touch.
fn marks(points: &[(usize, f64)], length: f64) -> Vec<(f64, String)> {
    let text = points.last().map_or(0.0, |p| width(&p.0.to_string(), TEXT)) + 10.0;
    let (first, last) = (points.first().map_or(0, |p| p.0), points.last().map_or(0, |p| p.0));
    let steps = (0..6).flat_map(|i| [1, 2, 5].map(|f| f * 10usize.pow(i)));
    let fits = |step: &usize| (last - first) as f64 / *step as f64 * text <= length;
    let step = steps.into_iter().find(fits).unwrap_or(1_000_000);
    (first..=last).filter(|k| k.is_multiple_of(step)).map(|k| (k as f64, k.to_string())).collect()
}
