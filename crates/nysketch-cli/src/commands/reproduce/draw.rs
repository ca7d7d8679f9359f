//! Pictures of the paper's figures: logarithmic axes, medians, bands of one standard deviation.

use super::curves::{Chart, Curve, Point, Style};
use super::settings::Method;
use crate::plot::{Area, COLOURS, Picture, failed};
use anyhow::Result;
use plotters::coord::combinators::WithKeyPoints;
use plotters::prelude::*;

/// A column of a paper, 85 mm wide, makes 18 pixels of 600 about 7 points.
const WIDTH: u32 = 600;
const HEIGHT: u32 = 420;
const TEXT: u32 = 18;
/// Legend entries side by side, and the height of a line of them.
const ABREAST: usize = 3;
const LINE: u32 = 26;
/// Differences in nats below this are drawn at it: axes are logarithmic.
const LEAST_NATS: f64 = 1e-3;
/// Risks beyond this multiple of the largest median of the paper's methods leave the picture.
const HEADROOM: f64 = 1.75;

/// The picture of a chart.
pub fn draw(chart: &Chart) -> Picture<'_> {
    let lines = chart.curves.len().div_ceil(ABREAST) as u32;
    Picture::new((WIDTH, HEIGHT + LINE * lines + 10), |root| {
        let (top, bottom) = root.split_vertically(HEIGHT);
        plot(chart, &top)?;
        legend(&chart.curves, &bottom)
    })
}

fn colour(style: Style) -> RGBColor {
    match style {
        Style::Method(Method::Fourier) => COLOURS[5],
        Style::Method(Method::Uniform) => COLOURS[0],
        Style::Method(Method::Bless) => COLOURS[2],
        Style::Method(Method::Greedy) => COLOURS[1],
        Style::Method(Method::Kernel) => COLOURS[3],
        Style::Method(Method::Cells) => BLACK,
        Style::Method(Method::Landmarks) => COLOURS[4],
        Style::Method(Method::Subsample) => COLOURS[7],
        Style::Method(Method::One | Method::AllRows) => COLOURS[9],
        Style::Size(i) => [COLOURS[4], COLOURS[0], COLOURS[2], COLOURS[5]][i.min(3)],
    }
}

/// Lengths of strokes and gaps: whole lines are the paper's, dashes ours, dots honest baselines.
fn dashes(style: Style) -> Option<(u32, u32)> {
    match style {
        Style::Method(Method::Kernel | Method::Cells) => Some((9, 5)),
        Style::Method(Method::Landmarks | Method::Subsample | Method::One) => Some((2, 5)),
        _ => None,
    }
}

fn is_guide(style: Style) -> bool {
    dashes(style).is_some()
}

/// Lowest and highest y of the picture.
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

fn plot(chart: &Chart, area: &Area<'_>) -> Result<()> {
    let xs = || {
        let of_curves = chart.curves.iter().filter(|c| !c.flat);
        of_curves.flat_map(|c| c.points.iter().map(|p| p.x)).filter(|x| *x > 0.0)
    };
    let (left, right) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    if !(left < right) {
        return Ok(());
    }
    let x = (left / 1.12, right * 1.12);
    let y = y_range(chart);
    let mut builder = ChartBuilder::on(area);
    builder
        .caption(&chart.title, ("sans-serif", TEXT + 2))
        .margin(8)
        .margin_right(16)
        .x_label_area_size(52)
        .y_label_area_size(76);
    // The two kinds of y axis have different types.
    macro_rules! on {
        ($y:expr) => {{
            let mut context = builder.build_cartesian_2d(logarithmic(x), $y).map_err(failed)?;
            context
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(BLACK.mix(0.12))
                .x_desc(&chart.x_name)
                .y_desc(chart.y_name)
                .x_label_formatter(&|v| tick(*v))
                .y_label_formatter(&|v| tick(*v))
                .axis_desc_style(("sans-serif", TEXT))
                .label_style(("sans-serif", TEXT - 2))
                .draw()
                .map_err(failed)?;
            for (at, style) in &chart.marks {
                let ends = [(*at, y.0), (*at, y.1)];
                let line = DashedLineSeries::new(ends, 4, 4, colour(*style).stroke_width(1));
                context.draw_series(line).map_err(failed)?;
            }
            let clamp = |v: f64| v.clamp(y.0, y.1);
            for curve in &chart.curves {
                let c = colour(curve.style);
                if !curve.flat && !is_guide(curve.style) {
                    let up = curve.points.iter().map(|p| (p.x, clamp(p.median + p.deviation)));
                    let down =
                        curve.points.iter().rev().map(|p| (p.x, clamp(p.median - p.deviation)));
                    let band =
                        Polygon::new(up.chain(down).collect::<Vec<_>>(), c.mix(0.13).filled());
                    context.draw_series([band]).map_err(failed)?;
                }
            }
            for curve in &chart.curves {
                let c = colour(curve.style);
                for line in inside(curve, x, y) {
                    match dashes(curve.style) {
                        Some((stroke, gap)) => context
                            .draw_series(DashedLineSeries::new(
                                line,
                                stroke,
                                gap,
                                c.stroke_width(2),
                            ))
                            .map_err(failed)?,
                        None => context
                            .draw_series(LineSeries::new(line, c.stroke_width(2)))
                            .map_err(failed)?,
                    };
                }
                if !curve.flat {
                    let shown = |p: &&Point| p.median <= y.1;
                    let dots = curve.points.iter().filter(shown).map(|p| (p.x, clamp(p.median)));
                    context
                        .draw_series(dots.map(|p| Circle::new(p, 3, c.filled())))
                        .map_err(failed)?;
                }
            }
            Ok(())
        }};
    }
    match chart.agreement {
        true => on!(y.0..y.1),
        false => on!(logarithmic(y)),
    }
}

