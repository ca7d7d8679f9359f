//! The choice of columns to read, and their types.

use nysketch::{Plan, Recipe};
use nysketch_tables::Columns;

/// The columns to read.
pub enum Wanted {
    /// Columns from which a plan may be made.
    Choice(Choice),
    /// Exactly these. If X has no column names, columns are found by position.
    Exactly {
        /// Columns of numbers.
        numbers: Vec<String>,
        /// The columns of `numbers` that are points in time.
        times: Vec<String>,
        /// Columns of categories.
        categories: Vec<String>,
        /// Whether each row is read by itself, as for a private plan.
        rowwise: bool,
    },
}

/// The user's choice of columns: names, ranges and patterns.
#[derive(Default)]
pub struct Choice {
    pub columns: Chosen,
    pub exclude: Vec<String>,
    /// Columns to read as categories, as numbers and as points in time.
    pub categorical: Vec<String>,
    pub numeric: Vec<String>,
    pub dates: Vec<String>,
}

/// Columns from which a plan may be made.
#[derive(Default, PartialEq, Eq)]
pub enum Chosen {
    /// All columns of numbers or text.
    #[default]
    Usual,
    /// All columns; an unsuitable one is an error.
    All,
    /// These columns.
    These(Vec<String>),
}

impl Wanted {
    /// Returns the columns that a plan or a model reads from a table.
    pub fn recipe(recipe: &Recipe) -> Self {
        Self::of(recipe, false)
    }

    /// What a plan takes from a table that is sketched.
    pub fn plan(plan: &Plan) -> Self {
        Self::of(&plan.recipe, plan.private.is_some())
    }

    fn of(recipe: &Recipe, rowwise: bool) -> Self {
        Wanted::Exactly {
            numbers: recipe.inputs(),
            times: recipe.times(),
            categories: recipe.categories.iter().map(|c| c.name.clone()).collect(),
            rowwise,
        }
    }

    /// The columns of numbers, where each row is read by itself.
    pub(super) fn rowwise(&self) -> Option<Vec<String>> {
        match self {
            Wanted::Exactly { numbers, rowwise: true, .. } => Some(numbers.clone()),
            _ => None,
        }
    }

    /// Converts the choice for files and Arrow tables. `taken` are columns of weights and groups.
    pub(super) fn columns(self, taken: Vec<String>) -> Columns {
        let choice = match self {
            Wanted::Choice(choice) => choice,
            Wanted::Exactly { numbers, times, categories, .. } => {
                return Columns::Exactly { numbers, times, categories };
            }
        };
        let columns = match choice.columns {
            Chosen::Usual => Columns::default(),
            Chosen::All => Columns::matching(["*"]).except(taken),
            Chosen::These(patterns) => Columns::matching(patterns),
        };
        columns
            .except(choice.exclude)
            .categorical(choice.categorical)
            .numeric(choice.numeric)
            .dates(choice.dates)
    }

    /// Returns the names of the columns to read, if they are known. Some may be patterns or
    /// coordinates of vectors.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        match self {
            Wanted::Choice(Choice {
                columns: Chosen::These(names),
                categorical,
                numeric,
                dates,
                ..
            }) => {
                let lists = [names, categorical, numeric, dates];
                Some(lists.into_iter().flatten().cloned().collect())
            }
            Wanted::Choice(_) => None,
            Wanted::Exactly { numbers, categories, .. } => {
                Some(numbers.iter().chain(categories).cloned().collect())
            }
        }
    }
}
