//! Lists of the atoms that matter to each block of points.
//!
//! In a mixture of many components, nearly all components are out of range of a given point: their
//! density there is less than e⁻²⁰ of the largest. Points are therefore sorted by their best atom,
//! so that the points of a block are neighbours. A step that evaluates all atoms lists the atoms
//! within range of some point of each block, and the following steps evaluate only the listed ones.
//! Such a step is a step of EM on a lower bound of the likelihood (Neal and Hinton, 1998), which
//! increases like the likelihood itself. Lists are renewed after 4 steps, then after 8, 16 and so
//! on, since atoms move less and less. They are also renewed before EM ends, so that the result is
//! based on all atoms.

/// Minimum number of components for which only the atoms within range are evaluated.
pub const MANY: usize = 32;
/// Atoms whose log density is this far below the largest, in nats, are out of range. A thousand
/// such atoms together would have a responsibility of 2e-6.
pub const REACH: f64 = 20.0;
/// Lists are short if their mean length is at most this fraction (1/`SHORT`) of all atoms.
const SHORT: usize = 4;
/// Number of steps that use the first lists.
const FIRST: usize = 4;

/// The atoms within range of each block of points.
#[derive(Debug, Default)]
pub struct Near {
    ends: Vec<usize>,
    atoms: Vec<u32>,
}

impl Near {
    /// Adds the list of the next block.
    pub fn push(&mut self, atoms: impl IntoIterator<Item = u32>) {
        self.atoms.extend(atoms);
        self.ends.push(self.atoms.len());
    }

    /// Returns whether there are lists and they are so short, given the number of atoms, that the
    /// points are already well sorted.
    pub fn are_short(&self, atoms: usize) -> bool {
        !self.ends.is_empty() && self.atoms.len() * SHORT <= self.ends.len() * atoms
    }

    /// Returns the list of a block.
    pub fn of(&self, block: usize) -> &[u32] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.atoms[start..self.ends[block]]
    }
}

/// Determines which atoms each step of a run evaluates.
#[derive(Debug)]
pub struct Schedule {
    /// The current lists, if any.
    near: Option<Near>,
    /// Number of steps for which the current lists remain valid, and for which the next ones will
    /// be.
    left: usize,
    next: usize,
}

impl Schedule {
    pub fn new() -> Self {
        Schedule { near: None, left: 0, next: FIRST }
    }

    /// Returns the lists for the next step; `None` if it evaluates all atoms.
    pub fn lists(&self) -> Option<&Near> {
        self.near.as_ref().filter(|_| self.left > 0)
    }

    /// Records a step that used the lists.
    pub fn served(&mut self) {
        self.left -= 1;
    }

    /// Replaces the lists.
    pub fn renew(&mut self, near: Near) {
        (self.near, self.left) = (Some(near), self.next);
        self.next *= 2;
    }

    /// Makes the next step evaluate all atoms.
    pub fn doubt(&mut self) {
        self.left = 0;
    }
}

/// Returns the indices of the points, sorted by their best atoms.
pub fn by_best(best: &[u32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..best.len()).collect();
    order.sort_by_key(|i| best[*i]);
    order
}
