//! Pictures as SVG and PNG: curves over k, maps of clusters, their profiles, drift over sketches.

mod axis;
mod canvas;
mod chart;
mod curve;
mod days;
mod drift;
mod glyphs;
mod kind;
mod map;
mod palette;
mod png;
mod profiles;
mod scene;
mod sign;
mod svg;

pub use axis::Axis;
pub use chart::{Area, Chart, LINE_HEIGHT, TEXT, legend};
pub use curve::{Curve, curve};
pub use days::{DayPoint, DaysChart, days};
pub use drift::{DriftChart, DriftPoint, drift};
pub use kind::path;
pub use map::{Dot, Map, class, map};
pub use palette::{CLUSTERS, Colour, INK};
pub use profiles::{STRONGEST, profiles, signed, telling_aspects};
pub use scene::{Anchor, Item, Scene};
pub use sign::{SIGNS, Sign};
pub use svg::element;

use crate::Usage;
use anyhow::{Context, Result};
use kind::{KINDS, Kind};
use std::path::Path;

/// Writes a picture as SVG or PNG, depending on the extension of the file. The file is written
/// completely or not at all.
pub fn write(path: &Path, scene: &Scene) -> Result<()> {
    match Kind::of(path) {
        Some(Kind::Svg) => write_bytes(path, svg::file(scene).as_bytes()),
        Some(Kind::Png) => write_bytes(path, &png(scene)?),
        None => Err(Usage(format!("cannot draw to {}: {KINDS}", path.display())).into()),
    }
}

/// Renders a picture as PNG, two pixels per unit, in an embedded font: it looks the same on every
/// machine.
fn png(scene: &Scene) -> Result<Vec<u8>> {
    let canvas = canvas::Canvas::of(scene);
    let (width, height) = canvas.pixels();
    Ok(png::encode(width, height, canvas.rgb())?)
}

/// Writes a whole file, or leaves what is there.
fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    nysketch::file::write(path, |out| out.write_all(bytes))
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use scene::Shape;

    /// Checks that every text is completely on the sheet and every shape has finite coordinates.
    fn check(scene: &Scene) {
        let slack = 0.5;
        for item in &scene.items {
            let Shape::Text { at, text, size, anchor, upwards } = &item.shape else { continue };
            let width = chart::width(text, *size);
            let before = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5 * width,
                Anchor::End => width,
            };
            let (start, end) = match upwards {
                true => (scene.height - at.1 - before, scene.height),
                false => (at.0 - before, scene.width),
            };
            assert!(start >= -slack && start + width <= end + slack, "'{text}' is clipped");
            let across = if *upwards { (at.0, scene.width) } else { (at.1, scene.height) };
            assert!(across.0 >= 0.3 * size && across.0 <= across.1 - 0.3 * size, "'{text}'");
        }
        let svg = svg::file(scene);
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
        assert!(svg.chars().all(|c| c == '\n' || !c.is_control()));
    }

    fn curve_of(values: &[f64], first: usize, marked: usize) -> Scene {
        let points: Vec<(usize, f64)> =
            values.iter().enumerate().map(|(i, v)| (first + i, *v)).collect();
        let marked = Some((first + marked % values.len().max(1), "suggested"));
        curve(&Curve { points: &points, marked, names: ["k", "risk"] })
    }

    fn map_of(values: &[f64]) -> Scene {
        let dot = |(i, pair): (usize, &[f64])| Dot {
            place: (pair[0], pair[1]),
            rows: i as f64,
            cluster: 7 * i,
            title: String::new(),
        };
        let dots: Vec<Dot> = values.chunks_exact(2).enumerate().map(dot).collect();
        let centres = [values.chunks_exact(2).take(3).map(|p| (p[0], p[1])).collect()];
        let names = ["first", ""];
        map(&Map {
            title: "a map",
            axes: names,
            what: "row",
            dots: &dots,
            centres: &centres,
            shown: 0,
        })
    }

    fn drift_of(values: &[f64], name: &str) -> Scene {
        let point = |(i, v): (usize, &f64)| DriftPoint {
            name: format!("{name}{i}"),
            mmd: Some(*v),
            noise: Some(0.5 * v),
            p_value: Some(1.0 / (1.0 + i as f64)),
            drift: i % 2 == 1,
            title: String::new(),
        };
        let points: Vec<DriftPoint> = values.iter().enumerate().map(point).collect();
        drift(&DriftChart { points: &points, baseline: "base", level: 0.05 }).unwrap()
    }

    #[test]
    fn no_text_is_clipped() {
        for n in [1, 2, 7, 40, 200] {
            let values: Vec<f64> = (0..n).map(|i| 1e5 / f64::from(i + 1)).collect();
            for (first, marked) in [(1, 0), (2, n as usize - 1), (990, 0)] {
                check(&curve_of(&values, first, marked));
            }
            check(&map_of(&values));
            check(&drift_of(&values, "day-"));
            check(&drift_of(&values, "a name that is longer than others "));
        }
    }

    #[test]
    fn every_day_of_a_year_has_its_name() {
        let scene = drift_of(&[1.0; 366], "2024-");
        let texts = scene.items.iter().filter_map(|i| match &i.shape {
            Shape::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let texts: std::collections::HashSet<&str> = texts.collect();
        assert!((0..366).all(|i| texts.contains(format!("2024-{i}").as_str())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// All values can be drawn, including infinite, missing, huge and tiny ones.
        #[test]
        fn anything_can_be_drawn(values in proptest::collection::vec(any::<f64>(), 1..12)) {
            let scenes = [curve_of(&values, 2, 1), map_of(&values), drift_of(&values, "d")];
            for scene in scenes {
                check(&scene);
                assert!(png(&scene).unwrap().starts_with(b"\x89PNG"));
            }
        }
    }
}
