//! Pictures, as SVG and PNG: a curve over k, clusters in the first two principal axes, drift over sketches.

mod canvas;
mod glyphs;
mod kind;
mod picture;
mod png;

use anyhow::Result;
pub use kind::path;
pub use picture::{Area, Picture, failed, write};
use plotters::prelude::*;

/// Colours that stay apart on screen and in print (Okabe and Ito), then darker ones.
pub const COLOURS: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(240, 228, 66),
    RGBColor(90, 90, 90),
    RGBColor(120, 60, 150),
    RGBColor(140, 90, 40),
];

/// The colour of a cluster.
pub fn colour(cluster: usize) -> RGBColor {
    COLOURS[cluster % COLOURS.len()]
}

/// Lowest and highest value with some room; never empty.
fn range(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let room = 0.05 * (high - low).max(1e-9 * high.abs()).max(1e-12);
    low - room..high + room
}

/// Risk over k, with the suggested k marked.
pub fn curve<'a>(points: &'a [(usize, f64)], suggested: usize, risk_name: &'a str) -> Picture<'a> {
    Picture::new((640, 420), move |root| {
        let ks = points.iter().map(|p| p.0 as f64);
        let mut chart = ChartBuilder::on(root)
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(72)
            .build_cartesian_2d(range(ks), range(points.iter().map(|p| p.1)))
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("k")
            .y_desc(risk_name)
            .x_label_formatter(&|k| {
                if k.fract() == 0.0 { format!("{k:.0}") } else { String::new() }
            })
            .label_style(("sans-serif", 14))
            .draw()
            .map_err(failed)?;
        let line = points.iter().map(|p| (p.0 as f64, p.1));
        chart
            .draw_series(LineSeries::new(line.clone(), COLOURS[0].stroke_width(2)))
            .map_err(failed)?;
        chart.draw_series(line.map(|p| Circle::new(p, 3, COLOURS[0].filled()))).map_err(failed)?;
        let marked = points.iter().filter(|p| p.0 == suggested).map(|p| (p.0 as f64, p.1));
        chart
            .draw_series(marked.map(|p| {
                EmptyElement::at(p)
                    + Circle::new((0, 0), 8, COLOURS[5].stroke_width(2))
                    + Text::new(
                        format!("suggested: k = {suggested}"),
                        (12, -18),
                        ("sans-serif", 15).into_font(),
                    )
            }))
            .map_err(failed)?;
        Ok(())
    })
}

/// A row, or a cell whose size tells how many.
pub struct Dot {
    pub x: f64,
    pub y: f64,
    pub cluster: usize,
    /// Radius in pixels.
    pub size: f64,
}

/// Points coloured by cluster, and centres, in two dimensions.
pub fn clusters<'a>(
    title: &'a str,
    axes: [&'a str; 2],
    points: &'a [Dot],
    centres: &'a [(f64, f64)],
) -> Picture<'a> {
    Picture::new((720, 560), move |root| {
        let mut chart = ChartBuilder::on(root)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(52)
            .build_cartesian_2d(
                range(points.iter().map(|p| p.x).chain(centres.iter().map(|c| c.0))),
                range(points.iter().map(|p| p.y).chain(centres.iter().map(|c| c.1))),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc(axes[0])
            .y_desc(axes[1])
            .label_style(("sans-serif", 13))
            .draw()
            .map_err(failed)?;
        let dot = |p: &Dot| Circle::new((p.x, p.y), p.size, colour(p.cluster).mix(0.5).filled());
        chart.draw_series(points.iter().map(dot)).map_err(failed)?;
        chart
            .draw_series(centres.iter().map(|c| Cross::new(*c, 7, BLACK.stroke_width(3))))
            .map_err(failed)?;
        Ok(())
    })
}

/// The name below a place on an axis of whole numbers: so many names at most, so that they stay apart, and
/// so many characters of each.
fn name_at(names: &[&str], x: f64, most: usize, characters: usize) -> String {
    let every = names.len().div_ceil(most);
    match (x.fract() == 0.0, names.get(x as usize)) {
        (true, Some(name)) if (x as usize).is_multiple_of(every) => {
            name.chars().take(characters).collect()
        }
        _ => String::new(),
    }
}

/// One sketch in a picture of drift.
pub struct DriftPoint {
    pub name: String,
    pub mmd: f64,
    pub noise: f64,
    pub drift: bool,
}

/// Discrepancies in order, the noise to expect below them, those called drift marked.
pub fn drift<'a>(points: &'a [DriftPoint], baseline: &'a str) -> Picture<'a> {
    Picture::new((760, 430), move |root| {
        let (chart, below) = root.split_vertically(396);
        drift_chart(points, baseline, &chart)?;
        drift_legend(&below)
    })
}

