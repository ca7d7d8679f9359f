//! A pixel canvas. Shapes may cover part of a pixel, as in SVG, so edges are smooth. Lengths are
//! doubled for screens and prints with small pixels.

use super::glyphs;
use super::palette::Colour;
use super::scene::{Anchor, Item, LONGEST, Point, Scene, Shape};
use super::sign::Sign;
use super::svg::BASELINE;
use zeno::{Command, Join, Mask, PathBuilder, Scratch, Stroke, Style, Transform, Vector};

/// Pixels per unit of length.
const SCALE: f32 = 2.0;

/// A canvas, initially white.
pub struct Canvas {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
    /// Scratch memory that all shapes share.
    scratch: Scratch,
    mask: Vec<u8>,
}

impl Canvas {
    /// Draws a picture.
    pub fn of(scene: &Scene) -> Self {
        let pixels = |units: f64| units as usize * SCALE as usize;
        let mut canvas = Canvas {
            width: pixels(scene.width),
            height: pixels(scene.height),
            rgb: vec![255; 3 * pixels(scene.width) * pixels(scene.height)],
            scratch: Scratch::new(),
            mask: Vec::new(),
        };
        scene.items.iter().for_each(|item| canvas.draw(item));
        canvas
    }

    /// Returns width and height in pixels.
    pub fn pixels(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Returns red, green and blue of each pixel, row by row.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    fn draw(&mut self, item: &Item) {
        let (path, transform) = outline(&item.shape);
        let fill = |canvas: &mut Self| {
            if let Some(colour) = item.fill {
                canvas.shape(&path, zeno::Fill::NonZero, transform, colour, item.opacity);
            }
        };
        let stroke = |canvas: &mut Self| {
            let Some(colour) = item.stroke else { return };
            let mut stroke = Stroke::new(item.width as f32 * SCALE);
            let dashes = item.dash.map(|d| d.map(|length| length as f32 * SCALE));
            stroke.join(Join::Round).cap(zeno::Cap::Butt).scale(false);
            if let Some(dashes) = &dashes {
                stroke.dash(dashes, 0.0);
            }
            canvas.shape(&path, stroke, transform, colour, item.opacity);
        };
        // The outline of a text is behind it; the outline of a shape is in front of it.
        if matches!(item.shape, Shape::Text { .. }) {
            stroke(self);
            fill(self);
        } else {
            fill(self);
            stroke(self);
        }
    }

    /// Draws a path; `transform` maps it to pixels. A shape that is larger than the sheet is
    /// clipped to it before memory is allocated.
    fn shape<'a>(
        &mut self,
        path: &[Command],
        style: impl Into<Style<'a>>,
        transform: Transform,
        colour: Colour,
        opacity: f64,
    ) {
        let style = style.into();
        let bounds = self.scratch.bounds(path, style, Some(transform));
        let beyond = bounds.width() > self.width as f32 || bounds.height() > self.height as f32;
        let buffer = &mut self.mask;
        let mut mask = Mask::with_scratch(path, &mut self.scratch);
        mask.style(style).transform(Some(transform));
        if beyond {
            mask.size(self.width as u32, self.height as u32);
        }
        mask.inspect(|format, width, height| {
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
                blend(pixel, colour, opacity * f64::from(coverage) / 255.0);
            }
        }
    }
}

/// Returns the pixel at this offset from the first one of a shape, if it is on the sheet.
fn inside(first: i32, offset: usize, size: usize) -> Option<usize> {
    usize::try_from(i64::from(first) + offset as i64).ok().filter(|at| *at < size)
}

fn blend(pixel: &mut [u8], colour: Colour, share: f64) {
    for (old, new) in pixel.iter_mut().zip([colour.0, colour.1, colour.2]) {
        *old = (f64::from(*old) * (1.0 - share) + f64::from(new) * share).round() as u8;
    }
}

/// Returns a point with coordinates limited to twice the largest sheet.
fn vector((x, y): Point) -> Vector {
    let near = |x: f64| x.clamp(-2.0 * LONGEST, 2.0 * LONGEST) as f32;
    Vector::new(near(x), near(y))
}

/// Connects points with straight lines.
fn lines(points: &[Point]) -> Vec<Command> {
    let mut path = Vec::new();
    for (i, at) in points.iter().enumerate() {
        match i {
            0 => path.move_to(vector(*at)),
            _ => path.line_to(vector(*at)),
        };
    }
    path
}

