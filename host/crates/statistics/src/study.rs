//! Defines the input of a report: the units, and what else is known of the experiment.

use serde::{Deserialize, Serialize};

use super::outcome::MeasuredOutcome;
use super::unit::Unit;

/// The input of a report.
#[derive(Clone, Debug)]
pub struct Study<'a> {
    /// The experiment's name.
    pub name: &'a str,
    /// The slot whose decisions it is about.
    pub slot: &'a str,
    /// The arms' names; the first is control. Two at least.
    pub arms: &'a [String],
    /// What is measured; every unit's values are in this order.
    pub outcomes: &'a [MeasuredOutcome],
    /// All units exposed so far, in any order.
    pub units: &'a [Unit],
    /// How long a unit is measured after its exposure.
    pub horizon_ms: u64,
    /// Now, milliseconds since 1970.
    pub now_ms: u64,
    /// The state of the guardrails.
    pub guardrails: &'a [GuardrailReading],
    /// How often the arms that only shadow disagreed with what served.
    pub shadow: &'a [Disagreement],
}

/// The state of one guardrail of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardrailReading {
    /// Its name in the settings.
    pub name: String,
    /// The arm that it watches.
    pub arm: String,
    /// The last measured value, in the guardrail's unit of measure.
    pub value: f64,
    /// The limit of the value.
    pub limit: f64,
    /// When it was crossed and the arm's weight set to 0, milliseconds since 1970.
    pub crossed_ms: Option<u64>,
}

/// How often a shadow arm decided one thing while the slot decided another: one cell of a matrix.
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
