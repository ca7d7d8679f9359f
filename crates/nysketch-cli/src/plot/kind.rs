//! Which files a picture can be written to.

use std::path::{Path, PathBuf};

/// The kinds of files that a picture can be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Vectors.
    Svg,
    /// Pixels.
    Png,
}

impl Kind {
    /// By the extension.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        [("svg", Kind::Svg), ("png", Kind::Png)]
            .into_iter()
            .find(|(name, _)| extension.eq_ignore_ascii_case(name))
            .map(|(_, kind)| kind)
    }
}

/// What a name must look like.
pub const KINDS: &str = "the name of a picture ends in .svg or .png";

/// The file of a picture, refused before anything is computed if its name does not say how to write it.
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
