//! What is measured in a world, by slot.

use pointwork_simulation::SettleOutcomes;

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

/// In the order of [`SETTLE`].
pub(super) fn of_settle(outcomes: &SettleOutcomes) -> Vec<Option<f64>> {
    let SettleOutcomes { flips, stable_ms, refused, stranded_s, unserved_s, offline_s } = *outcomes;
    [flips, stable_ms, refused, stranded_s, unserved_s, offline_s].map(Some).to_vec()
}
