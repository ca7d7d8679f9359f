//! What every decoder does.

use super::context::Context;
use super::params::FitParams;
use crate::atom::Atom;
use crate::covariance::CovarianceKind;
use crate::model::densities::Densities;
use crate::model::report::Report;
use nysketch_core::error::Result;
use rand_chacha::ChaCha8Rng;

/// One fit: what to learn from what, and how far it has come.
pub struct Job<'a> {
    /// The sketch and what fits of it share.
    pub context: &'a Context<'a>,
    /// What to fit and how; checked.
    pub params: &'a FitParams,
    /// Centres to start from, in the plan's coordinates; may be none.
    pub warm: &'a [Vec<f64>],
    /// A mixture of fewer components to start from; may be empty.
    pub smaller: &'a [Atom],
    /// Which covariances a mixture is to have.
    pub kind: CovarianceKind,
    /// Variances of every component along the coordinates of the context, where they are known.
    pub known: Option<Vec<f64>>,
    /// Everything random.
    pub rng: ChaCha8Rng,
    /// How the model is found.
    pub report: Report,
    /// How dense the rows lie under a mixture, where the decoder knows better than its points.
    pub densities: Option<Densities>,
}

/// A decoder: finds atoms, in the plan's coordinates, whose sketch is that of the data.
pub trait Decode: Sync {
    /// Refuses what it cannot decode.
    fn check(&self, context: &Context<'_>, params: &FitParams) -> Result<()>;

    /// Centres with their shares of the data, as atoms.
    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>>;

    /// A mixture of Gaussians.
    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>>;
}
