//! Signs of clusters: discs for the first twelve, other shapes in the same colours for the
//! following ones.

use super::palette::CLUSTERS;

/// A shape of radius one around the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A diamond.
    Diamond,
    /// A triangle that points up.
    Up,
    /// A triangle that points down.
    Down,
}

/// All signs, in the order in which clusters use them.
pub const SIGNS: [Sign; 5] = [Sign::Disc, Sign::Square, Sign::Diamond, Sign::Up, Sign::Down];

impl Sign {
    /// Returns the sign of a cluster.
    pub fn of(cluster: usize) -> Self {
        SIGNS[cluster / CLUSTERS.len() % SIGNS.len()]
    }

    /// Returns the corners; the disc has none.
    pub fn corners(self) -> &'static [(f64, f64)] {
        match self {
            Sign::Disc => &[],
            Sign::Square => &[(-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)],
            Sign::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Sign::Up => &[(0.0, -1.3), (1.2, 0.8), (-1.2, 0.8)],
            Sign::Down => &[(0.0, 1.3), (1.2, -0.8), (-1.2, -0.8)],
        }
    }

    /// Returns the outline as an SVG path.
    pub fn path(self) -> String {
        match self.corners() {
            [] => "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0".into(),
            corners => {
                let points: Vec<String> = corners.iter().map(|(x, y)| format!("{x} {y}")).collect();
                format!("M{}z", points.join("L"))
            }
        }
    }
}
