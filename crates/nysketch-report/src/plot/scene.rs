//! Pictures independent of the output format: shapes in drawing order, each with an optional
//! tooltip.

use super::palette::Colour;
use super::sign::Sign;

/// Horizontal and vertical position, in units of a pixel.
pub type Point = (f64, f64);

/// Horizontal alignment of a text with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// At the start of the text.
    Start,
    /// In the middle of the text.
    Middle,
    /// At the end of the text.
    End,
}

/// A shape.
#[derive(Debug, Clone)]
pub enum Shape {
    Line(Vec<Point>),
    Area(Vec<Point>),
    Mark {
        at: Point,
        radius: f64,
        sign: Sign,
    },
    /// A text whose middle line passes through the position, written upwards or in reading
    /// direction.
    Text {
        at: Point,
        text: String,
        size: f64,
        anchor: Anchor,
        upwards: bool,
    },
}

/// A shape and its style. A page uses `class` and `data` to style and find shapes.
#[derive(Debug, Clone)]
pub struct Item {
    /// What is drawn.
    pub shape: Shape,
    /// Colour of the inside.
    pub fill: Option<Colour>,
    /// Colour of the line.
    pub stroke: Option<Colour>,
    /// Width of the line.
    pub width: f64,
    /// Opacity, from 0 to 1.
    pub opacity: f64,
    /// Lengths of dashes and gaps.
    pub dash: Option<[f64; 2]>,
    /// Classes of the element in SVG.
    pub class: String,
    /// Data attributes of the element in SVG.
    pub data: Vec<(&'static str, String)>,
    /// Text that appears under the pointer.
    pub title: Option<String>,
}

impl Item {
    fn new(shape: Shape) -> Self {
        Item {
            shape,
            fill: None,
            stroke: None,
            width: 1.0,
            opacity: 1.0,
            dash: None,
            class: String::new(),
            data: Vec::new(),
            title: None,
        }
    }

    /// Makes a line through points.
    pub fn line(points: impl IntoIterator<Item = Point>) -> Self {
        Item::new(Shape::Line(points.into_iter().collect()))
    }

    /// Makes an area between points.
    pub fn area(points: impl IntoIterator<Item = Point>) -> Self {
        Item::new(Shape::Area(points.into_iter().collect()))
    }

    /// Makes a rectangle from two corners.
    pub fn rectangle((left, top): Point, (right, bottom): Point) -> Self {
        Item::area([(left, top), (right, top), (right, bottom), (left, bottom)])
    }

    /// Makes a mark of a cluster.
    pub fn mark(at: Point, radius: f64, sign: Sign) -> Self {
        Item::new(Shape::Mark { at, radius, sign })
    }

    /// Makes a text.
    pub fn text(at: Point, text: impl Into<String>, size: f64) -> Self {
        let text = text.into();
        let shape = Shape::Text { at, text, size, anchor: Anchor::Start, upwards: false };
        Item::new(shape).fill(super::palette::INK).class("ink")
    }

    /// Anchors a text.
    pub fn anchor(mut self, to: Anchor) -> Self {
        if let Shape::Text { anchor, .. } = &mut self.shape {
            *anchor = to;
        }
        self
    }

    /// Turns a text upwards.
    pub fn upwards(mut self) -> Self {
        if let Shape::Text { upwards, .. } = &mut self.shape {
            *upwards = true;
        }
        self
    }

    /// Fills the shape.
    pub fn fill(mut self, colour: Colour) -> Self {
        self.fill = Some(colour);
        self
    }

    /// Strokes the outline.
    pub fn stroke(mut self, colour: Colour, width: f64) -> Self {
        self.stroke = Some(colour);
        self.width = width;
        self
    }

    /// Sets the opacity.
    pub fn opacity(mut self, opacity: f64) -> Self {
        self.opacity = opacity;
        self
    }

    /// Dashes the line.
    pub fn dash(mut self, stroke: f64, gap: f64) -> Self {
        self.dash = Some([stroke, gap]);
        self
    }

    /// Adds a class.
    pub fn class(mut self, class: &str) -> Self {
        if !self.class.is_empty() {
            self.class.push(' ');
        }
        self.class.push_str(class);
        self
    }

    /// Adds a data attribute.
    pub fn data(mut self, name: &'static str, value: impl ToString) -> Self {
        self.data.push((name, value.to_string()));
        self
    }

    /// Adds a text that appears under the pointer.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Moves the shape to the right and down.
    pub fn moved(mut self, right: f64, down: f64) -> Self {
        let by = |p: &mut Point| *p = (p.0 + right, p.1 + down);
        match &mut self.shape {
            Shape::Line(points) | Shape::Area(points) => points.iter_mut().for_each(by),
            Shape::Mark { at, .. } | Shape::Text { at, .. } => by(at),
        }
        self
    }

    fn is_finite(&self) -> bool {
        let finite = |p: &Point| p.0.is_finite() && p.1.is_finite();
        match &self.shape {
            Shape::Line(points) | Shape::Area(points) => points.iter().all(finite),
            Shape::Mark { at, radius, .. } => finite(at) && radius.is_finite(),
            Shape::Text { at, size, .. } => finite(at) && size.is_finite(),
        }
    }
}

/// A picture.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// Description for readers who cannot see the picture.
    pub about: String,
    /// The items, from back to front.
    pub items: Vec<Item>,
}

/// Longest side of a picture: the pixels of larger pictures would take gigabytes.
pub const LONGEST: f64 = 10_000.0;

impl Scene {
    /// Makes an empty picture.
    pub fn new(width: f64, height: f64, about: impl Into<String>) -> Self {
        let side = |x: f64| if x.is_finite() { x.clamp(1.0, LONGEST).ceil() } else { 1.0 };
        Scene { width: side(width), height: side(height), about: about.into(), items: Vec::new() }
    }

    /// Stacks pictures from top to bottom.
    pub fn stacked(scenes: Vec<Scene>) -> Self {
        let width = scenes.iter().map(|s| s.width).fold(0.0, f64::max);
        let about = scenes.iter().map(|s| s.about.as_str()).filter(|about| !about.is_empty());
        let about = about.collect::<Vec<_>>().join("; ");
        let mut all = Scene::new(width, scenes.iter().map(|s| s.height).sum(), about);
        let mut top = 0.0;
        for scene in scenes {
            scene.items.into_iter().for_each(|item| all.push(item.moved(0.0, top)));
            top += scene.height;
        }
        all
    }

    /// Draws a shape over the others. A shape without finite coordinates is left out.
    pub fn push(&mut self, item: Item) {
        if item.is_finite() {
            self.items.push(item);
        }
    }
}
