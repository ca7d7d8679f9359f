//! A picture: its size and how it is drawn, as SVG or as PNG.

use super::canvas::Canvas;
use super::kind::{KINDS, Kind};
use super::png;
use crate::output::Usage;
use crate::writing::write_bytes;
use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::{DrawingArea, IntoDrawingArea, SVGBackend, WHITE};
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle};
use plotters_backend::{DrawingBackend, DrawingErrorKind};
use std::path::Path;

/// An error of drawing.
pub fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw: {error}")
}

/// Writes a picture, whole or not at all, as SVG or PNG by the extension of the file.
pub fn write(path: &Path, picture: &Picture<'_>) -> Result<()> {
    match Kind::of(path) {
        Some(Kind::Svg) => write_bytes(path, picture.svg()?.as_bytes()),
        Some(Kind::Png) => write_bytes(path, &picture.png()?),
        None => Err(Usage(format!("cannot draw to {}: {KINDS}", path.display())).into()),
    }
}

/// Where charts are drawn.
pub type Area<'a> = DrawingArea<Paper<'a>, Shift>;

type Draw<'a> = Box<dyn Fn(&Area<'_>) -> Result<()> + 'a>;

/// A picture that has not been drawn yet.
pub struct Picture<'a> {
    size: (u32, u32),
    draw: Draw<'a>,
}

impl<'a> Picture<'a> {
    /// A picture so many pixels wide and high.
    pub fn new(size: (u32, u32), draw: impl Fn(&Area<'_>) -> Result<()> + 'a) -> Self {
        Picture { size, draw: Box::new(draw) }
    }

    /// The picture as SVG, in the reader's own font.
    pub fn svg(&self) -> Result<String> {
        let mut text = String::new();
        self.on(Paper::Svg(SVGBackend::with_string(&mut text, self.size)))?;
        Ok(text)
    }

    /// The picture as PNG, two pixels for one, in a font of its own: it looks the same on every machine.
    pub fn png(&self) -> Result<Vec<u8>> {
        let mut canvas = Canvas::new(self.size);
        self.on(Paper::Pixels(&mut canvas))?;
        let (width, height) = canvas.pixels();
        png::encode(width, height, canvas.rgb()).map_err(failed)
    }

    fn on(&self, paper: Paper<'_>) -> Result<()> {
        let root = paper.into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        (self.draw)(&root)?;
        root.present().map_err(failed)
    }
}

/// Text or pixels. One type for both, so that charts are compiled once.
pub enum Paper<'a> {
    Svg(SVGBackend<'a>),
    Pixels(&'a mut Canvas),
}

type Drawn = Result<(), DrawingErrorKind<std::io::Error>>;

macro_rules! on {
    ($paper:expr, $backend:ident => $draw:expr) => {
        match $paper {
            Paper::Svg($backend) => $draw,
            Paper::Pixels($backend) => $draw,
        }
    };
}

/// Hands everything on. The size of text is estimated alike for both, so the layout is the same.
impl DrawingBackend for Paper<'_> {
    type ErrorType = std::io::Error;

    fn get_size(&self) -> (u32, u32) {
        on!(self, b => b.get_size())
    }

    fn ensure_prepared(&mut self) -> Drawn {
        on!(self, b => b.ensure_prepared())
    }

    fn present(&mut self) -> Drawn {
        on!(self, b => b.present())
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn {
        on!(self, b => b.draw_pixel(point, color))
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        on!(self, b => b.draw_line(from, to, style))
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        on!(self, b => b.draw_rect(upper_left, bottom_right, style, fill))
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        on!(self, b => b.draw_path(path, style))
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        on!(self, b => b.draw_circle(center, radius, style, fill))
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        on!(self, b => b.fill_polygon(corners, style))
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        on!(self, b => b.draw_text(text, style, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides() {
        assert_eq!(Kind::of(Path::new("a/b.SVG")), Some(Kind::Svg));
        assert_eq!(Kind::of(Path::new("x.y.png")), Some(Kind::Png));
        assert_eq!(Kind::of(Path::new("x.pdf")), None);
        assert_eq!(Kind::of(Path::new("png")), None);
        let empty = Picture::new((2, 2), |_| Ok(()));
        let error = write(Path::new("x.pdf"), &empty).unwrap_err();
        assert!(error.to_string().contains("x.pdf") && error.is::<Usage>());
    }

    /// What SVG says and what is drawn are the same shape: its middle is black, outside is white.
    #[test]
    fn both_kinds_show_the_same() {
        use plotters::prelude::{BLACK, Circle, Color};
        let picture = Picture::new((20, 10), |root| {
            root.draw(&Circle::new((14, 5), 3, BLACK.filled())).map_err(failed)
        });
        assert!(picture.svg().unwrap().contains("cx=\"14\" cy=\"5\" r=\"3\""));
        let mut canvas = Canvas::new((20, 10));
        picture.on(Paper::Pixels(&mut canvas)).unwrap();
        assert_eq!(canvas.pixels(), (40, 20));
        let grey = |x: usize, y: usize| canvas.rgb()[3 * (y * 40 + x)];
        assert_eq!((grey(28, 10), grey(28, 5), grey(23, 10)), (0, 0, 0));
        assert_eq!((grey(28, 3), grey(21, 10), grey(0, 0)), (255, 255, 255));
    }
}
