//! Lists the outcomes that are measured in a world, by slot.

use pointwork_simulation::{ERRORS, RpcOutcomes, SettleOutcomes};

/// An outcome: a number for each world.
pub(super) struct OutcomeSpec {
    /// The name, in the report and in JSON.
    pub(super) name: &'static str,
    /// The unit of the number.
    pub(super) unit: &'static str,
    /// Whether less is better, or more.
    pub(super) is_less_better: bool,
    /// Decimal places in the report.
    pub(super) digits: usize,
}

const PERCENT: &str = "% of the calls";

fn less(name: &'static str, unit: &'static str, digits: usize) -> OutcomeSpec {
    OutcomeSpec { name, unit, is_less_better: true, digits }
}

/// The outcomes of `settle`, each for a device.
pub(super) fn settle_specs() -> Vec<OutcomeSpec> {
    vec![
        less("flips", "flips a device", 2),
        less("stable", "ms to one stable socket", 0),
        less("refused", "registers a device", 2),
        less("stranded", "s a device", 3),
        less("unserved", "s a device", 3),
        less("offline", "s a device", 3),
    ]
}

/// The values in the order of [`settle_specs`].
pub(super) fn settle_values(outcomes: &SettleOutcomes) -> Vec<Option<f64>> {
    let SettleOutcomes { flips, stable_ms, refused, stranded_s, unserved_s, offline_s } = *outcomes;
    [flips, stable_ms, refused, stranded_s, unserved_s, offline_s].map(Some).to_vec()
}

/// The outcomes of the other slots, each over the calls of a world.
pub(super) fn rpc_specs() -> Vec<OutcomeSpec> {
    let specs = [
        OutcomeSpec { name: "answered", unit: PERCENT, is_less_better: false, digits: 2 },
        less("aborted-wrongly", PERCENT, 2),
        less("waited", "ms for a daemon", 1),
        less("latency", "ms, of those answered", 1),
        less("latency-p90", "ms, of those answered", 1),
    ];
    specs.into_iter().chain(ERRORS.map(|error| less(error, PERCENT, 2))).collect()
}

/// The values in the order of [`rpc_specs`].
pub(super) fn rpc_values(outcomes: &RpcOutcomes) -> Vec<Option<f64>> {
    let RpcOutcomes { answered, aborted_wrongly, waited_ms, latency_ms, latency_p90_ms, errors, .. } = *outcomes;
    let values = [Some(answered), Some(aborted_wrongly), Some(waited_ms), latency_ms, latency_p90_ms];
    values.into_iter().chain(errors.map(Some)).collect()
}
