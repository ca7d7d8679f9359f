//! The kinds of files for pictures.

use std::path::{Path, PathBuf};

/// The kind of file of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Vector graphics.
    Svg,
    /// Pixels.
    Png,
}

impl Kind {
    /// Returns the kind for the extension of a path.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        [("svg", Kind::Svg), ("png", Kind::Png)]
            .into_iter()
            .find(|(name, _)| extension.eq_ignore_ascii_case(name))
            .map(|(_, kind)| kind)
    }
}

/// The rule for names of pictures, as part of an error message.
pub const KINDS: &str = "the name of a picture ends in .svg or .png";

/// Checks the name of a picture. Called before anything is computed.
pub fn path(path: PathBuf) -> Result<PathBuf, String> {
    if Kind::of(&path).is_some() { Ok(path) } else { Err(KINDS.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides() {
        assert_eq!(Kind::of(Path::new("a/b.SVG")), Some(Kind::Svg));
        assert_eq!(Kind::of(Path::new("x.y.png")), Some(Kind::Png));
        assert_eq!(Kind::of(Path::new("x.pdf")), None);
        assert_eq!(Kind::of(Path::new("png")), None);
    }
}
