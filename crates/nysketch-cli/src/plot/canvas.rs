//! Pixels to draw on. Shapes cover pixels in part, as in SVG, so edges are smooth; lengths are doubled, for
//! screens and papers with small pixels.

use super::glyphs;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle};
use plotters_backend::{DrawingBackend, DrawingErrorKind, FontTransform};
use zeno::{Command, Join, Mask, PathBuilder, Scratch, Stroke, Style, Transform, Vector};

/// Pixels for each unit of length.
const SCALE: f32 = 2.0;
/// Size of a font in plotters for each unit of its em; `plotters-svg` has the same.
const SIZE_TO_EM: f32 = 1.24;

/// A white sheet.
pub struct Canvas {
    size: (u32, u32),
    rgb: Vec<u8>,
    /// Memory for shapes, which are many.
    scratch: Scratch,
    mask: Vec<u8>,
}

impl Canvas {
    /// So many units wide and high.
    pub fn new(size: (u32, u32)) -> Self {
        let mut canvas =
            Canvas { size, rgb: Vec::new(), scratch: Scratch::new(), mask: Vec::new() };
        let (width, height) = canvas.pixels();
        canvas.rgb = vec![255; 3 * width * height];
        canvas
    }

    /// Pixels across and down.
    pub fn pixels(&self) -> (usize, usize) {
        let scaled = |n: u32| n as usize * SCALE as usize;
        (scaled(self.size.0), scaled(self.size.1))
    }

    /// Red, green and blue of each pixel, row by row.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Draws a shape; `transform` takes it to pixels.
    fn shape<'a>(
        &mut self,
        path: &[Command],
        style: impl Into<Style<'a>>,
        transform: Transform,
        color: BackendColor,
    ) {
        if color.alpha == 0.0 {
            return;
        }
        let buffer = &mut self.mask;
        let mut mask = Mask::with_scratch(path, &mut self.scratch);
        mask.style(style).transform(Some(transform)).inspect(|format, width, height| {
            buffer.clear();
            buffer.resize(format.buffer_size(width, height), 0);
        });
        let place = mask.render_into(buffer, None);
        let (width, height) = self.pixels();
        for (row, covered) in self.mask.chunks_exact(place.width.max(1) as usize).enumerate() {
            let Some(y) = inside(place.top, row, height) else { continue };
            for (column, &coverage) in covered.iter().enumerate().filter(|(_, c)| **c > 0) {
                let Some(x) = inside(place.left, column, width) else { continue };
                let pixel = &mut self.rgb[3 * (y * width + x)..][..3];
                blend(pixel, color, f64::from(coverage) / 255.0);
            }
        }
    }

    fn fill(&mut self, path: &[Command], color: BackendColor) {
        self.shape(path, zeno::Fill::NonZero, Transform::scale(SCALE, SCALE), color);
    }

    fn stroke<S: BackendStyle>(&mut self, path: &[Command], style: &S) {
        let mut stroke = Stroke::new(style.stroke_width() as f32);
        stroke.join(Join::Round).cap(zeno::Cap::Butt);
        self.shape(path, stroke, Transform::scale(SCALE, SCALE), style.color());
    }
}

/// The pixel so far from the first one of a shape, if it is on the sheet.
fn inside(first: i32, offset: usize, size: usize) -> Option<usize> {
    usize::try_from(i64::from(first) + offset as i64).ok().filter(|at| *at < size)
}

fn blend(pixel: &mut [u8], color: BackendColor, coverage: f64) {
    let share = color.alpha * coverage;
    let (red, green, blue) = color.rgb;
    for (old, new) in pixel.iter_mut().zip([red, green, blue]) {
        *old = (f64::from(*old) * (1.0 - share) + f64::from(new) * share).round() as u8;
    }
}

fn point((x, y): BackendCoord) -> Vector {
    Vector::new(x as f32, y as f32)
}

/// Straight lines from point to point.
fn lines(points: impl IntoIterator<Item = BackendCoord>) -> Vec<Command> {
    let mut path = Vec::new();
    for at in points {
        if path.is_empty() {
            path.move_to(point(at))
        } else {
            path.line_to(point(at))
        };
    }
    path
}

fn rectangle(from: BackendCoord, to: BackendCoord) -> Vec<Command> {
    let mut path = Vec::new();
    path.add_rect(point(from), (to.0 - from.0) as f32, (to.1 - from.1) as f32);
    path
}

type Drawn = Result<(), DrawingErrorKind<std::io::Error>>;

