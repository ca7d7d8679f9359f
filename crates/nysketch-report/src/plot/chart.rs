//! A chart: a box with axes, whose margins fit their texts.

use super::axis::Axis;
use super::glyphs;
use super::palette::{INK, LINE};
use super::scene::{Anchor, Item, Point, Scene};

/// Font size of texts.
pub const TEXT: f64 = 12.0;
/// Height of a line of text.
pub const LINE_HEIGHT: f64 = 1.5 * TEXT;
/// Space between a text and its neighbours.
const GAP: f64 = 6.0;

/// Returns the width of a text.
pub fn width(text: &str, size: f64) -> f64 {
    f64::from(glyphs::line(text).width) * size
}

/// A part of the picture.
#[derive(Debug, Clone, Copy)]
pub struct Area {
    /// Left edge.
    pub left: f64,
    /// Top edge.
    pub top: f64,
    /// Right edge.
    pub right: f64,
    /// Bottom edge.
    pub bottom: f64,
}

impl Area {
    /// Returns the whole picture except a margin.
    pub fn of(scene: &Scene) -> Self {
        let edge = 10.0;
        Area { left: edge, top: edge, right: scene.width - edge, bottom: scene.height - edge }
    }
}

/// The box in which values are drawn.
pub struct Chart {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Area between the axes.
    pub inner: Area,
}

/// Returns the width of the widest mark.
fn widest(axis: &Axis) -> f64 {
    axis.marks.iter().map(|m| width(&m.1, TEXT)).fold(0.0, f64::max)
}

fn named(axis: &Axis) -> f64 {
    if axis.name.is_empty() { 0.0 } else { LINE_HEIGHT }
}

/// Returns the width that the texts at the left of a chart need.
pub fn margin(y: &Axis) -> f64 {
    widest(y) + GAP + named(y)
}

impl Chart {
    /// Draws axes into a part of the picture. Their texts stay inside it, whatever their length.
    pub fn new(scene: &mut Scene, outer: Area, x: Axis, y: Axis) -> Self {
        let mut inner = Area {
            left: outer.left + margin(&y),
            top: outer.top + 0.5 * TEXT,
            right: outer.right - 0.5 * TEXT,
            bottom: outer.bottom - LINE_HEIGHT - named(&x),
        };
        let shares = x.marks.iter().filter_map(|m| Some((x.share(m.0)?, width(&m.1, TEXT))));
        let crowded = crowded(shares.clone().collect(), inner.right - inner.left);
        if crowded {
            inner.bottom -= widest(&x) - TEXT;
        } else {
            // A text below a mark at the end of the axis extends beyond it by half its width.
            for (share, width) in shares {
                let at = inner.left + share * (inner.right - inner.left);
                inner.left += (outer.left - (at - 0.5 * width)).max(0.0);
                inner.right -= (at + 0.5 * width - outer.right).max(0.0);
            }
        }
        let chart = Chart { x, y, inner };
        chart.draw_axes(scene, outer, crowded);
        chart
    }

    /// Returns the position of a pair of values. Values beyond an axis are at its end.
    pub fn at(&self, x: f64, y: f64) -> Option<Point> {
        let Area { left, top, right, bottom } = self.inner;
        let (x, y) = (self.x.share(x)?, self.y.share(y)?);
        Some((left + x * (right - left), bottom - y * (bottom - top)))
    }

    fn draw_axes(&self, scene: &mut Scene, outer: Area, upwards: bool) {
        let Area { left, top, right, bottom } = self.inner;
        let middle = (0.5 * (left + right), 0.5 * (top + bottom));
        let grid = |line: [Point; 2]| Item::line(line).stroke(LINE, 1.0).class("grid").opacity(0.6);
        for (value, text) in &self.y.marks {
            let Some((_, y)) = self.at(self.x.low, *value) else { continue };
            scene.push(grid([(left, y), (right, y)]));
            scene.push(Item::text((left - GAP, y), text.clone(), TEXT).anchor(Anchor::End));
        }
        let apart = if upwards { 1.05 * TEXT } else { 0.0 };
        let mut last = f64::NEG_INFINITY;
        for (value, text) in &self.x.marks {
            let Some((x, _)) = self.at(*value, self.y.low) else { continue };
            scene.push(grid([(x, top), (x, bottom)]));
            if x - last < apart {
                continue;
            }
            last = x;
            let label = |at| Item::text(at, text.clone(), TEXT);
            scene.push(if upwards {
                label((x, bottom + GAP)).anchor(Anchor::End).upwards()
            } else {
                label((x, bottom + 0.5 * LINE_HEIGHT + 1.0)).anchor(Anchor::Middle)
            });
        }
        for line in [[(left, top), (left, bottom)], [(left, bottom), (right, bottom)]] {
            scene.push(Item::line(line).stroke(INK, 1.0).class("axis"));
        }
        if !self.x.name.is_empty() {
            let at = (middle.0, outer.bottom - 0.5 * TEXT);
            scene.push(Item::text(at, self.x.name.clone(), TEXT).anchor(Anchor::Middle));
        }
        if !self.y.name.is_empty() {
            let at = (outer.left + 0.5 * TEXT, middle.1);
            let name = Item::text(at, self.y.name.clone(), TEXT);
            scene.push(name.anchor(Anchor::Middle).upwards());
        }
    }
}

/// Returns whether texts of these widths at these positions along an axis would touch.
fn crowded(mut texts: Vec<(f64, f64)>, length: f64) -> bool {
    texts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut end = f64::NEG_INFINITY;
    texts.into_iter().any(|(share, width)| {
        let start = share * length - 0.5 * width;
        let touches = start < end + GAP;
        end = start + width;
        touches
    })
}

/// Draws signs and their meanings side by side, above or below a chart. Returns the height of the
/// legend.
pub fn legend(scene: &mut Scene, area: Area, entries: &[(Item, String)]) -> f64 {
    let (mut x, mut y) = (area.left, area.top + 0.5 * LINE_HEIGHT);
    for (sign, text) in entries {
        let needed = 34.0 + width(text, TEXT);
        if x > area.left && x + needed > area.right {
            (x, y) = (area.left, y + LINE_HEIGHT);
        }
        scene.push(sign.clone().moved(x + 10.0, y));
        scene.push(Item::text((x + 24.0, y), text.clone(), TEXT));
        x += needed + 10.0;
    }
    y + 0.5 * LINE_HEIGHT - area.top
}
