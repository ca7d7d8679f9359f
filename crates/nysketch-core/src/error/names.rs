//! Closed sets of named choices: one table each, from which files, the command, Python and messages
//! take the names.

use crate::error::{Error, Result};

/// One of a closed set of choices.
///
/// ```
/// use nysketch_core::{Choice, Named, Scale};
/// let Choice { name, about, .. } = Scale::choices().next().unwrap();
/// println!("{name}: {about}");
/// assert_eq!(*name, "none");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Choice<T> {
    /// The value.
    pub value: T,
    /// The name in files, on the command line and in Python.
    pub name: &'static str,
    /// A short description; empty if users do not choose the value by name.
    pub about: &'static str,
}

impl<T> Choice<T> {
    /// Creates an entry of a table.
    pub const fn new(value: T, name: &'static str, about: &'static str) -> Self {
        Choice { value, name, about }
    }
}

/// A closed set of choices.
///
/// ```
/// use nysketch_core::{Named, Sampling};
/// assert_eq!(Sampling::from_name("greedy")?, Sampling::Greedy);
/// let names: Vec<&str> = Sampling::choices().map(|c| c.name).collect();
/// assert_eq!(names, ["uniform", "leverage", "greedy", "rpcholesky", "dsquared"]);
/// # Ok::<(), nysketch_core::Error>(())
/// ```
pub trait Named: Copy + PartialEq + Send + Sync + 'static {
    /// The parameter that takes the choice, in backquotes, for messages.
    const PARAMETER: &'static str;
    /// The table of all choices.
    const TABLE: &'static [Choice<Self>];

    /// Returns the choice with this name.
    fn from_name(name: &str) -> Result<Self> {
        let known = Self::TABLE.iter().find(|c| c.name == name);
        known.map(|c| c.value).ok_or_else(|| {
            let names: Vec<&str> = Self::choices().map(|c| c.name).collect();
            Error::parameter(Self::PARAMETER, format!("one of {}", names.join(", ")), name)
        })
    }

    /// Returns the choices that users can select.
    fn choices() -> impl Iterator<Item = &'static Choice<Self>> {
        Self::TABLE.iter().filter(|c| !c.about.is_empty())
    }
}

/// Returns the name of a choice.
pub fn name_of<T: Named>(value: T) -> &'static str {
    T::TABLE.iter().find(|c| c.value == value).map_or("", |c| c.name)
}
