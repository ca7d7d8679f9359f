//! The page that `nysketch report` writes about a sketch. It opens in any browser.

mod clusters;
mod curve;
mod drift;
pub mod map;
mod measured;
mod models;
mod overview;
mod request;

pub use drift::{
    changed, effect, headline, moved_most, moved_share, p_text, point, q_text, share_lines,
};
pub use request::{DEFAULT_MOST_CLUSTERS, ReportRequest};

use crate::page::Page;
use anyhow::Result;
use nysketch::{Context as Decoding, Model};

/// A page about a sketch.
#[derive(Debug, Clone)]
pub struct Report {
    /// One HTML file without external links.
    pub html: String,
    /// Number of clusters or components of the model that is shown first.
    pub k: Option<usize>,
}

/// Makes the page.
pub fn page(request: &ReportRequest<'_>) -> Result<Report> {
    request.check()?;
    let ReportRequest { sketch, name, .. } = *request;
    let decoding = Decoding::new(sketch);
    let curves = models::curves(&decoding, request)?;
    let shown = models::shown(request, &curves);
    let mut page = Page::new(name);
    overview::section(&mut page, sketch, &curves, &shown);
    curve::section(&mut page, &curves, &shown);
    map::section(&mut page, sketch, &shown);
    clusters::section(&mut page, &decoding, &shown, &curves)?;
    if let Some(baseline) = request.baseline {
        drift::section(&mut page, request, baseline)?;
    }
    measured::section(&mut page, &decoding, shown.first())?;
    Ok(Report { html: page.finish(), k: shown.first().map(Model::k) })
}