/// Returns a shape as a path, and the transformation of the path to pixels.
fn outline(shape: &Shape) -> (Vec<Command>, Transform) {
    let doubled = Transform::scale(SCALE, SCALE);
    match shape {
        Shape::Line(points) => (lines(points), doubled),
        Shape::Area(points) => {
            let mut path = lines(points);
            path.close();
            (path, doubled)
        }
        Shape::Mark { at, radius, sign } => {
            let corner = |c: &Point| (at.0 + radius * c.0, at.1 + radius * c.1);
            let corners: Vec<Point> = sign.corners().iter().map(corner).collect();
            let mut path = lines(&corners);
            match sign {
                Sign::Disc => drop(path.add_circle(vector(*at), vector((*radius, 0.0)).x)),
                _ => drop(path.close()),
            }
            (path, doubled)
        }
        Shape::Text { at, text, size, anchor, upwards } => {
            let line = glyphs::line(text);
            let em = SCALE * *size as f32;
            let left = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -0.5 * line.width * em,
                Anchor::End => -line.width * em,
            };
            let down = BASELINE as f32 * em;
            let (along, across) = if *upwards { (0.0, -1.0) } else { (1.0, 0.0) };
            let place = vector(*at);
            let transform = Transform {
                xx: em * along,
                xy: em * across,
                yx: -em * across,
                yy: em * along,
                x: SCALE * place.x + left * along - down * across,
                y: SCALE * place.y + left * across + down * along,
            };
            (line.outlines, transform)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLACK: Colour = Colour(0, 0, 0);

    /// Returns the extent of the dark pixels: left, right, top, bottom.
    fn extent(item: Item, side: f64) -> [usize; 4] {
        let mut scene = Scene::new(side, side, "");
        scene.push(item);
        let canvas = Canvas::of(&scene);
        let (width, _) = canvas.pixels();
        let dark = canvas.rgb().chunks_exact(3).enumerate().filter(|(_, p)| p[0] < 200);
        dark.map(|(i, _)| (i % width, i / width)).fold(
            [usize::MAX, 0, usize::MAX, 0],
            |[left, right, top, bottom], (x, y)| {
                [left.min(x), right.max(x), top.min(y), bottom.max(y)]
            },
        )
    }

    /// Four capitals of 20 pixels an em are 60 wide (0.752 each) and 15 high (0.729); bearings are
    /// 0.098. Each anchor and each direction places them as SVG does, within a pixel.
    #[test]
    fn text_stands_where_it_does_in_svg() {
        let near = |item: Item, expected: [usize; 4]| {
            let got = extent(item.fill(BLACK), 100.0);
            let close = got.iter().zip(expected).all(|(g, e)| g.abs_diff(e) <= 1);
            assert!(close, "{got:?} is not near {expected:?}");
        };
        let text = || Item::text((50.0, 50.0), "HHHH", 10.0);
        // The baseline is 7 pixels below the given point.
        near(text(), [102, 157, 92, 106]);
        near(text().anchor(Anchor::End), [42, 97, 92, 106]);
        near(text().anchor(Anchor::Middle), [72, 127, 92, 106]);
        near(text().upwards(), [92, 106, 42, 97]);
    }

    #[test]
    fn shapes_may_leave_the_sheet() {
        let line = |far: f64| Item::line([(-far, 5.0), (far, 5.0)]).stroke(BLACK, 4.0);
        for far in [50.0, 1e9, 1e160] {
            assert_eq!(extent(line(far), 10.0), [0, 19, 6, 13], "{far}");
        }
        let disc = Item::mark((0.0, 0.0), 1e12, Sign::Disc).fill(BLACK);
        assert_eq!(extent(disc, 10.0), [0, 19, 0, 19]);
        let nowhere = Item::mark((f64::NAN, 0.0), 3.0, Sign::Up).fill(BLACK);
        assert_eq!(extent(nowhere, 10.0), [usize::MAX, 0, usize::MAX, 0]);
    }

    #[test]
    fn signs_have_their_size() {
        for sign in super::super::sign::SIGNS {
            let [left, right, top, bottom] =
                extent(Item::mark((10.0, 10.0), 4.0, sign).fill(BLACK), 20.0);
            for (side, expected) in [(left, 11), (right, 28), (top, 11), (bottom, 28)] {
                assert!(side.abs_diff(expected) <= 3, "{sign:?}: {side} is not near {expected}");
            }
        }
    }
}
