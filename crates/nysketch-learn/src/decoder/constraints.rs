//! The hypothesis space of section 2: atoms at least `separation` (the paper's 2ε) apart and within
//! `radius` of the origin of the plan's coordinates; for Gaussians of known variance both in
//! Mahalanobis distance.

use crate::atom::Atom;

/// Weight of the penalty, of the order of an objective near its minimum.
const PENALTY: f64 = 0.01;

/// Bounds on where atoms may be; none by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    /// Least distance between two atoms.
    pub separation: Option<f64>,
    /// Largest distance from the origin.
    pub radius: Option<f64>,
    /// `1/γ` for Mahalanobis distances; empty for plain ones.
    pub precision: Vec<f64>,
}

impl Constraints {
    fn squared(&self, x: &[f64], y: Option<&[f64]>) -> f64 {
        (0..x.len()).map(|k| self.weight(k) * (x[k] - y.map_or(0.0, |y| y[k])).powi(2)).sum()
    }

    fn weight(&self, k: usize) -> f64 {
        self.precision.get(k).copied().unwrap_or(1.0)
    }

    /// A penalty that is zero where the constraints hold, and its gradient by the means; gentle beside
    /// the objective, since atoms are projected after each refinement.
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

    /// Whether the constraints hold, to rounding.
    pub fn hold(&self, atoms: &[Atom]) -> bool {
        let near = |i: usize| match self.radius {
            Some(r) => self.squared(&atoms[i].mean, None).sqrt() <= r * (1.0 + 1e-6),
            None => true,
        };
        let apart = |i: usize, j: usize| match self.separation {
            Some(e) => {
                self.squared(&atoms[i].mean, Some(&atoms[j].mean)).sqrt() >= e * (1.0 - 1e-6)
            }
            None => true,
        };
        (0..atoms.len()).all(|i| near(i) && (0..i).all(|j| apart(i, j)))
    }

    /// Moves atoms the little way that a penalty leaves: pairs apart, far ones in. Tells whether any
    /// moved; where no place can be found, [`hold`](Self::hold) says so.
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

/// Moves two atoms along the line between them, the lighter one farther; equal ones along the first
/// axis.
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
