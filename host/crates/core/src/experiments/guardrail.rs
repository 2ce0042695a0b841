//! Guardrails limit what a treatment may do to its units. They are one-sided and are checked all the time: a treatment
//! that crosses one ends the experiment at once, before any horizon is over.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::trial::Outcomes;

/// The limits of an experiment. A limit that is `None` says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Guardrails {
    /// Stranded time a unit, in milliseconds, on average. Default 5,000.
    pub stranded_ms_mean_max: Option<f64>,
    /// Decisions that fell back to the native rule, of all. Default 0.02.
    pub failures_share_max: Option<f64>,
    /// Offline time a unit, in milliseconds, on average. Default 60,000.
    pub offline_ms_mean_max: Option<f64>,
    /// Units that a treatment has at least before the limits of a mean say anything. Default 20.
    pub units_min: u32,
    /// Decisions that a treatment has at least before the limit of failures says anything. Default 50.
    pub decisions_min: u32,
}

impl Default for Guardrails {
    fn default() -> Guardrails {
        Guardrails {
            stranded_ms_mean_max: Some(5_000.0),
            failures_share_max: Some(0.02),
            offline_ms_mean_max: Some(60_000.0),
            units_min: 20,
            decisions_min: 50,
        }
    }
}

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guardrail {
    /// [`Guardrails::stranded_ms_mean_max`].
    Stranded,
    /// [`Guardrails::failures_share_max`].
    Failures,
    /// [`Guardrails::offline_ms_mean_max`].
    Offline,
}

impl Guardrail {
    /// As it is written in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Guardrail::Stranded => "stranded",
            Guardrail::Failures => "failures",
            Guardrail::Offline => "offline",
        }
    }
}

/// What became of the units of an arm so far, in sums; those whose horizon lasts are among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Units that were exposed.
    pub units: u64,
    /// Decisions.
    pub decisions: u64,
    /// Of these, those that fell back to the native rule.
    pub failures: u64,
    /// In milliseconds.
    pub stranded_ms: u64,
    /// In milliseconds.
    pub offline_ms: u64,
}

impl Tally {
    /// Adds a unit.
    pub fn add(&mut self, outcomes: &Outcomes) {
        self.units += 1;
        self.decisions += u64::from(outcomes.decisions);
        self.failures += u64::from(outcomes.failures);
        self.stranded_ms += outcomes.stranded_ms;
        self.offline_ms += outcomes.offline_ms;
    }

    /// Of both.
    #[must_use]
    pub fn plus(&self, other: &Tally) -> Tally {
        Tally {
            units: self.units + other.units,
            decisions: self.decisions + other.decisions,
            failures: self.failures + other.failures,
            stranded_ms: self.stranded_ms + other.stranded_ms,
            offline_ms: self.offline_ms + other.offline_ms,
        }
    }
}

/// A limit that was crossed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossed {
    /// Which.
    pub guardrail: Guardrail,
    /// What was found.
    pub found: f64,
    /// What is allowed.
    pub allowed: f64,
    /// Over so many units, or decisions.
    pub of: u64,
}

impl fmt::Display for Crossed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crossed { found, allowed, of, .. } = self;
        match self.guardrail {
            Guardrail::Stranded => {
                write!(f, "stranded for {found:.0} ms a unit, more than {allowed:.0}, over {of} units")
            }
            Guardrail::Failures => write!(f, "{found:.4} of {of} decisions failed, more than {allowed:.4}"),
            Guardrail::Offline => {
                write!(f, "offline for {found:.0} ms a unit, more than {allowed:.0}, over {of} units")
            }
        }
    }
}

impl Guardrails {
    /// The first limit that a treatment has crossed.
    pub fn crossed(&self, tally: &Tally) -> Option<Crossed> {
        let of_units = |guardrail, limit: Option<f64>, sum| {
            (guardrail, limit, sum, tally.units, tally.units >= u64::from(self.units_min.max(1)))
        };
        let has_decisions = tally.decisions >= u64::from(self.decisions_min.max(1));
        let limits = [
            of_units(Guardrail::Stranded, self.stranded_ms_mean_max, tally.stranded_ms),
            (Guardrail::Failures, self.failures_share_max, tally.failures, tally.decisions, has_decisions),
            of_units(Guardrail::Offline, self.offline_ms_mean_max, tally.offline_ms),
        ];
        limits.into_iter().find_map(|(guardrail, limit, sum, of, may_speak)| {
            let allowed = limit.filter(|_| may_speak)?;
            let found = sum as f64 / of as f64;
            (found > allowed).then_some(Crossed { guardrail, found, allowed, of })
        })
    }

    /// The first limit that a treatment has crossed by what was observed, by what it did `beyond` that
    /// ([`Trial::guard`](super::Trial::guard)), or by both together: what does well in many must not hide the others.
    pub fn crossed_by_any(&self, observed: &Tally, beyond: &Tally) -> Option<Crossed> {
        [observed, beyond, &observed.plus(beyond)].into_iter().find_map(|tally| self.crossed(tally))
    }

    /// Whether all limits are numbers that are not negative.
    pub fn are_sound(&self) -> bool {
        let limits = [self.stranded_ms_mean_max, self.failures_share_max, self.offline_ms_mean_max];
        limits.into_iter().flatten().all(|limit| limit.is_finite() && limit >= 0.0)
    }
}
