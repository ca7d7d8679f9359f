//! Points with the levels of their categories, and their embedding in a purely numeric space.

use super::holes::Donors;
use crate::numeric::points::Points;
use crate::recipe::Recipe;

/// Points in the coordinates of a frame, with their levels.
#[derive(Debug, Clone)]
pub struct Placed {
    pub points: Points,
    pub codes: Vec<u32>,
    /// The points with levels as coordinates, if there are categories.
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

    /// Points whose missing values are filled from similar donors. `donors` is given if values are
    /// missing; `levels` are the levels of the donors.
    pub fn filled(
        recipe: &Recipe,
        mut points: Points,
        codes: Vec<u32>,
        (donors, levels): (Option<&Points>, &[u32]),
    ) -> Self {
        let (d, c) = (points.dims(), recipe.categories.len());
        if let Some(donors) = donors.filter(|_| points.data().iter().any(|x| x.is_nan())) {
            let donors = Donors::new(d, donors.data(), levels, &recipe.categories);
            let mut data = points.into_data();
            for (i, row) in data.chunks_exact_mut(d).enumerate() {
                donors.fill(row, &codes[i * c..(i + 1) * c]);
            }
            points = Points::new(d, data);
        }
        Placed::new(recipe, points, codes)
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// The points in the space of distances.
    pub fn space(&self) -> &Points {
        self.space.as_ref().unwrap_or(&self.points)
    }

    /// The points with these indices, in this order.
    pub fn select(&self, indices: &[usize]) -> Placed {
        let categories = self.codes.len() / self.len().max(1);
        let codes = indices.iter().flat_map(|i| &self.codes[i * categories..(i + 1) * categories]);
        Placed {
            points: self.points.select(indices),
            codes: codes.copied().collect(),
            space: self.space.as_ref().map(|space| space.select(indices)),
        }
    }

    /// Concatenates these points and others.
    pub fn and(&self, other: &Placed) -> Placed {
        let spaces = self.space.as_ref().zip(other.space.as_ref());
        Placed {
            points: concatenated(&self.points, &other.points),
            codes: self.codes.iter().chain(&other.codes).copied().collect(),
            space: spaces.map(|(a, b)| concatenated(a, b)),
        }
    }
}

/// The points of `a`, followed by those of `b`.
fn concatenated(a: &Points, b: &Points) -> Points {
    Points::new(a.dims(), a.data().iter().chain(b.data()).copied().collect())
}
