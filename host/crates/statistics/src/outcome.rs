//! Defines the outcomes that are measured for each unit, and which direction is better.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A quantity that is measured for every unit, as one number over the unit's horizon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredOutcome {
    /// Its name in reports.
    pub name: Cow<'static, str>,
    /// The unit of measure.
    pub measure: OutcomeMeasure,
    /// The better direction.
    pub better: Direction,
}

/// The unit of measure of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeMeasure {
    /// How often something happened to the unit.
    Count,
    /// Milliseconds.
    Milliseconds,
    /// A part of one, 0 to 1.
    Share,
}

/// The better direction of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// A difference is neither good nor bad.
    Neither,
}

impl MeasuredOutcome {
    /// An outcome of which less is better.
    pub const fn lower(name: &'static str, measure: OutcomeMeasure) -> Self {
        Self { name: Cow::Borrowed(name), measure, better: Direction::Lower }
    }
}

/// The outcomes of the slot `settle`, in the order of a unit's values. The unit is the device.
///
/// - `flips`: the authoritative socket changed while the previous one was still alive
/// - `time-to-stable`: from the first open of a burst until a holder that is kept for a whole window. `None` for a device
///   without a burst; one whose burst found no stable holder within the horizon has the time until the horizon's end, so that the
///   worst devices are not the ones that are missing
/// - `refused`: registers refused
/// - `stranded`: time in which the device had an open socket and none was authoritative
/// - `offline`: time in which the dashboard saw it offline
/// - `failures`: decisions of its arm that the native rule had to make for the module
pub static SETTLE: [MeasuredOutcome; 6] = [
    MeasuredOutcome::lower("flips", OutcomeMeasure::Count),
    MeasuredOutcome::lower("time-to-stable", OutcomeMeasure::Milliseconds),
    MeasuredOutcome::lower("refused", OutcomeMeasure::Count),
    MeasuredOutcome::lower("stranded", OutcomeMeasure::Milliseconds),
    MeasuredOutcome::lower("offline", OutcomeMeasure::Milliseconds),
    MeasuredOutcome::lower("failures", OutcomeMeasure::Count),
];

/// The outcomes of the slots of the RPC path, in the order of a unit's values: those that every experiment has, then the share of
/// the unit's calls that ended in each of `error_kinds`. The unit is the user.
///
/// - `calls`: how many the user made; neither good nor bad, but a difference says that callers answer the rule
/// - `answered`: the share of them that got the daemon's answer
/// - `waiting`: mean time that a call waited for a daemon
/// - `latency`: mean time from a call to its answer, of those answered
/// - `failures`: decisions of its arm that the native rule had to make for the module
///
/// Shares and means of a user without calls are `None`.
pub fn rpc(error_kinds: &[&str]) -> Vec<MeasuredOutcome> {
    let mut outcomes = vec![
        MeasuredOutcome { name: Cow::Borrowed("calls"), measure: OutcomeMeasure::Count, better: Direction::Neither },
        MeasuredOutcome { name: Cow::Borrowed("answered"), measure: OutcomeMeasure::Share, better: Direction::Higher },
        MeasuredOutcome::lower("waiting", OutcomeMeasure::Milliseconds),
        MeasuredOutcome::lower("latency", OutcomeMeasure::Milliseconds),
        MeasuredOutcome::lower("failures", OutcomeMeasure::Count),
    ];
    outcomes.extend(error_kinds.iter().map(|kind| MeasuredOutcome {
        name: Cow::Owned(format!("error {kind}")),
        measure: OutcomeMeasure::Share,
        better: Direction::Lower,
    }));
    outcomes
}
