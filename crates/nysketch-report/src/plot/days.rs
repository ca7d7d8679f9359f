//! Days in order: one value per day, and the band that contains most days.

use super::axis::Axis;
use super::chart::{Area, Chart, LINE_HEIGHT, TEXT, legend, width};
use super::palette::{DATA, INK, STANDS_OUT, tint};
use super::scene::{Item, Scene};
use super::sign::Sign;
use crate::markup::shorten;

/// One day.
pub struct DayPoint {
    /// Name of the day.
    pub name: String,
    /// Score of the day.
    pub value: f64,
    /// Whether the day is unusual.
    pub stands_out: bool,
    /// The tooltip.
    pub title: String,
}

/// The contents of the chart.
pub struct DaysChart<'a> {
    /// The days, in order.
    pub points: &'a [DayPoint],
    /// Number of days, from the first, that define the band; 0 for no band.
    pub others: usize,
    /// Name of the value.
    pub axis: &'a str,
    /// Title of the picture.
    pub title: &'a str,
    /// A value above which days stand out, and its name. If it is given, there is no band.
    pub threshold: Option<(f64, String)>,
}

/// Width per name, and maximum width of the picture. With more days, some names are omitted.
const NAME: f64 = 15.0;
const WIDEST: f64 = 6000.0;
const PANEL: f64 = 320.0;
/// Share of the days below the band, and also above it.
const OUTSIDE: f64 = 0.05;

/// Draws the days.
pub fn days(chart: &DaysChart<'_>) -> Scene {
    let points = chart.points;
    let names: Vec<String> = points.iter().map(|p| shorten(&p.name, 24)).collect();
    let wide = (90.0 + NAME * points.len() as f64).clamp(760.0, WIDEST);
    let below = names.iter().map(|n| width(n, TEXT)).fold(0.0, f64::max);
    let height = 40.0 + PANEL + 2.0 * LINE_HEIGHT + below;
    let mut scene = Scene::new(wide, height, chart.title);
    let mut area = Area::of(&scene);
    scene.push(Item::text((area.left, area.top + 0.5 * TEXT), chart.title, TEXT + 2.0));
    area.top += LINE_HEIGHT;
    area.top += legend(&mut scene, area, &signs(chart));
    let end = points.len() as f64 - 0.5;
    let named = names.iter().enumerate().map(|(i, n)| (i as f64, n.clone()));
    let x = Axis::linear(-0.5, end, "").marks(named);
    let line = chart.threshold.as_ref().map(|t| t.0);
    let y = Axis::around(points.iter().map(|p| p.value).chain(line).chain([0.0]), chart.axis);
    let panel = Chart::new(&mut scene, area, x, y);
    if let Some((value, _)) = chart.threshold {
        let ends = [-0.5, end].map(|x| panel.at(x, value));
        let threshold = Item::line(ends.into_iter().flatten()).stroke(STANDS_OUT, 1.5);
        scene.push(threshold.dash(7.0, 4.0).class("threshold"));
    } else if let Some((low, high)) = band(&points[..chart.others]) {
        let corners = [(-0.5, low), (end, low), (end, high), (-0.5, high)];
        let corners = corners.into_iter().filter_map(|(x, y)| panel.at(x, y));
        scene.push(Item::area(corners).fill(tint(DATA, 0.15)).class("band"));
    }
    let at = |(i, p): (usize, &DayPoint)| panel.at(i as f64, p.value);
    let line = Item::line(points.iter().enumerate().filter_map(at));
    scene.push(line.stroke(DATA, 1.5).class("data"));
    for (i, p) in points.iter().enumerate() {
        let Some(place) = at((i, p)) else { continue };
        if p.stands_out {
            scene.push(Item::mark(place, 7.0, Sign::Disc).stroke(STANDS_OUT, 2.0).class("ring"));
        }
        let mark = Item::mark(place, 3.5, Sign::Disc).fill(DATA).class("data dot");
        scene.push(mark.data("dot", i).title(p.title.clone()));
    }
    scene
}

/// Returns the range that contains 90 % of the days.
fn band(points: &[DayPoint]) -> Option<(f64, f64)> {
    let mut values: Vec<f64> = points.iter().map(|p| p.value).collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| values[(share * last as f64).round() as usize];
    Some((at(OUTSIDE), at(1.0 - OUTSIDE)))
}

fn signs(chart: &DaysChart<'_>) -> Vec<(Item, String)> {
    let ring = Item::mark((0.0, 0.0), 6.0, Sign::Disc).stroke(STANDS_OUT, 2.0).class("ring");
    let first = match &chart.threshold {
        Some((_, name)) => {
            let line = Item::line([(-9.0, 0.0), (9.0, 0.0)]).stroke(STANDS_OUT, 1.5);
            (line.dash(7.0, 4.0).class("threshold"), name.clone())
        }
        None => {
            let band = Item::rectangle((-9.0, -5.0), (9.0, 5.0)).fill(tint(DATA, 0.15));
            (band.class("band").stroke(INK, 0.3), "where 90 % of the other days are".into())
        }
    };
    vec![first, (ring, "unusual".into())]
}
