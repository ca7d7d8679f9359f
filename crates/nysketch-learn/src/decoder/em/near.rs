//! Which atoms matter to which points.
//!
//! In a mixture of many components nearly all of them are out of reach of a point: their density there is less
//! than e⁻²⁰ of the largest. So points are put in order by their best atom, which makes neighbours of a block;
//! a step that looks at all atoms lists those within reach of some point of each block; and the steps after it
//! look at the lists alone. Such a step is one of EM on a lower bound of the likelihood (Neal and Hinton,
//! 1998), which grows like the likelihood itself. Lists are renewed after 4 steps, then 8, 16 and so on, since atoms move less
//! and less, and before EM ends, so that what is told in the end is told by all atoms.

/// Components from which on points look only at those within reach.
pub const MANY: usize = 32;
/// Atoms whose log-density is so far below the largest, in nats, are out of reach. A thousand of them would be 2e-6
/// of a point.
pub const REACH: f64 = 20.0;
/// Lists of this part of all atoms are short.
const SHORT: usize = 4;
/// Steps with the first lists.
const FIRST: usize = 4;

/// The atoms within reach of each block of points.
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

    /// Whether there are lists, and so short ones, of so many atoms, that the points are in a good order already.
    pub fn are_short(&self, atoms: usize) -> bool {
        !self.ends.is_empty() && self.atoms.len() * SHORT <= self.ends.len() * atoms
    }

    /// The list of a block.
    pub fn of(&self, block: usize) -> &[u32] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.atoms[start..self.ends[block]]
    }
}

/// Which atoms each step of a run looks at.
#[derive(Debug)]
pub struct Schedule {
    /// Lists, once there are any.
    near: Option<Near>,
    /// Steps that they still serve, and how many the next will.
    left: usize,
    next: usize,
}

impl Schedule {
    pub fn new() -> Self {
        Schedule { near: None, left: 0, next: FIRST }
    }

    /// The lists for the next step; `None` where it looks at all atoms.
    pub fn lists(&self) -> Option<&Near> {
        self.near.as_ref().filter(|_| self.left > 0)
    }

    /// Takes note of a step with the lists.
    pub fn served(&mut self) {
        self.left -= 1;
    }

    /// New lists.
    pub fn renew(&mut self, near: Near) {
        (self.near, self.left) = (Some(near), self.next);
        self.next *= 2;
    }

    /// The next step looks at all atoms.
    pub fn doubt(&mut self) {
        self.left = 0;
    }
}

/// The points in the order of their best atoms.
pub fn by_best(best: &[u32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..best.len()).collect();
    order.sort_by_key(|i| best[*i]);
    order
}
