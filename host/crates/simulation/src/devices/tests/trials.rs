//! Counts a second time what became of each device that was exposed to an experiment: from what the store was made to
//! hold and what is true of the sockets, by the clock of the world.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::devices::{DeviceRecord, DeviceStatus};
use pointwork_core::experiments::{Outcomes, Trial};

use crate::devices::audit::DeviceAuditor;
use crate::time::MS;

/// When a horizon is over for all: a write that was decided within it may come so much later.
const LATE_MS: u64 = 12_000;
/// How far the wall clocks of the replicas and the way to the store may shift a moment.
const BLUR_MS: u64 = 1_100;

/// What was counted of one exposure.
#[derive(Debug, Default)]
struct TrialCount {
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

impl TrialCount {
    fn written(&mut self, trial: &Trial, old: &DeviceRecord, new: &DeviceRecord, is_alive: bool, now_ms: u64) {
        if self.exposed_ms != trial.exposed_ms {
            let offline_since_ms = (old.status == DeviceStatus::Offline).then_some(trial.exposed_ms);
            let (exposed_ms, ends_ms) = (trial.exposed_ms, trial.ends_ms());
            *self = TrialCount { exposed_ms, ends_ms, offline_since_ms, ..TrialCount::default() };
        }
        let decided_ms = new.events.first().map_or(0, |event| event.at_ms);
        if decided_ms < self.ends_ms {
            self.refused += u32::from(new.refusals > old.refusals);
            self.evictions += u32::from(new.flips > old.flips);
            self.flips += u32::from(new.flips > old.flips && is_alive);
        }
        let by_ms = now_ms.min(self.ends_ms);
        match (old.status == DeviceStatus::Offline, new.status == DeviceStatus::Offline) {
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

    /// Compares a trial with what was counted. Gives its outcomes when they have just become final.
    fn check(
        &mut self,
        trial: &Trial,
        half_open_ms: u64,
        is_calm: bool,
        now_ms: u64,
    ) -> Result<Option<Outcomes>, String> {
        if self.exposed_ms != trial.exposed_ms {
            return Ok(None);
        }
        let found = trial.outcomes(now_ms);
        let by_ms = now_ms.min(self.ends_ms);
        let lasts_ms = self.offline_since_ms.map_or(0, |since_ms| by_ms.saturating_sub(since_ms));
        let off_ms = found.offline_ms.abs_diff(self.offline_ms + lasts_ms);
        let blur_ms = BLUR_MS * (1 + self.status_changes);
        let stranded_max_ms = if half_open_ms > 0 { half_open_ms + BLUR_MS } else { 0 };
        let checks = [
            (found.failures <= found.decisions && found.decisions > 0, "decisions"),
            (found.refused == self.refused, "refused"),
            ((self.flips..=self.evictions).contains(&found.flips), "flips"),
            (found.stranded_ms <= stranded_max_ms, "stranded"),
            (!is_calm || off_ms <= blur_ms, "offline"),
            (now_ms < self.ends_ms + LATE_MS || self.frozen.is_none_or(|frozen| frozen == found), "after the horizon"),
        ];
        if let Some((_, what)) = checks.into_iter().find(|(holds, _)| !holds) {
            return Err(format!(
                "{what}: the trial says {found:?}, counted are {self:?}, half-open for {half_open_ms} ms"
            ));
        }
        let is_final = now_ms >= self.ends_ms + LATE_MS && self.frozen.is_none();
        Ok(is_final.then(|| *self.frozen.insert(found)))
    }
}

#[derive(Default)]
pub(crate) struct TrialCounts {
    counted: BTreeMap<Arc<str>, TrialCount>,
    /// Of the exposures that are only a guardrail's.
    guarded: BTreeMap<Arc<str>, TrialCount>,
    /// For how long sockets of each device were half-open, in all.
    pub(super) half_open_ms: BTreeMap<Arc<str>, u64>,
}

impl TrialCounts {
    /// The store took a record. `is_alive`: the client of the previous holder is there.
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

    /// Compares a record's trial with what was counted. `is_calm`: the store never was in trouble. Gives the outcomes
    /// when they have just become final.
    ///
    /// # Errors
    /// What differs.
    pub(super) fn check(
        &mut self,
        device: &Arc<str>,
        record: &DeviceRecord,
        is_calm: bool,
        now_ms: u64,
    ) -> Result<Option<Outcomes>, String> {
        let Some(trial) = &record.trial else { return Ok(None) };
        let half_open_ms = self.half_open_ms.get(device).copied().unwrap_or_default();
        if let (Some(guard), Some(guarded)) = (&trial.guard, self.guarded.get_mut(device)) {
            if guard.guard.is_some() || guard.exposed_ms <= trial.exposed_ms {
                return Err(format!("a guard of a guard, or one that is not newer: {trial:?}"));
            }
            guarded.check(guard, half_open_ms, is_calm, now_ms)?;
        }
        let Some(counted) = self.counted.get_mut(device) else { return Ok(None) };
        counted.check(trial, half_open_ms, is_calm, now_ms)
    }
}

impl DeviceAuditor {
    /// A socket of a device is half-open for so long.
    pub(crate) fn count_half_open(&mut self, device: &Arc<str>, span_us: u64) {
        *self.trials.half_open_ms.entry(device.clone()).or_default() += span_us / MS;
    }

    /// After every step: a device's trial counts what was counted beside it.
    pub(crate) fn check_trial(&mut self, device: &Arc<str>, record: &DeviceRecord, now_ms: u64) {
        let is_calm = self.trouble_us.is_none();
        let outcomes = match self.trials.check(device, record, is_calm, now_ms) {
            Ok(outcomes) => outcomes,
            Err(what) => return self.demand(false, "trial-counts", || format!("{device}: {what}")),
        };
        let Some(over) = outcomes else { return };
        let reached = [
            (true, "trial over"),
            (over.flips > 0, "trial with flips"),
            (over.refused > 0, "trial with refusals"),
            (over.failures > 0, "trial with failures"),
            (over.stranded_ms > 0, "trial stranded"),
            (over.offline_ms > 0, "trial offline"),
            (over.is_stable && over.stable_ms > 0, "trial stable"),
        ];
        for (_, what) in reached.into_iter().filter(|(is_reached, _)| *is_reached) {
            self.count(format_args!("{what}"));
        }
    }
}
