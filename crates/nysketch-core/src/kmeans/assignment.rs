//! The centre of every point while centres move, with bounds that skip most points whose nearest
//! centre cannot have changed.
//!
//! For each point the distance u to its centre and a lower bound l on the distance to all others
//! are known. When centres have moved, u is recomputed, and the centre is still the nearest
//! in the following cases, in order of increasing cost:
//!
//! 1. u ≤ l − δ, where δ is the longest of all moves (Hamerly 2010);
//! 2. u ≤ min(l − δ', v), where v is the distance to the nearest of the tenth of the centres that
//!    moved most, which are evaluated, and δ' is the longest move of the others;
//! 3. all centres are evaluated.
//!
//! The second case serves searches with many centres, a few of which always move far. Bounds are
//! widened by the rounding error of single precision and rounded down whenever they change, so that
//! they exclude no centre that an evaluation of all centres would find.

use super::narrow::Narrowed;
use crate::numeric::parallel::in_parallel;
use crate::numeric::simd::{Instructions, Work};

/// A point changes its centre only if another is nearer by this share of the squared distance,
/// which exceeds most rounding errors.
const NEARER: f32 = 1e-6;
/// One in this many centres is evaluated if the first bound does not decide.
const FASTEST: usize = 10;
/// That evaluation pays if it decides at least one in this many points.
const DECIDED: usize = 5;
/// Number of rounds after which an evaluation that did not pay is tried again.
const PATIENCE: usize = 4;
/// Number of points that a thread processes at once.
const CHUNK: usize = 1 << 14;

/// The centre of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Assigned {
    /// Index of the centre; `u32::MAX` before the first round.
    pub centre: u32,
    /// The squared distance to it.
    pub d2: f32,
    /// A lower bound on the distance to all other centres; not squared.
    others: f32,
}

/// The centres of all points.
#[derive(Debug)]
pub(super) struct Assignment<'a> {
    points: &'a Narrowed,
    places: Vec<Vec<f32>>,
    assigned: Vec<Assigned>,
    /// Distance that each centre has moved since the last round.
    moves: Vec<f32>,
    /// Factor above one that covers the rounding error of a distance.
    slack: f32,
    threads: usize,
    /// Number of rounds since evaluating the fastest centres last paid.
    idle: usize,
}

impl<'a> Assignment<'a> {
    /// Creates an assignment without bounds: the first round evaluates all centres.
    pub fn new(points: &'a Narrowed, centres: &[Vec<f64>], threads: usize) -> Self {
        let (dims, len) = points.size();
        Assignment {
            points,
            places: points.places(centres),
            assigned: vec![Assigned { centre: u32::MAX, d2: f32::INFINITY, others: 0.0 }; len],
            moves: vec![0.0; centres.len()],
            slack: 1.0 + (dims + 8) as f32 * f32::EPSILON,
            threads,
            idle: 0,
        }
    }

    /// Returns the centres of the points as of the last round.
    pub fn assigned(&self) -> &[Assigned] {
        &self.assigned
    }

    /// Moves a centre; at most once between two rounds.
    pub fn place(&mut self, centre: usize, at: &[f64]) {
        let place = self.points.place(at);
        let squares = place.iter().zip(&self.places[centre]).map(|(a, b)| (a - b) * (a - b));
        self.moves[centre] = squares.sum::<f32>().sqrt() * self.slack;
        self.places[centre] = place;
    }

    /// Returns the distance that a centre has moved since the last round.
    fn moved(&self, centre: u32) -> f32 {
        self.moves[centre as usize]
    }

    /// Updates the centres of all points.
    pub fn round(&mut self) {
        let mut order: Vec<u32> = (0..self.places.len() as u32).collect();
        order.retain(|c| self.moves[*c as usize] > 0.0);
        order.sort_by(|a, b| self.moved(*b).total_cmp(&self.moved(*a)).then(a.cmp(b)));
        let longest = order.first().map_or(0.0, |c| self.moved(*c));
        let (fastest, slower) = order.split_at(order.len().min(self.places.len() / FASTEST));
        let rest = slower.first().map_or(0.0, |c| self.moved(*c));
        let mut doubtful = self.unsettled(longest);
        let tries = self.idle == 0 || self.idle >= PATIENCE;
        if !fastest.is_empty() && !doubtful.is_empty() && tries {
            let before = doubtful.len();
            doubtful = self.undecided(doubtful, fastest, rest);
            let pays = DECIDED * (before - doubtful.len()) >= before;
            self.idle = usize::from(!pays);
        } else {
            self.idle += usize::from(!tries);
        }
        let found = self.points.nearest_and_reach(&doubtful, &self.places, self.threads);
        for (i, near) in doubtful.iter().zip(found) {
            let point = &mut self.assigned[*i as usize];
            if near.first < point.d2 * (1.0 - NEARER) || point.centre == u32::MAX {
                (point.centre, point.d2) = (near.centre, near.first);
                point.others = near.second.sqrt();
            } else {
                let nearest = if near.centre == point.centre { near.second } else { near.first };
                point.others = nearest.sqrt();
            }
        }
        self.moves.fill(0.0);
    }

