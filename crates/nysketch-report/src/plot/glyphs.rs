//! Outlines of text from the embedded font, a subset of DejaVu Sans (Latin, Greek, Cyrillic,
//! mathematics).

use std::sync::LazyLock;
use ttf_parser::{Face, OutlineBuilder};
use zeno::{Command, PathBuilder};

static FONT: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(include_bytes!("../../fonts/DejaVuSans-subset.ttf"), 0).ok());

/// A line of text in ems, with y downwards. It starts at the origin of the baseline.
#[derive(Default)]
pub struct Line {
    pub width: f32,
    pub outlines: Vec<Command>,
}

/// Sets text in one line. Characters that are not in the font appear as boxes.
pub fn line(text: &str) -> Line {
    let mut line = Line::default();
    let Some(font) = FONT.as_ref() else { return line };
    let unit = 1.0 / f32::from(font.units_per_em());
    for glyph in text.chars().map(|c| font.glyph_index(c).unwrap_or_default()) {
        let mut pen = Pen { unit, left: line.width, path: &mut line.outlines };
        font.outline_glyph(glyph, &mut pen);
        line.width += f32::from(font.glyph_hor_advance(glyph).unwrap_or_default()) * unit;
    }
    line
}

struct Pen<'a> {
    unit: f32,
    left: f32,
    path: &'a mut Vec<Command>,
}

impl Pen<'_> {
    fn at(&self, x: f32, y: f32) -> [f32; 2] {
        [self.left + x * self.unit, -y * self.unit]
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.path.move_to(self.at(x, y));
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.path.line_to(self.at(x, y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.path.quad_to(self.at(x1, y1), self.at(x, y));
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.path.curve_to(self.at(x1, y1), self.at(x2, y2), self.at(x, y));
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The advances of DejaVu Sans are 1401 for A and 1303 for a digit, of 2048.
    #[test]
    fn text_is_as_wide_as_its_glyphs() {
        assert!((line("A1").width - (1401.0 + 1303.0) / 2048.0).abs() < 1e-6);
        assert_eq!(line("").width, 0.0);
    }

    #[test]
    fn what_pictures_say_is_in_the_font() {
        let font = FONT.as_ref().unwrap();
        for c in "azAZ09 .,:;()[]{}+-=<>%&×·–…σ²³λ√≥≤→äéñøßж𝑘".chars() {
            assert_eq!(font.glyph_index(c).is_some(), c != '𝑘', "{c}");
        }
    }
}
