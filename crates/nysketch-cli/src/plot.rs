//! Pictures, as SVG: a curve over k, clusters in the first two principal axes, drift over sketches.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// Colours that stay apart on screen and in print (Okabe and Ito), then darker ones.
const COLOURS: [RGBColor; 10] = [
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

fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

/// Draws with `draw` into a string and writes it whole.
fn write_svg(
    path: &Path,
    size: (u32, u32),
    draw: impl FnOnce(&DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Result<()>,
) -> Result<()> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        draw(&root)?;
        root.present().map_err(failed)?;
    }
    crate::output::write_bytes(path, text.as_bytes())
}

/// Lowest and highest value with some room; never empty.
fn range(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    let room = 0.05 * (high - low).max(1e-9 * high.abs()).max(1e-12);
    low - room..high + room
}

/// Risk over k, with the suggested k marked.
pub fn curve(
    path: &Path,
    points: &[(usize, f64)],
    suggested: usize,
    risk_name: &str,
) -> Result<()> {
    write_svg(path, (640, 420), |root| {
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

/// Points coloured by label, and centres, in two dimensions.
pub fn clusters(
    path: &Path,
    title: &str,
    points: &[(f64, f64, usize)],
    centres: &[(f64, f64)],
) -> Result<()> {
    write_svg(path, (720, 560), |root| {
        let mut chart = ChartBuilder::on(root)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(52)
            .build_cartesian_2d(
                range(points.iter().map(|p| p.0)),
                range(points.iter().map(|p| p.1)),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("first principal axis")
            .y_desc("second principal axis")
            .label_style(("sans-serif", 13))
            .draw()
            .map_err(failed)?;
        let dot = |p: &(f64, f64, usize)| {
            Circle::new((p.0, p.1), 2, COLOURS[p.2 % COLOURS.len()].mix(0.5).filled())
        };
        chart.draw_series(points.iter().map(dot)).map_err(failed)?;
        chart
            .draw_series(centres.iter().map(|c| Cross::new(*c, 7, BLACK.stroke_width(3))))
            .map_err(failed)?;
        Ok(())
    })
}

/// One sketch in a picture of drift.
pub struct DriftPoint {
    pub name: String,
    pub mmd: f64,
    pub noise: f64,
    pub drift: bool,
}

/// Discrepancies in order, the noise to expect below them, those called drift marked.
pub fn drift(path: &Path, points: &[DriftPoint], baseline: &str) -> Result<()> {
    write_svg(path, (760, 420), |root| {
        let top = points.iter().flat_map(|p| [p.mmd, p.noise]).fold(0.0, f64::max).max(1e-9);
        let mut chart = ChartBuilder::on(root)
            .caption(format!("distance from {baseline}"), ("sans-serif", 17))
            .margin(12)
            .x_label_area_size(64)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.5..points.len() as f64 - 0.5, 0.0..1.08 * top)
            .map_err(failed)?;
        // At most a dozen names, so that they stay apart.
        let every = points.len().div_ceil(12);
        let name = |x: &f64| match (x.fract() == 0.0, points.get(*x as usize)) {
            (true, Some(p)) if *x as usize % every == 0 => p.name.chars().take(14).collect(),
            _ => String::new(),
        };
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
        chart
            .draw_series(std::iter::once(Polygon::new(
                [(-0.5, 0.0)]
                    .into_iter()
                    .chain(at(|p| p.noise))
                    .chain([(points.len() as f64 - 0.5, 0.0)])
                    .collect::<Vec<_>>(),
                BLACK.mix(0.08).filled(),
            )))
            .map_err(failed)?
            .label("noise")
            .legend(|(x, y)| {
                Rectangle::new([(x, y - 5), (x + 16, y + 5)], BLACK.mix(0.15).filled())
            });
        chart
            .draw_series(LineSeries::new(at(|p| p.mmd), COLOURS[0].stroke_width(2)))
            .map_err(failed)?
            .label("MMD")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], COLOURS[0].stroke_width(2)));
        chart
            .draw_series(at(|p| p.mmd).map(|p| Circle::new(p, 3, COLOURS[0].filled())))
            .map_err(failed)?;
        let marked = points.iter().enumerate().filter(|(_, p)| p.drift);
        chart
            .draw_series(
                marked.map(|(i, p)| Circle::new((i as f64, p.mmd), 7, COLOURS[5].stroke_width(2))),
            )
            .map_err(failed)?
            .label("drift")
            .legend(|(x, y)| Circle::new((x + 8, y), 6, COLOURS[5].stroke_width(2)));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 13))
            .draw()
            .map_err(failed)
    })
}
