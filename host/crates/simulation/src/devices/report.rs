//! Defines the outcomes of a world of devices.

use crate::violation::Violation;

/// What came of one world. Each outcome is the mean over its devices; of all, less is better.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SettleOutcomes {
    /// How often the session went to another socket while the one that had it was alive.
    pub flips: f64,
    /// From the first open of a burst (opens less than a settle window apart) until a living socket has the session
    /// that keeps it for a whole window, in milliseconds; the mean over the device's bursts. A burst that has not come
    /// to that by the end counts to the end.
    pub stable_ms: f64,
    /// Registers refused, by `settle` or a limiter.
    pub refused: f64,
    /// Seconds in which the device had an open socket that wanted the session, and no living one had it.
    pub stranded_s: f64,
    /// Seconds since its first open in which no living socket had the session, whether or not one was open: what the
    /// device truly missed.
    pub unserved_s: f64,
    /// Seconds since it was first online in which dashboards showed it offline.
    pub offline_s: f64,
}

/// One world, played to its end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SettleReport {
    /// What it was like for its devices.
    pub outcomes: SettleOutcomes,
    /// How often `settle` was asked.
    pub questions: u64,
    /// The first invariant that did not hold.
    pub broken: Option<Violation>,
}
