//! What a report is made of: the units, and what the experiment knows beside them.

use serde::{Deserialize, Serialize};

use super::outcome::Outcome;
use super::unit::Unit;

/// What a report is made of.
#[derive(Clone, Debug)]
pub struct Study<'a> {
    /// The experiment's name.
    pub name: &'a str,
    /// The slot whose decisions it is about.
    pub slot: &'a str,
    /// The arms' names; the first is control. Two at least.
    pub arms: &'a [String],
    /// What is measured; every unit's values are in this order.
    pub outcomes: &'a [Outcome],
    /// All units exposed so far, in any order.
    pub units: &'a [Unit],
    /// How long a unit is measured after its exposure.
    pub horizon_ms: u64,
    /// Now, milliseconds since 1970.
    pub now_ms: u64,
    /// Where the guardrails stand.
    pub guardrails: &'a [GuardrailReading],
    /// How often the arms that only shadow disagreed with what served.
    pub shadow: &'a [Disagreement],
}

/// Where one guardrail of one arm stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardrailReading {
    /// What it watches, as the settings call it.
    pub name: String,
    /// The arm that it watches.
    pub arm: String,
    /// What it measured last, in the guardrail's own unit of measure.
    pub value: f64,
    /// What it must not cross.
    pub limit: f64,
    /// When it was crossed and the arm's weight set to 0, milliseconds since 1970.
    pub crossed_ms: Option<u64>,
}

/// How often a shadow arm said one thing while the slot said another, one cell of a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The shadow arm.
    pub arm: String,
    /// What the slot decided, verdict and reason: `refuse settling`.
    pub served: String,
    /// What the arm would have decided.
    pub shadow: String,
    /// How many decisions.
    pub count: u64,
}
