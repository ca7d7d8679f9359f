//! Points with the levels of their categories, and where they are in a space of numbers alone.

use crate::points::Points;
use crate::recipe::Recipe;

/// Points in the coordinates of a frame, with their levels.
#[derive(Debug, Clone)]
pub struct Placed {
    pub points: Points,
    pub codes: Vec<u32>,
    /// With levels as coordinates, where there are categories.
    space: Option<Points>,
}

impl Placed {
    pub fn new(recipe: &Recipe, points: Points, codes: Vec<u32>) -> Self {
        let space = (!recipe.categories.is_empty()).then(|| {
            let space = recipe.in_space(points.dims(), points.data(), &codes);
            Points::new(recipe.space_dims(points.dims()), space)
        });
        Placed { points, codes, space }
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// The points as distances see them.
    pub fn space(&self) -> &Points {
        self.space.as_ref().unwrap_or(&self.points)
    }

    /// Some of the points, in this order.
    pub fn select(&self, indices: &[usize]) -> Placed {
        let categories = self.codes.len() / self.len().max(1);
        let codes = indices.iter().flat_map(|i| &self.codes[i * categories..(i + 1) * categories]);
        Placed {
            points: self.points.select(indices),
            codes: codes.copied().collect(),
            space: self.space.as_ref().map(|space| space.select(indices)),
        }
    }

    /// These points and then others.
    pub fn and(&self, other: &Placed) -> Placed {
        let both = |a: &Points, b: &Points| {
            Points::new(a.dims(), a.data().iter().chain(b.data()).copied().collect())
        };
        Placed {
            points: both(&self.points, &other.points),
            codes: self.codes.iter().chain(&other.codes).copied().collect(),
            space: self.space.as_ref().zip(other.space.as_ref()).map(|(a, b)| both(a, b)),
        }
    }
}
