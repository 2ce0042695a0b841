//! What became of each device that was exposed to the experiment, counted a second time: from what the store was made to hold
//! and what is true of the sockets, by the clock of the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::device::{Record, Status};
use pointwork_core::experiment::{Arm, Experiment, Guardrails, Module, Outcomes, Slot};

/// When a horizon is over for all: a write that was decided within it may come so much later.
const LATE_MS: u64 = 12_000;
/// What the wall clocks of the replicas and the way to the store may make of a moment.
const BLUR_MS: u64 = 1_100;

/// The experiment of the simulation: two arms between which it makes no difference.
pub(crate) fn experiment() -> Experiment {
    let arm = |name: &str| Arm { name: name.to_owned(), module: Module::Native };
    Experiment {
        name: "e".to_owned(),
        slot: Slot::Settle,
        salt: "s".to_owned(),
        arms: vec![arm("control"), arm("treatment")],
        weights: vec![5_000, 5_000],
        status: pointwork_core::experiment::Status::Running,
        shadow_only: false,
        horizon_ms: 20_000,
        window_ms: 2_500,
        // A client that lives is heard of every four seconds.
        silence_ms: 6_000,
        guardrails: Guardrails::default(),
        created_ms: 0,
        ended_ms: None,
        version: 1,
    }
}

/// What was counted of one exposure.
#[derive(Debug, Default)]
struct Counted {
    exposed_ms: u64,
    ends_ms: u64,
    refused: u32,
    /// Evictions of a holder that lives.
    flips: u32,
    /// All evictions.
    evictions: u32,
    status_changes: u64,
    offline_ms: u64,
    offline_since_ms: Option<u64>,
    frozen: Option<Outcomes>,
}

#[derive(Default)]
pub(crate) struct Ledger {
    counted: BTreeMap<Arc<str>, Counted>,
    /// How often a device's client died half-open, and for how long in all.
    pub(crate) half_open_ms: BTreeMap<Arc<str>, u64>,
}

impl Ledger {
    /// The store took a record. `is_alive`: the client of the holder that there was is there.
    pub(crate) fn written(&mut self, device: &Arc<str>, old: &Record, new: &Record, is_alive: bool, now_ms: u64) {
        let Some(trial) = &new.trial else { return };
        let counted = self.counted.entry(device.clone()).or_default();
        if counted.exposed_ms != trial.exposed_ms {
            let offline_since_ms = (old.status == Status::Offline).then_some(trial.exposed_ms);
            let (exposed_ms, ends_ms) = (trial.exposed_ms, trial.ends_ms());
            *counted = Counted { exposed_ms, ends_ms, offline_since_ms, ..Counted::default() };
        }
        let decided_ms = new.events.first().map_or(0, |event| event.at_ms);
        if decided_ms < counted.ends_ms {
            counted.refused += u32::from(new.refusals > old.refusals);
            counted.evictions += u32::from(new.flips > old.flips);
            counted.flips += u32::from(new.flips > old.flips && is_alive);
        }
        let by_ms = now_ms.min(counted.ends_ms);
        match (old.status == Status::Offline, new.status == Status::Offline) {
            (true, false) => {
                let since_ms = counted.offline_since_ms.take().unwrap_or(by_ms);
                counted.offline_ms += by_ms.saturating_sub(since_ms);
                counted.status_changes += 1;
            }
            (false, true) if now_ms < counted.ends_ms => {
                counted.offline_since_ms = Some(now_ms);
                counted.status_changes += 1;
            }
            _ => {}
        }
    }

    /// After every step. `is_calm`: the store never was in trouble. Gives the outcomes when they have just become final.
    pub(crate) fn check(&mut self, device: &Arc<str>, record: &Record, is_calm: bool, now_ms: u64) -> Option<Outcomes> {
        let trial = record.trial.as_ref()?;
        let counted = self.counted.get_mut(device).filter(|counted| counted.exposed_ms == trial.exposed_ms)?;
        let found = trial.outcomes(now_ms);
        assert!(found.failures <= found.decisions && found.decisions > 0, "{device}: {found:?}");
        assert_eq!(found.refused, counted.refused, "refused: {device}: {counted:?}");
        let flips = counted.flips..=counted.evictions;
        assert!(flips.contains(&found.flips), "flips: {device}: {found:?} {counted:?}");
        let dead_ms = self.half_open_ms.get(device).copied().unwrap_or_default();
        let stranded_max_ms = if dead_ms > 0 { dead_ms + BLUR_MS } else { 0 };
        assert!(found.stranded_ms <= stranded_max_ms, "stranded: {device}: {found:?} of {dead_ms}");
        let by_ms = now_ms.min(counted.ends_ms);
        let lasts_ms = counted.offline_since_ms.map_or(0, |since_ms| by_ms.saturating_sub(since_ms));
        let off_ms = found.offline_ms.abs_diff(counted.offline_ms + lasts_ms);
        let blur_ms = BLUR_MS * (1 + counted.status_changes);
        assert!(!is_calm || off_ms <= blur_ms, "offline: {device}: {found:?} {counted:?} at {now_ms}");
        if now_ms < counted.ends_ms + LATE_MS {
            return None;
        }
        match &counted.frozen {
            Some(frozen) => {
                assert_eq!(found, *frozen, "{device}: it changed after the horizon: {trial:?}");
                None
            }
            None => {
                counted.frozen = Some(found);
                Some(found)
            }
        }
    }
}
