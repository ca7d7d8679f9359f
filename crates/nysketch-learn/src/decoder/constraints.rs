//! The hypothesis space of section 2: atoms at least `separation` (2ε in the paper) apart and
//! within `radius` of the origin of the plan's coordinates. For Gaussians of known variance both
//! are Mahalanobis distances.

use crate::atom::Atom;

/// Weight of the penalty, of the order of an objective near its minimum.
const PENALTY: f64 = 0.01;

/// Bounds on the positions of atoms; no bounds by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// Minimum distance between two atoms.
    pub separation: Option<f64>,
    /// Maximum distance from the origin.
    pub radius: Option<f64>,
    /// `1/γ` for Mahalanobis distances; empty for Euclidean distances.
    pub precision: Vec<f64>,
}

impl Constraints {
    fn squared(&self, x: &[f64], y: Option<&[f64]>) -> f64 {
        (0..x.len()).map(|k| self.weight(k) * (x[k] - y.map_or(0.0, |y| y[k])).powi(2)).sum()
    }

    fn weight(&self, k: usize) -> f64 {
        self.precision.get(k).copied().unwrap_or(1.0)
    }

    /// Returns a penalty that is zero if the constraints hold, and adds its gradient with respect
    /// to the means. The penalty is small compared with the objective, since atoms are projected
    /// after each refinement.
    pub(crate) fn penalty(&self, atoms: &[Atom], gradient: &mut [f64]) -> f64 {
        let mut value = 0.0;
        for i in 0..atoms.len() {
            let d = atoms[i].mean.len();
            if let Some(r) = self.radius {
                let over = self.squared(&atoms[i].mean, None) / (r * r) - 1.0;
                if over > 0.0 {
                    value += PENALTY * over * over;
                    for k in 0..d {
                        gradient[i * d + k] +=
                            4.0 * PENALTY * over * self.weight(k) * atoms[i].mean[k] / (r * r);
                    }
                }
            }
            let Some(e) = self.separation else { continue };
            for j in 0..i {
                let under = 1.0 - self.squared(&atoms[i].mean, Some(&atoms[j].mean)) / (e * e);
                if under > 0.0 {
                    value += PENALTY * under * under;
                    for k in 0..d {
                        let pull = 4.0
                            * PENALTY
                            * under
                            * self.weight(k)
                            * (atoms[i].mean[k] - atoms[j].mean[k])
                            / (e * e);
                        gradient[i * d + k] -= pull;
                        gradient[j * d + k] += pull;
                    }
                }
            }
        }
        value
    }

    /// Returns whether the constraints hold, up to rounding.
    pub fn hold(&self, atoms: &[Atom]) -> bool {
        (0..atoms.len()).all(|i| {
            self.is_near(&atoms[i]) && (0..i).all(|j| self.are_apart(&atoms[i], &atoms[j]))
        })
    }

    fn is_near(&self, atom: &Atom) -> bool {
        self.radius.is_none_or(|r| self.squared(&atom.mean, None).sqrt() <= r * (1.0 + 1e-6))
    }

    fn are_apart(&self, a: &Atom, b: &Atom) -> bool {
        self.separation
            .is_none_or(|e| self.squared(&a.mean, Some(&b.mean)).sqrt() >= e * (1.0 - 1e-6))
    }

    /// Moves atoms by the remaining violation: pairs apart, distant atoms inwards. Returns whether
    /// any atom moved. If no valid positions are found, [`hold`](Self::hold) returns false.
    pub fn project(&self, atoms: &mut [Atom]) -> bool {
        let mut any = false;
        for _ in 0..500 {
            let mut moved = false;
            if let Some(e) = self.separation {
                for i in 0..atoms.len() {
                    for j in 0..i {
                        let distance = self.squared(&atoms[i].mean, Some(&atoms[j].mean)).sqrt();
                        if distance < e {
                            moved = true;
                            push_apart(atoms, i, j, distance, e * (1.0 + 1e-9), self.weight(0));
                        }
                    }
                }
            }
            if let Some(r) = self.radius {
                for atom in atoms.iter_mut() {
                    let distance = self.squared(&atom.mean, None).sqrt();
                    if distance > r {
                        moved = true;
                        atom.mean.iter_mut().for_each(|x| *x *= r / distance * (1.0 - 1e-9));
                    }
                }
            }
            any |= moved;
            if !moved {
                break;
            }
        }
        any
    }
}

/// Moves two atoms apart along the line between them, the lighter one farther; coinciding ones
/// along the first axis.
fn push_apart(atoms: &mut [Atom], i: usize, j: usize, distance: f64, wanted: f64, weight: f64) {
    let mut direction: Vec<f64> =
        atoms[i].mean.iter().zip(&atoms[j].mean).map(|(a, b)| a - b).collect();
    let (length, missing) = if distance > 1e-12 * wanted {
        (distance, wanted - distance)
    } else {
        direction.fill(0.0);
        direction[0] = 1.0 / weight.sqrt();
        (1.0, wanted)
    };
    let total = (atoms[i].weight + atoms[j].weight).max(f64::MIN_POSITIVE);
    let share = (atoms[j].weight / total).clamp(0.0, 1.0);
    let share = if atoms[i].weight + atoms[j].weight > 0.0 { share } else { 0.5 };
    for (k, t) in direction.iter().enumerate() {
        atoms[i].mean[k] += share * missing / length * t;
        atoms[j].mean[k] -= (1.0 - share) * missing / length * t;
    }
}
