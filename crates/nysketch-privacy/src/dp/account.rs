//! Encoding of the terms of a release.

use crate::dp::{Budget, Mechanism, Rho, Shared, Spending, Terms};
use nysketch_core::error::names::Named;
use nysketch_core::error::{FormatError, Result};
use nysketch_core::format::container::value_error;
use nysketch_core::plan::Plan;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The guarantee of a release and the cost of each mechanism.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    delta: String,
    epsilon: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    honest: Option<u64>,
    mechanisms: Vec<Cost>,
    neighbours: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parties: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    person_rows: Option<u64>,
}

/// The cost of one mechanism.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    name: String,
    rho: u64,
    sensitivity_squared: String,
    variance: String,
}

impl Account {
    /// Creates the account of some terms.
    pub fn of(terms: &Terms) -> Self {
        let cost = |s: &Spending| Cost {
            name: s.mechanism.name().into(),
            rho: s.rho.0,
            sensitivity_squared: s.sensitivity.to_string(),
            variance: s.variance.to_string(),
        };
        let neighbours = match terms.person_rows {
            None => "one row added or removed",
            Some(_) => "one person added or removed",
        };
        Account {
            delta: terms.budget.delta.to_string(),
            epsilon: terms.budget.epsilon.to_string(),
            honest: terms.shared.map(|s| s.honest),
            mechanisms: terms.spendings.iter().map(cost).collect(),
            neighbours: neighbours.into(),
            parties: terms.shared.map(|s| s.parties),
            person_rows: terms.person_rows,
        }
    }

    /// Returns the account as JSON, keys in alphabetical order.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads an account from JSON.
    pub fn from_value(value: Value) -> Result<Self> {
        serde_json::from_value(value).map_err(|e| FormatError::Metadata(e.to_string()).into())
    }

    /// Returns the terms of a plan's release. The claims are computed from the costs, so the file
    /// must encode to the same bytes again.
    pub fn terms(&self, plan: &Plan) -> Result<Terms> {
        let number =
            |text: &str| text.parse::<f64>().map_err(|_| value_error("ε and δ are numbers"));
        let told = |e: nysketch_core::error::Error| value_error(e.to_string());
        let budget = Budget::new(number(&self.epsilon)?, number(&self.delta)?).map_err(told)?;
        let cost = |c: &Cost| Ok((Mechanism::from_name(&c.name).map_err(told)?, Rho(c.rho)));
        let costs: Result<Vec<_>> = self.mechanisms.iter().map(cost).collect();
        let shared = match (self.parties, self.honest) {
            (None, None) => None,
            (Some(parties), Some(honest)) => Some(Shared::new(parties, honest).map_err(told)?),
            _ => return Err(value_error("parties and honest parties are given together")),
        };
        Terms::of_costs(plan, budget, &costs?, self.person_rows, shared).map_err(told)
    }
}