fn drift_chart(points: &[DriftPoint], baseline: &str, area: &Area<'_>) -> Result<()> {
    let top = points.iter().flat_map(|p| [p.mmd, p.noise]).fold(0.0, f64::max).max(1e-9);
    let (left, right) = (-0.5, points.len() as f64 - 0.5);
    let mut chart = ChartBuilder::on(area)
        .caption(format!("distance from {baseline}"), ("sans-serif", 17))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(left..right, 0.0..1.08 * top)
        .map_err(failed)?;
    let names: Vec<&str> = points.iter().map(|p| p.name.as_str()).collect();
    let name = |x: &f64| name_at(&names, *x, 12, 14);
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .y_desc("MMD, middle bandwidth")
        .x_labels(points.len().min(60))
        .x_label_formatter(&name)
        .label_style(("sans-serif", 13))
        .draw()
        .map_err(failed)?;
    let at = |value: fn(&DriftPoint) -> f64| {
        points.iter().enumerate().map(move |(i, p)| (i as f64, value(p)))
    };
    let edge = |x: f64, p: Option<&DriftPoint>| (x, p.map_or(0.0, |p| p.noise));
    let noise = [(left, 0.0), edge(left, points.first())]
        .into_iter()
        .chain(at(|p| p.noise))
        .chain([edge(right, points.last()), (right, 0.0)]);
    let noise = Polygon::new(noise.collect::<Vec<_>>(), BLACK.mix(0.08).filled());
    chart.draw_series([noise]).map_err(failed)?;
    chart
        .draw_series(LineSeries::new(at(|p| p.mmd), COLOURS[0].stroke_width(2)))
        .map_err(failed)?;
    chart
        .draw_series(at(|p| p.mmd).map(|p| Circle::new(p, 3, COLOURS[0].filled())))
        .map_err(failed)?;
    let marked = points.iter().enumerate().filter(|(_, p)| p.drift);
    chart
        .draw_series(
            marked.map(|(i, p)| Circle::new((i as f64, p.mmd), 7, COLOURS[5].stroke_width(2))),
        )
        .map_err(failed)?;
    Ok(())
}

/// What the signs mean, side by side.
fn drift_legend(area: &Area<'_>) -> Result<()> {
    let y = 12;
    let text = |x, word: &'static str| {
        area.draw(&Text::new(word, (x, y - 4), ("sans-serif", 13).into_font())).map_err(failed)
    };
    let noise = Rectangle::new([(90, y - 5), (106, y + 5)], BLACK.mix(0.15).filled());
    area.draw(&noise).map_err(failed)?;
    text(114, "noise")?;
    let line = PathElement::new([(190, y), (206, y)], COLOURS[0].stroke_width(2));
    area.draw(&line).map_err(failed)?;
    text(214, "MMD")?;
    area.draw(&Circle::new((298, y), 6, COLOURS[5].stroke_width(2))).map_err(failed)?;
    text(312, "drift")
}

/// Centres across columns, in standard deviations from the mean, one line a cluster as wide as its share.
pub fn parallel<'a>(columns: &'a [String], lines: &'a [(f64, Vec<f64>)]) -> Picture<'a> {
    let width = (90 * columns.len() as u32 + 120).clamp(480, 1400);
    Picture::new((width, 420), move |root| {
        let values = lines.iter().flat_map(|l| l.1.iter().copied());
        let mut chart = ChartBuilder::on(root)
            .margin(12)
            .x_label_area_size(56)
            .y_label_area_size(56)
            .build_cartesian_2d(-0.3..columns.len() as f64 - 0.7, range(values))
            .map_err(failed)?;
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let name = |x: &f64| name_at(&names, *x, 16, 12);
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .y_desc("standard deviations from the mean")
            .x_labels(columns.len().min(60))
            .x_label_formatter(&name)
            .label_style(("sans-serif", 13))
            .draw()
            .map_err(failed)?;
        for (i, (share, line)) in lines.iter().enumerate() {
            let points = line.iter().enumerate().map(|(k, y)| (k as f64, *y));
            let stroke = 1.0 + (8.0 * share).round();
            chart
                .draw_series(LineSeries::new(points.clone(), colour(i).stroke_width(stroke as u32)))
                .map_err(failed)?;
            chart
                .draw_series(points.map(|p| Circle::new(p, 3, colour(i).filled())))
                .map_err(failed)?;
        }
        Ok(())
    })
}
