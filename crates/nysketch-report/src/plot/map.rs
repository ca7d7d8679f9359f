//! Rows, or cells of rows, in two axes, coloured by cluster.

use super::axis::{Axis, drawable, ends};
use super::chart::{Area, Chart, LINE_HEIGHT, TEXT};
use super::palette::{INK, PAPER, colour};
use super::scene::{Anchor, Item, Point, Scene};
use super::sign::Sign;
use crate::words::numbers::count;

/// A row, or a cell of rows.
pub struct Dot {
    /// Position in the plane.
    pub place: Point,
    /// Number of rows.
    pub rows: f64,
    /// Label of the cluster.
    pub cluster: usize,
    /// The tooltip, unless empty.
    pub title: String,
}

/// The contents of a map.
pub struct Map<'a> {
    /// Title of the picture.
    pub title: &'a str,
    /// Names of the axes.
    pub axes: [&'a str; 2],
    /// Meaning of a dot: "row", "cell".
    pub what: &'a str,
    /// The cells.
    pub dots: &'a [Dot],
    /// Centres of several models. A page shows one model at a time; a picture has one.
    pub centres: &'a [Vec<Point>],
    /// Index of the model that is shown.
    pub shown: usize,
}

/// Share of the rows at either end that the axes may leave out, so that a few distant rows do not
/// compress the rest.
const WITHIN: f64 = 0.005;
/// The axes show all rows if that takes at most this many times the range of most rows.
const ROOM: f64 = 2.0;

/// Draws the map.
pub fn map(map: &Map<'_>) -> Scene {
    let about = format!("{}: {}", map.title, count(map.dots.len() as u64, map.what));
    let mut scene = Scene::new(720.0, 560.0, about);
    let mut area = Area::of(&scene);
    if !map.title.is_empty() {
        let at = (0.5 * (area.left + area.right), area.top + 0.5 * TEXT);
        scene.push(Item::text(at, map.title, TEXT + 2.0).anchor(Anchor::Middle));
        area.top += LINE_HEIGHT;
    }
    let axis = |of: fn(Point) -> f64, name: &str| {
        let (low, high) = limits(map.dots.iter().map(|d| (of(d.place), d.rows)).collect());
        let axis = Axis::around([low, high], name);
        // An axis without a name has no meaning and therefore no marks.
        if name.is_empty() { axis.marks([]) } else { axis }
    };
    let (x, y) = (axis(|p| p.0, map.axes[0]), axis(|p| p.1, map.axes[1]));
    let inside = |dot: &Dot| {
        let ((px, py), within) = (dot.place, |a: &Axis, v: f64| (a.low..=a.high).contains(&v));
        within(&x, px) && within(&y, py)
    };
    let outside = outside_note(map, map.dots.iter().filter(|d| !inside(d)));
    if let Some(note) = &outside {
        scene.push(Item::text((area.left, area.bottom - 0.5 * TEXT), note.clone(), TEXT));
        area.bottom -= LINE_HEIGHT;
    }
    let mut order: Vec<usize> = (0..map.dots.len()).collect();
    order.sort_by(|a, b| map.dots[*b].rows.total_cmp(&map.dots[*a].rows));
    let (least, most) = ends(map.dots.iter().map(|d| d.rows)).unwrap_or((1.0, 1.0));
    let radius = |rows: f64| if least < most { 2.0 + 14.0 * (rows / most).sqrt() } else { 2.0 };
    let within: Vec<bool> = map.dots.iter().map(inside).collect();
    let chart = Chart::new(&mut scene, area, x, y);
    for i in order {
        let dot = &map.dots[i];
        let Some(place) = chart.at(dot.place.0, dot.place.1) else { continue };
        let c = colour(dot.cluster);
        let mark = Item::mark(place, radius(dot.rows), Sign::of(dot.cluster)).opacity(0.65);
        let mark = if within[i] {
            mark.fill(c).class("dot")
        } else {
            mark.stroke(c, 1.5).class("dot outside")
        };
        let mark = mark.class(&class(dot.cluster));
        scene.push(if dot.title.is_empty() {
            mark
        } else {
            mark.title(dot.title.clone()).data("dot", i)
        });
    }
    for (model, centres) in map.centres.iter().enumerate() {
        for (cluster, centre) in centres.iter().enumerate() {
            let Some(place) = chart.at(centre.0, centre.1) else { continue };
            let label = Item::text(place, cluster.to_string(), TEXT + 1.0).anchor(Anchor::Middle);
            let label = label.fill(INK).stroke(PAPER, 4.0).class("centre").data("model", model);
            scene.push(if model == map.shown { label } else { label.class("off") });
        }
    }
    scene
}

/// Returns the CSS class of a cluster's colour.
pub fn class(cluster: usize) -> String {
    format!("c{}", cluster % super::palette::CLUSTERS.len())
}

fn outside_note<'a>(map: &Map<'_>, outside: impl Iterator<Item = &'a Dot>) -> Option<String> {
    let (number, rows) = outside.fold((0, 0.0), |(n, rows), d| (n + 1, rows + d.rows));
    let all: f64 = map.dots.iter().map(|d| d.rows).sum();
    (number > 0).then(|| {
        let share = 100.0 * rows / all.max(f64::MIN_POSITIVE);
        let what = count(number, map.what);
        format!("{what} ({share:.2} % of the rows) beyond the axes: hollow, at the border")
    })
}

/// Returns the range of an axis: most rows, or all rows if they need little more space.
fn limits(mut values: Vec<(f64, f64)>) -> (f64, f64) {
    values.retain(|v| drawable(v.0));
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some((low, high)) = ends(values.iter().map(|v| v.0)) else { return (0.0, 1.0) };
    let total: f64 = values.iter().map(|v| v.1).sum();
    let quantile = |share: f64| {
        let mut below = 0.0;
        let reached = |v: &&(f64, f64)| {
            below += v.1;
            below >= share * total
        };
        values.iter().find(reached).map_or(high, |v| v.0)
    };
    let (from, to) = (quantile(WITHIN), quantile(1.0 - WITHIN));
    let room = to - from;
    // The rows of a cell extend beyond its mean, and a table with only two distinct values has no
    // middle.
    if !(room > 0.0) || high - low <= ROOM * room {
        return (low, high);
    }
    (low.max(from - 0.25 * room), high.min(to + 0.25 * room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_rows_do_not_squash_the_others() {
        let near: Vec<(f64, f64)> = (0..200).map(|i| (f64::from(i), 5.0)).collect();
        assert_eq!(limits(near.clone()), (0.0, 199.0));
        let (low, high) = limits([near, vec![(1e6, 1.0), (f64::NAN, 1.0), (1e200, 9.0)]].concat());
        assert!(low == 0.0 && (200.0..300.0).contains(&high), "{low} {high}");
        assert_eq!(limits(vec![(3.0, 1.0)]), (3.0, 3.0));
        assert_eq!(limits(vec![]), (0.0, 1.0));
    }
}
