//! The interface of a decoder.

use super::context::Context;
use super::params::FitParams;
use crate::atom::Atom;
use crate::covariance::CovarianceKind;
use crate::model::densities::Densities;
use crate::model::report::Report;
use nysketch_core::error::Result;
use rand_chacha::ChaCha8Rng;

/// The start of a fit, in the plan's coordinates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a> {
    /// Centres to start from; may be empty.
    pub centres: &'a [Vec<f64>],
    /// A mixture with fewer components to start from; may be empty.
    pub smaller: &'a [Atom],
    /// What is done with the centres.
    pub mode: Mode,
}

/// How a fit uses the centres of its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// As one of the starts of a search.
    #[default]
    Search,
    /// Iterates from them to convergence, without searching for other centres.
    Converge,
}

/// The state of one fit: inputs, random generator and report.
pub struct Job<'a> {
    /// The sketch, with the intermediate results that its fits share.
    pub context: &'a Context<'a>,
    /// The parameters of the fit; already checked.
    pub params: &'a FitParams,
    /// The start of the search.
    pub start: Start<'a>,
    /// The kind of covariance of a mixture.
    pub kind: CovarianceKind,
    /// The known variances of every component along the coordinates of the context, if given.
    pub known: Option<Vec<f64>>,
    /// The random generator of the fit.
    pub rng: ChaCha8Rng,
    /// The report on the fit, filled in as it proceeds.
    pub report: Report,
    /// Quantiles of the log density of the rows under the mixture, if the decoder estimates them
    /// better than its points do.
    pub densities: Option<Densities>,
}

/// A decoder: finds atoms, in the plan's coordinates, whose sketch matches that of the data.
pub trait Decode: Sync {
    /// Returns an error if the decoder cannot handle the sketch or the parameters.
    fn check(&self, context: &Context<'_>, params: &FitParams) -> Result<()>;

    /// Returns centres, with their shares of the data, as atoms.
    fn centres(&self, job: &mut Job<'_>) -> Result<Vec<Atom>>;

    /// Returns the components of a Gaussian mixture.
    fn mixture(&self, job: &mut Job<'_>) -> Result<Vec<Atom>>;
}