impl DrawingBackend for Canvas {
    type ErrorType = std::io::Error;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.fill(&rectangle((x, y), (x + 1, y + 1)), color);
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.stroke(&lines([from, to]), style);
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let path = rectangle(upper_left, bottom_right);
        if fill {
            self.fill(&path, style.color())
        } else {
            self.stroke(&path, style)
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.stroke(&lines(path), style);
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let mut path = Vec::new();
        path.add_circle(point(center), radius as f32);
        if fill {
            self.fill(&path, style.color())
        } else {
            self.stroke(&path, style)
        }
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        let mut path = lines(corners);
        path.close();
        self.fill(&path, style.color());
        Ok(())
    }

    /// Places text where `plotters-svg` does.
    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let em = style.size() as f32 / SIZE_TO_EM;
        let line = glyphs::line(text);
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -line.width / 2.0,
            HPos::Right => -line.width,
        };
        let baseline = match style.anchor().v_pos {
            VPos::Top => 0.76,
            VPos::Center => glyphs::X_HEIGHT / 2.0,
            VPos::Bottom => -glyphs::X_HEIGHT / 2.0,
        };
        let (cos, sin) = match style.transform() {
            FontTransform::Rotate90 => (0.0, 1.0),
            FontTransform::Rotate180 => (-1.0, 0.0),
            FontTransform::Rotate270 => (0.0, -1.0),
            _ => (1.0, 0.0),
        };
        // Text is moved to its anchor, scaled, turned clockwise and moved to its place.
        let (along, across) = (SCALE * em * cos, SCALE * em * sin);
        let transform = Transform {
            xx: along,
            xy: across,
            yx: -across,
            yy: along,
            x: SCALE * at.0 as f32 + left * along - baseline * across,
            y: SCALE * at.1 as f32 + left * across + baseline * along,
        };
        self.shape(&line.outlines, zeno::Fill::NonZero, transform, style.color());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::prelude::{BLACK, IntoFont, ShapeStyle, TextStyle};
    use plotters::style::text_anchor::Pos;

    /// Rows and columns of pixels that are not white: left, right, top, bottom.
    fn extent(canvas: &Canvas) -> [usize; 4] {
        let (width, _) = canvas.pixels();
        let dark = canvas.rgb().chunks_exact(3).enumerate().filter(|(_, p)| p[0] < 200);
        dark.map(|(i, _)| (i % width, i / width)).fold(
            [usize::MAX, 0, usize::MAX, 0],
            |[left, right, top, bottom], (x, y)| {
                [left.min(x), right.max(x), top.min(y), bottom.max(y)]
            },
        )
    }

    fn text(transform: FontTransform, anchor: Pos) -> [usize; 4] {
        let mut canvas = Canvas::new((100, 100));
        let font = ("sans-serif", 12.4).into_font().transform(transform);
        let style = TextStyle::from(font).pos(anchor);
        canvas.draw_text("HHHH", &style, (50, 50)).unwrap();
        extent(&canvas)
    }

    /// Four capitals of 20 pixels an em are 60 wide (0.752 each) and 15 high (0.729); bearings are 0.098.
    /// Each anchor and each turn puts them where SVG does, within a pixel.
    #[test]
    fn text_stands_where_it_does_in_svg() {
        let near = |got: [usize; 4], expected: [usize; 4]| {
            let close = got.iter().zip(expected).all(|(g, e)| g.abs_diff(e) <= 1);
            assert!(close, "{got:?} is not near {expected:?}");
        };
        let none = FontTransform::None;
        near(text(none.clone(), Pos::new(HPos::Left, VPos::Top)), [102, 157, 100, 115]);
        near(text(none.clone(), Pos::new(HPos::Right, VPos::Top)), [42, 97, 100, 115]);
        near(text(none, Pos::new(HPos::Center, VPos::Center)), [72, 127, 91, 105]);
        // Upwards, to the right of the place; downwards, to the left of it.
        let top = Pos::new(HPos::Left, VPos::Top);
        near(text(FontTransform::Rotate270, top), [100, 115, 42, 97]);
        near(text(FontTransform::Rotate90, top), [84, 99, 102, 157]);
    }

    #[test]
    fn shapes_may_leave_the_sheet() {
        let mut canvas = Canvas::new((10, 10));
        let style = ShapeStyle::from(BLACK).stroke_width(4);
        canvas.draw_circle((0, 0), 9, &style, false).unwrap();
        canvas.draw_line((-50, 5), (60, 5), &style).unwrap();
        assert_eq!(extent(&canvas), [0, 19, 0, 19]);
    }
}
