//! What became of each device that was exposed to the experiment, counted a second time: from what the store was made to hold
//! and what is true of the sockets, by the clock of the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::devices::{DeviceRecord, Status};
use pointwork_core::experiments::{Arm, Experiment, Guardrails, Module, Outcomes, Slot, Trial};

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
        status: pointwork_core::experiments::Status::Running,
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

impl Counted {
    fn written(&mut self, trial: &Trial, old: &DeviceRecord, new: &DeviceRecord, is_alive: bool, now_ms: u64) {
        if self.exposed_ms != trial.exposed_ms {
            let offline_since_ms = (old.status == Status::Offline).then_some(trial.exposed_ms);
            let (exposed_ms, ends_ms) = (trial.exposed_ms, trial.ends_ms());
            *self = Counted { exposed_ms, ends_ms, offline_since_ms, ..Counted::default() };
        }
        let decided_ms = new.events.first().map_or(0, |event| event.at_ms);
        if decided_ms < self.ends_ms {
            self.refused += u32::from(new.refusals > old.refusals);
            self.evictions += u32::from(new.flips > old.flips);
            self.flips += u32::from(new.flips > old.flips && is_alive);
        }
        let by_ms = now_ms.min(self.ends_ms);
        match (old.status == Status::Offline, new.status == Status::Offline) {
            (true, false) => {
                let since_ms = self.offline_since_ms.take().unwrap_or(by_ms);
                self.offline_ms += by_ms.saturating_sub(since_ms);
                self.status_changes += 1;
            }
            (false, true) if now_ms < self.ends_ms => {
                self.offline_since_ms = Some(now_ms);
                self.status_changes += 1;
            }
            _ => {}
        }
    }

    fn check(
        &mut self,
        device: &Arc<str>,
        trial: &Trial,
        half_open_ms: u64,
        is_calm: bool,
        now_ms: u64,
    ) -> Option<Outcomes> {
        if self.exposed_ms != trial.exposed_ms {
            return None;
        }
        let found = trial.outcomes(now_ms);
        assert!(found.failures <= found.decisions && found.decisions > 0, "{device}: {found:?}");
        assert_eq!(found.refused, self.refused, "refused: {device}: {self:?}");
        let flips = self.flips..=self.evictions;
        assert!(flips.contains(&found.flips), "flips: {device}: {found:?} {self:?}");
        let stranded_max_ms = if half_open_ms > 0 { half_open_ms + BLUR_MS } else { 0 };
        assert!(found.stranded_ms <= stranded_max_ms, "stranded: {device}: {found:?} of {half_open_ms}");
        let by_ms = now_ms.min(self.ends_ms);
        let lasts_ms = self.offline_since_ms.map_or(0, |since_ms| by_ms.saturating_sub(since_ms));
        let off_ms = found.offline_ms.abs_diff(self.offline_ms + lasts_ms);
        let blur_ms = BLUR_MS * (1 + self.status_changes);
        assert!(!is_calm || off_ms <= blur_ms, "offline: {device}: {found:?} {self:?} at {now_ms}");
        if now_ms < self.ends_ms + LATE_MS {
            return None;
        }
        match &self.frozen {
            Some(frozen) => {
                assert_eq!(found, *frozen, "{device}: it changed after the horizon: {trial:?}");
                None
            }
            None => {
                self.frozen = Some(found);
                Some(found)
            }
        }
    }
}

#[derive(Default)]
pub(crate) struct Ledger {
    counted: BTreeMap<Arc<str>, Counted>,
    /// Of the exposures that are only a guardrail's.
    guarded: BTreeMap<Arc<str>, Counted>,
    /// How often a device's client died half-open, and for how long in all.
    pub(crate) half_open_ms: BTreeMap<Arc<str>, u64>,
}

impl Ledger {
    /// The store took a record. `is_alive`: the client of the holder that there was is there.
    pub(crate) fn written(
        &mut self,
        device: &Arc<str>,
        old: &DeviceRecord,
        new: &DeviceRecord,
        is_alive: bool,
        now_ms: u64,
    ) {
        let Some(trial) = &new.trial else { return };
        self.counted.entry(device.clone()).or_default().written(trial, old, new, is_alive, now_ms);
        match &trial.guard {
            Some(guard) => {
                self.guarded.entry(device.clone()).or_default().written(guard, old, new, is_alive, now_ms);
            }
            None => _ = self.guarded.remove(device),
        }
    }

    /// After every step. `is_calm`: the store never was in trouble. Gives the outcomes when they have just become final.
    pub(crate) fn check(
        &mut self,
        device: &Arc<str>,
        record: &DeviceRecord,
        is_calm: bool,
        now_ms: u64,
    ) -> Option<Outcomes> {
        let trial = record.trial.as_ref()?;
        let half_open_ms = self.half_open_ms.get(device).copied().unwrap_or_default();
        if let (Some(guard), Some(guarded)) = (&trial.guard, self.guarded.get_mut(device)) {
            assert!(guard.guard.is_none() && guard.exposed_ms > trial.exposed_ms, "{device}: {trial:?}");
            guarded.check(device, guard, half_open_ms, is_calm, now_ms);
        }
        self.counted.get_mut(device)?.check(device, trial, half_open_ms, is_calm, now_ms)
    }
}
