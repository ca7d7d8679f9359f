//! Unit spheres: if rows contain vectors of length one, the centres of their clusters have length
//! one too.
//!
//! With `‖x‖ = ‖c‖ = 1`, the cost of a centre is `Σ w ‖x − c‖² = 2 Σ w − 2 ⟨c, Σ w x⟩`, so the best
//! centre is the mean divided by its length (spherical k-means). In the coordinates `y = (x − o)/s`
//! of a plan, the vectors lie on a sphere around `−o/s` of radius `1/s`, and the best centre is the
//! radial projection of the mean onto it. This requires one scale for all columns of the vector. If
//! their scales differ, there is no sphere and centres are means.

use crate::plan::frame::Frame;
use std::ops::Range;

/// A mean closer to the middle of its sphere than this share of the radius has no direction.
const NO_DIRECTION: f64 = 1e-12;

/// The spheres of a plan's vectors.
#[derive(Debug, Clone, Default)]
pub struct Spheres(Vec<Sphere>);

#[derive(Debug, Clone)]
struct Sphere {
    columns: Range<usize>,
    middle: Vec<f64>,
    radius: f64,
}

impl Sphere {
    /// The sphere of a vector; `None` if its columns have different scales.
    fn of(columns: &Range<usize>, frame: &Frame) -> Option<Self> {
        let scale = frame.scale[columns.start];
        if frame.scale[columns.clone()].iter().any(|s| *s != scale) {
            return None;
        }
        let middle = frame.centre[columns.clone()].iter().map(|c| -c / scale).collect();
        Some(Sphere { columns: columns.clone(), middle, radius: 1.0 / scale })
    }
}

impl Spheres {
    /// The spheres of vectors of length one, in the coordinates of a frame.
    pub fn of(vectors: &[Range<usize>], frame: &Frame) -> Self {
        Spheres(vectors.iter().filter_map(|columns| Sphere::of(columns, frame)).collect())
    }

    /// Projects a point onto the spheres. If it has no direction, every point of its sphere is
    /// equally good, and it moves to its position in `before`.
    pub fn project(&self, place: &mut [f64], before: &[f64]) {
        for Sphere { columns, middle, radius } in &self.0 {
            let part = &mut place[columns.clone()];
            let squares = part.iter().zip(middle).map(|(y, o)| (y - o) * (y - o));
            let length = squares.sum::<f64>().sqrt();
            if !(length > NO_DIRECTION * radius) {
                part.copy_from_slice(&before[columns.clone()]);
                continue;
            }
            let stretch = radius / length;
            part.iter_mut().zip(middle).for_each(|(y, o)| *y = o + stretch * (*y - o));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(centre: Vec<f64>, scale: Vec<f64>) -> Frame {
        let (low, high) = (vec![-1.0; 3], vec![1.0; 3]);
        let columns: Vec<String> = (0..3).map(|j| format!("c{j}")).collect();
        Frame::new(&columns, centre, scale, &low, &high).unwrap()
    }

    /// Projected vectors have length one in the table's units, for any frame, and keep their
    /// direction.
    #[test]
    fn places_get_length_one() {
        let frame = frame(vec![5.0, 0.25, -0.5], vec![3.0, 2.0, 2.0]);
        let spheres = Spheres::of(std::slice::from_ref(&(1..3)), &frame);
        let mut place = frame.coordinates(&[7.0, 0.3, 0.4]);
        spheres.project(&mut place, &[0.0; 3]);
        let row = frame.widen_coordinates(&place);
        for (found, expected) in row.iter().zip([7.0, 0.6, 0.8]) {
            assert!((found - expected).abs() < 1e-14, "{row:?}");
        }
        let before = frame.coordinates(&[7.0, 0.0, 1.0]);
        let mut nowhere = frame.coordinates(&[6.0, 0.0, 0.0]);
        spheres.project(&mut nowhere, &before);
        assert_eq!(frame.widen_coordinates(&nowhere), [6.0, 0.0, 1.0]);
    }

    #[test]
    fn columns_scaled_apart_have_no_sphere() {
        let frame = frame(vec![0.0; 3], vec![1.0, 1.0, 2.0]);
        let mut place = vec![9.0; 3];
        Spheres::of(std::slice::from_ref(&(0..3)), &frame).project(&mut place, &[0.0; 3]);
        assert_eq!(place, [9.0; 3]);
    }
}
