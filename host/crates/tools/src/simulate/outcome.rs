//! What is measured in a world, by slot.

use pointwork_simulation::{ERRORS, RpcOutcomes, SettleOutcomes};

/// An outcome: one number a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Its name, in the report and in JSON.
    pub(super) name: &'static str,
    /// Of what.
    pub(super) unit: &'static str,
    /// Whether less of it is better, or more.
    pub(super) is_less_better: bool,
    /// Digits after the point in the report.
    pub(super) digits: usize,
}

const fn less(name: &'static str, unit: &'static str, digits: usize) -> Outcome {
    Outcome { name, unit, is_less_better: true, digits }
}

/// Those of `settle`, each per device.
pub(super) const SETTLE: &[Outcome] = &[
    less("flips", "flips a device", 2),
    less("stable", "ms to one stable socket", 0),
    less("refused", "registers a device", 2),
    less("stranded", "s a device", 3),
    less("unserved", "s a device", 3),
    less("offline", "s a device", 3),
];

/// Those of the other slots, each over the calls of a world.
pub(super) const RPC: &[Outcome] = &[
    Outcome { name: "answered", unit: "% of the calls", is_less_better: false, digits: 2 },
    less("aborted-wrongly", "% of the calls", 2),
    less("waited", "ms for a daemon", 1),
    less("latency", "ms, of those answered", 1),
    less("latency-p90", "ms, of those answered", 1),
    less(ERRORS[0], PERCENT, 2),
    less(ERRORS[1], PERCENT, 2),
    less(ERRORS[2], PERCENT, 2),
    less(ERRORS[3], PERCENT, 2),
    less(ERRORS[4], PERCENT, 2),
    less(ERRORS[5], PERCENT, 2),
    less(ERRORS[6], PERCENT, 2),
    less(ERRORS[7], PERCENT, 2),
];

const PERCENT: &str = "% of the calls";

/// In the order of [`RPC`].
pub(super) fn of_rpc(outcomes: &RpcOutcomes) -> Vec<Option<f64>> {
    let RpcOutcomes { answered, aborted_wrongly, waited_ms, latency_ms, latency_p90_ms, errors, .. } = *outcomes;
    let first = [Some(answered), Some(aborted_wrongly), Some(waited_ms), latency_ms, latency_p90_ms];
    first.into_iter().chain(errors.map(Some)).collect()
}

/// In the order of [`SETTLE`].
pub(super) fn of_settle(outcomes: &SettleOutcomes) -> Vec<Option<f64>> {
    let SettleOutcomes { flips, stable_ms, refused, stranded_s, unserved_s, offline_s } = *outcomes;
    [flips, stable_ms, refused, stranded_s, unserved_s, offline_s].map(Some).to_vec()
}
