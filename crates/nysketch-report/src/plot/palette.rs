//! Colours.

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Text.
pub const INK: Colour = Colour(34, 34, 34);
/// Axes and lines between clusters.
pub const LINE: Colour = Colour(204, 204, 204);
/// The background.
pub const PAPER: Colour = Colour(255, 255, 255);
/// Lines of data, and marks of values that stand out.
pub const DATA: Colour = CLUSTERS[0];
pub const STANDS_OUT: Colour = CLUSTERS[5];
/// Colours below and above the mean.
pub const BELOW: Colour = Colour(0, 114, 178);
pub const ABOVE: Colour = Colour(213, 94, 0);

/// Colours of clusters that are distinguishable with any kind of colour vision: the palette of
/// Okabe and Ito, followed by darker colours.
pub const CLUSTERS: [Colour; 12] = [
    Colour(0, 114, 178),
    Colour(230, 159, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(86, 180, 233),
    Colour(213, 94, 0),
    Colour(240, 228, 66),
    Colour(90, 90, 90),
    Colour(120, 60, 150),
    Colour(140, 90, 40),
    Colour(136, 34, 85),
    Colour(153, 153, 51),
];

pub fn colour(cluster: usize) -> Colour {
    CLUSTERS[cluster % CLUSTERS.len()]
}

/// Mixes a colour with the background; `strength` is from 0 to 1.
pub fn tint(colour: Colour, strength: f64) -> Colour {
    let mix =
        |c: u8, p: u8| (f64::from(p) + strength * (f64::from(c) - f64::from(p))).round() as u8;
    Colour(mix(colour.0, PAPER.0), mix(colour.1, PAPER.1), mix(colour.2, PAPER.2))
}
