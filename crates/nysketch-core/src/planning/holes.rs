//! Imputation of missing values in rows of the sample, so that these rows can be landmarks. Values
//! are taken from similar rows.

use crate::recipe::Category;

/// Largest number of donor rows.
const DONORS: usize = 1000;

/// Rows of the sample whose values fill the missing values of others.
pub struct Donors<'a> {
    dims: usize,
    categories: &'a [Category],
    /// Coordinates, with NaN for missing values, and levels.
    rows: Vec<f32>,
    codes: Vec<u32>,
}

impl<'a> Donors<'a> {
    /// Selects donors at regular intervals from the rows.
    pub fn new(dims: usize, rows: &[f32], codes: &[u32], categories: &'a [Category]) -> Self {
        let step = (rows.len() / dims).div_ceil(DONORS).max(1);
        let rows = rows.chunks_exact(dims).step_by(step).flatten().copied().collect();
        let c = categories.len();
        let codes = match c {
            0 => Vec::new(),
            c => codes.chunks_exact(c).step_by(step).flatten().copied().collect(),
        };
        Donors { dims, categories, rows, codes }
    }

    /// Fills the missing values of a row. Each value comes from the nearest donor that has it, by
    /// the mean squared difference over the values present in both rows. If no donor has the value,
    /// it becomes zero, the centre of the column.
    pub fn fill(&self, row: &mut [f32], codes: &[u32]) {
        if row.iter().all(|x| !x.is_nan()) {
            return;
        }
        let c = self.categories.len();
        let mut nearest = vec![(f32::INFINITY, 0.0); self.dims];
        for (i, donor) in self.rows.chunks_exact(self.dims).enumerate() {
            let (mut sum, mut shared) = (0.0, 0.0);
            for (x, y) in row.iter().zip(donor).filter(|(x, y)| !x.is_nan() && !y.is_nan()) {
                sum += (x - y) * (x - y);
                shared += 1.0;
            }
            for (k, category) in self.categories.iter().enumerate() {
                let same = codes[k] == self.codes[i * c + k];
                sum += if same { 0.0 } else { category.weight as f32 };
                shared += 1.0;
            }
            let distance = if shared > 0.0 { sum / shared } else { f32::MAX };
            for (best, y) in nearest.iter_mut().zip(donor).filter(|(_, y)| !y.is_nan()) {
                if distance < best.0 {
                    *best = (distance, *y);
                }
            }
        }
        for (x, (_, value)) in row.iter_mut().zip(nearest).filter(|(x, _)| x.is_nan()) {
            *x = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_the_nearest_row_that_has_them() {
        let nan = f32::NAN;
        let rows = [0.0, 10.0, nan, 1.0, nan, 5.0, 2.0, 20.0, nan];
        let donors = Donors::new(3, &rows, &[], &[]);
        for (mut row, filled) in [
            ([1.9, nan, nan], [1.9, 20.0, 5.0]),
            ([0.1, nan, 7.0], [0.1, 10.0, 7.0]),
            ([nan, nan, nan], [0.0, 10.0, 5.0]),
        ] {
            donors.fill(&mut row, &[]);
            assert_eq!(row, filled);
        }
        let category = Category { name: "c".into(), levels: vec!["a".into()], weight: 9.0 };
        let categories = [category];
        let donors = Donors::new(1, &[4.0, 8.0], &[0, 1], &categories);
        let mut row = [nan];
        donors.fill(&mut row, &[1]);
        assert_eq!(row, [8.0]);
    }
}
