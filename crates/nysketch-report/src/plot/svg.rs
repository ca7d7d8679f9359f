//! Pictures as SVG: a separate file, or part of a page, whose style may change colours by class.

use super::palette::PAPER;
use super::scene::{Anchor, Item, Scene, Shape};
use crate::markup::escape;
use std::fmt::Write;

/// Distance of the baseline below the middle line of lower-case letters, in ems.
pub const BASELINE: f64 = 0.35;

/// Returns the picture as a file, in a font with the widths that the layout assumes.
pub fn file(scene: &Scene) -> String {
    let mut svg = start(scene, " xmlns=\"http://www.w3.org/2000/svg\"");
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>");
    finish(svg, scene)
}

/// Returns the picture as part of a page.
pub fn element(scene: &Scene, class: &str) -> String {
    finish(start(scene, &format!(" class=\"{class}\"")), scene)
}

fn start(scene: &Scene, attributes: &str) -> String {
    format!(
        "<svg{attributes} width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"DejaVu Sans, Verdana, sans-serif\">\n",
        escape(&scene.about),
        w = scene.width,
        h = scene.height,
    )
}

fn finish(mut svg: String, scene: &Scene) -> String {
    for item in &scene.items {
        element_of(item, &mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Formats a length: a tenth of a pixel is precise enough.
fn number(x: f64) -> String {
    let text = format!("{x:.1}");
    text.strip_suffix(".0").map_or(text.clone(), String::from)
}

fn points(points: &[(f64, f64)]) -> String {
    let one = |(x, y): &(f64, f64)| format!("{},{}", number(*x), number(*y));
    points.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn element_of(item: &Item, svg: &mut String) {
    let (name, mut inner) = match &item.shape {
        Shape::Line(line) => {
            let _ = write!(svg, "<polyline points=\"{}\"", points(line));
            ("polyline", String::new())
        }
        Shape::Area(area) => {
            let _ = write!(svg, "<polygon points=\"{}\"", points(area));
            ("polygon", String::new())
        }
        Shape::Mark { at, radius, sign } => {
            let _ = write!(
                svg,
                "<path d=\"{}\" transform=\"translate({} {}) scale({})\" \
                 vector-effect=\"non-scaling-stroke\"",
                sign.path(),
                number(at.0),
                number(at.1),
                number(*radius)
            );
            ("path", String::new())
        }
        Shape::Text { at, text, size, anchor, upwards } => {
            let (x, y) = (number(at.0), number(at.1));
            let turn = match upwards {
                true => format!(" transform=\"rotate(-90 {x} {y})\""),
                false => String::new(),
            };
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let dy = number(BASELINE * size);
            let _ = write!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" dy=\"{dy}\" font-size=\"{size}\"{anchor}{turn}"
            );
            ("text", escape(text))
        }
    };
    if !item.class.is_empty() {
        let _ = write!(svg, " class=\"{}\"", item.class);
    }
    for (name, value) in &item.data {
        let _ = write!(svg, " data-{name}=\"{}\"", escape(value));
    }
    let text = matches!(item.shape, Shape::Text { .. });
    match item.fill {
        Some(colour) => drop(write!(svg, " fill=\"{colour}\"")),
        None => svg.push_str(" fill=\"none\""),
    }
    if let Some(colour) = item.stroke {
        let _ = write!(svg, " stroke=\"{colour}\" stroke-width=\"{}\"", number(item.width));
        if text {
            svg.push_str(" paint-order=\"stroke\" stroke-linejoin=\"round\"");
        }
    }
    if let Some([stroke, gap]) = item.dash {
        let _ = write!(svg, " stroke-dasharray=\"{stroke} {gap}\"");
    }
    if item.opacity < 1.0 {
        let _ = write!(svg, " opacity=\"{:.2}\"", item.opacity);
    }
    if let Some(title) = &item.title {
        let _ = write!(inner, "<title>{}</title>", escape(title));
    }
    let _ = if inner.is_empty() { writeln!(svg, "/>") } else { writeln!(svg, ">{inner}</{name}>") };
}