    /// Recomputes distances to centres that moved, and returns the points that the first bound
    /// leaves undecided.
    fn unsettled(&mut self, longest: f32) -> Vec<u32> {
        let (points, places, moves) = (self.points, &self.places[..], &self.moves[..]);
        let slack = self.slack;
        let chunks = self.assigned.chunks_mut(CHUNK).enumerate().collect();
        let doubtful = in_parallel(self.threads, chunks, |(chunk, assigned)| {
            let (first, mut found) = (chunk * CHUNK, Vec::new());
            Instructions::best().run(FirstBound {
                points,
                places,
                moves,
                assigned,
                first,
                longest,
                slack,
                found: &mut found,
            });
            found
        });
        doubtful.concat()
    }

    /// Evaluates the centres that moved most, and returns the points that the second bound leaves
    /// undecided.
    fn undecided(&mut self, doubtful: Vec<u32>, fastest: &[u32], rest: f32) -> Vec<u32> {
        let places: Vec<_> = fastest.iter().map(|c| self.places[*c as usize].clone()).collect();
        let found = self.points.nearest_two(&doubtful, &places, self.threads);
        let mut undecided = Vec::new();
        for (i, near) in doubtful.into_iter().zip(found) {
            let point = &mut self.assigned[i as usize];
            let is_same = fastest[near.centre as usize] == point.centre;
            let other = if is_same { near.second } else { near.first };
            let others = (point.others - rest).next_down().min(other.sqrt());
            if point.d2.sqrt() * self.slack <= others {
                point.others = others;
            } else {
                undecided.push(i);
            }
        }
        undecided
    }
}

/// Finds the points that the first bound leaves undecided.
struct FirstBound<'a> {
    points: &'a Narrowed,
    places: &'a [Vec<f32>],
    moves: &'a [f32],
    assigned: &'a mut [Assigned],
    /// Index of the first point.
    first: usize,
    /// The longest of all moves.
    longest: f32,
    slack: f32,
    found: &'a mut Vec<u32>,
}

impl Work for FirstBound<'_> {
    #[inline(always)]
    fn work(self) {
        for (i, point) in self.assigned.iter_mut().enumerate() {
            let (i, centre) = (self.first + i, point.centre as usize);
            if self.moves.get(centre).is_some_and(|moved| *moved > 0.0) {
                point.d2 = self.points.weighted_distance(i, &self.places[centre]);
            }
            let others = (point.others - self.longest).next_down();
            if point.d2.sqrt() * self.slack <= others {
                point.others = others;
            } else {
                self.found.push(i as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::random::Hashes;
    use crate::rows::sample::mix;
    use proptest::prelude::*;

    /// Numbers from 0 to 8, whole numbers on a grid.
    fn numbers(count: usize, grid: bool, hashes: &mut Hashes) -> Vec<f64> {
        let mut numbers = Vec::with_capacity(count);
        for _ in 0..count {
            let x = (hashes.draw() >> 40) as f64 / (1u64 << 24) as f64;
            numbers.push(if grid { (8.0 * x).floor() } else { 8.0 * x });
        }
        numbers
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Centres move by small and large distances, all at once or only some, and a few move far.
        /// After every round each point has a nearest centre, with the distance that an evaluation
        /// of all centres gives.
        #[test]
        fn bounds_exclude_nothing_that_is_nearer(
            d in 1usize..6,
            k in prop_oneof![9 => 1usize..60, 1 => 512usize..600],
            n in 1usize..500,
            (step, rounds) in
                prop::sample::select(vec![(2e-7, 150), (1e-3, 12), (0.1, 12), (1.0, 12)]),
            grid in any::<bool>(),
            partly in any::<bool>(),
            threads in 1usize..3,
            seed in any::<u64>(),
        ) {
            let mut hashes = Hashes(seed);
            let points = numbers(n * d, grid, &mut hashes);
            let mut known = numbers(if partly { n * d } else { 0 }, grid, &mut hashes);
            known.iter_mut().for_each(|share| *share /= 8.0);
            let narrowed = Narrowed::new(d, &points, &known);
            let mut centres = Vec::new();
            for _ in 0..k {
                centres.push(numbers(d, grid, &mut hashes));
            }
            let mut assignment = Assignment::new(&narrowed, &centres, threads);
            let all: Vec<u32> = (0..n as u32).collect();
            for round in 0..if k < 500 { rounds } else { 12 } {
                assignment.round();
                let places = narrowed.places(&centres);
                let nearest = narrowed.nearest(&all, &places, 1);
                for (i, (point, near)) in assignment.assigned().iter().zip(nearest).enumerate() {
                    let d2 = narrowed.weighted_distance(i, &places[point.centre as usize]);
                    prop_assert_eq!(point.d2.to_bits(), d2.to_bits());
                    prop_assert!(near.first >= d2 * (1.0 - NEARER), "round {} point {}", round, i);
                }
                for (c, centre) in centres.iter_mut().enumerate() {
                    if !mix(seed ^ (round * 1000 + c) as u64).is_multiple_of(4) {
                        let far = if c % 17 == round % 17 { 50.0 } else { 1.0 };
                        for (x, number) in centre.iter_mut().zip(numbers(d, grid, &mut hashes)) {
                            *x += far * step * (number / 4.0 - 1.0);
                        }
                        assignment.place(c, centre);
                    }
                }
            }
        }
    }
}