/// The pieces of a curve that do not leave the picture at the top; what is below it is drawn at the bottom.
fn inside(curve: &Curve, x: (f64, f64), y: (f64, f64)) -> Vec<Vec<(f64, f64)>> {
    let points: Vec<(f64, f64)> = match (curve.flat, curve.points.first()) {
        (true, Some(p)) => vec![(x.0, p.median), (x.1, p.median)],
        _ => curve.points.iter().map(|p| (p.x, p.median)).collect(),
    };
    let pieces = points.split(|p| !(p.1 <= y.1)).filter(|piece| piece.len() > 1);
    pieces.map(|piece| piece.iter().map(|p| (p.0, p.1.max(y.0))).collect()).collect()
}

/// A logarithmic axis with marks at 1, 2, 5, 10, … or, where it is long, at some powers of ten, or, where it is
/// short, at even steps.
fn logarithmic(range: (f64, f64)) -> WithKeyPoints<LogCoord<f64>> {
    let (low, high) = range;
    let decades = (high / low).log10();
    let power = |i: i32| 10f64.powi(i);
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let marks: Vec<f64> = if decades > 2.5 {
        (first..=last).step_by((decades / 6.0).ceil() as usize).map(power).collect()
    } else if decades > 0.5 {
        (first..=last).flat_map(|i| [1.0, 2.0, 5.0].map(|f| f * power(i))).collect()
    } else {
        let rough = (high - low) / 4.0;
        let unit = power(rough.log10().floor() as i32);
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * unit).find(|s| *s >= rough);
        let step = step.unwrap_or(unit);
        (0..=20).map(|i| ((low / step).floor() + f64::from(i)) * step).collect()
    };
    let inside = marks.into_iter().filter(|v| (low..=high).contains(v)).collect();
    (low..high).log_scale().with_key_points(inside)
}

/// A number at an axis.
fn tick(v: f64) -> String {
    match v {
        v if v >= 1e5 || (v > 0.0 && v < 1e-3) => format!("{v:.0e}"),
        v => {
            let text = format!("{v:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
    }
}

fn legend(curves: &[Curve], area: &Area<'_>) -> Result<()> {
    for (i, curve) in curves.iter().enumerate() {
        let x = 24 + (i % ABREAST) as i32 * ((WIDTH as i32 - 30) / ABREAST as i32);
        let y = 14 + (i / ABREAST) as i32 * LINE as i32;
        let c = colour(curve.style).stroke_width(3);
        let (stroke, gap) = dashes(curve.style).map_or((30, 0), |(s, g)| (s as i32, g as i32));
        let mut from = x;
        while from < x + 30 {
            let to = (from + stroke).min(x + 30);
            area.draw(&PathElement::new([(from, y), (to, y)], c)).map_err(failed)?;
            from = to + gap.max(1);
        }
        let text = ("sans-serif", TEXT - 2).into_font().color(&BLACK);
        area.draw(&Text::new(curve.name.clone(), (x + 38, y - 5), text)).map_err(failed)?;
    }
    Ok(())
}
