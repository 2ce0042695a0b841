//! Over a restart: the last good policies, the quarantine and what was undone, in `policy.state_dir`.

use std::{
    sync::{Arc, Weak},
    thread,
};

use pointwork_policy::{Digest, LoadReport, SlotName, Standing};
use tokio::sync::broadcast::error::RecvError;

use super::{Policies, change::each, state_dir::StateDir};

impl Policies {
    /// The first load of a slot. What is refused, or was undone by the operator, does not serve: the last good generation does
    /// that a former process kept, if there is one.
    pub fn load_at_start(&self, slot: SlotName, module: &[u8], config: &str) {
        let digest = Digest::of_generation(module, config);
        let was_undone = self.state_of(slot).is_some_and(|state| state.state().undone.contains(&digest));
        if was_undone && self.load_kept(slot, Standing::Undone).is_some() {
            tracing::info!(%slot, %digest, "policy stays undone: the one before serves");
            return;
        }
        if !self.load(slot, module, config) {
            self.load_last_good(slot);
        }
    }

    /// Has the last good generation serve a slot that nothing serves; whether there was one.
    pub fn load_last_good(&self, slot: SlotName) -> bool {
        let Some(LoadReport { digest, info, .. }) = self.load_kept(slot, Standing::LastGood) else {
            return false;
        };
        tracing::warn!(%slot, %digest, name = info.name, version = info.version, "the last good policy serves");
        true
    }

    /// Writes down each trip, on a thread of its own: a decision waits for no file. Ends with the policies.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn write_trips_down(self: &Arc<Self>) -> std::io::Result<()> {
        if self.state.is_none() {
            return Ok(());
        }
        let (mut trips, policies) = (self.trips(), Arc::downgrade(self));
        let next = move || match trips.blocking_recv() {
            Ok(trip) => Some(if trip.arm.is_none() { vec![trip.slot] } else { Vec::new() }),
            Err(RecvError::Lagged(_)) => Some(SlotName::ALL.to_vec()),
            Err(RecvError::Closed) => None,
        };
        thread::Builder::new().name("policy-state".into()).spawn(move || write_down(next, &policies))?;
        Ok(())
    }

    /// What served may have been quarantined: if nothing serves now, a generation of a former process may.
    pub(super) fn after_trip(&self, slot: SlotName, served: bool) {
        if served && self.slot_status(slot).digest.is_none() {
            self.load_last_good(slot);
        }
        self.save(slot);
    }

    /// The newest good one of those kept that is allowed and can be loaded.
    pub(super) fn load_kept(&self, slot: SlotName, standing: Standing) -> Option<LoadReport> {
        let dir = self.state_of(slot)?;
        if standing == Standing::LastGood && each!(self, slot, |policy| policy.is_taken_away()) {
            return None;
        }
        let status = self.slot_status(slot);
        let undone = self.undone(slot);
        let is_allowed = |digest: &Digest| {
            status.digest != Some(*digest)
                && !undone.contains(digest)
                && !status.quarantined.iter().any(|quarantined| quarantined.digest == *digest)
        };
        dir.state().good.iter().filter(|digest| is_allowed(digest)).find_map(|digest| {
            let (module, config) = dir.read(digest)?;
            let loaded = each!(self, slot, |policy| policy.load_as(&module, &config, standing));
            loaded
                .inspect_err(|error| tracing::warn!(%slot, %digest, %error, "a kept policy is not loaded"))
                .ok()
                .filter(|report| report.changed)
        })
    }

    /// What the operator went back from, and did not load again.
    pub(crate) fn undone(&self, slot: SlotName) -> Vec<Digest> {
        let mut undone = each!(self, slot, |policy| policy.undone());
        undone.extend(self.state_of(slot).map(|dir| dir.state().undone).unwrap_or_default());
        undone
    }

    /// Whether an operator went back from the generation with this digest and did not load it again.
    pub(crate) fn was_undone(&self, slot: SlotName, digest: &str) -> bool {
        self.undone(slot).iter().any(|undone| undone.to_string() == *digest)
    }

    pub(super) fn keep(&self, slot: SlotName, digest: &Digest, module: &[u8], config: &str) {
        if let Some(dir) = self.state_of(slot) {
            dir.keep(digest, module, config, || self.slot_status(slot));
        }
    }

    pub(super) fn save(&self, slot: SlotName) {
        if let Some(dir) = self.state_of(slot) {
            let undone = each!(self, slot, |policy| policy.undone());
            dir.save(&undone, || self.slot_status(slot));
        }
    }

    pub(super) fn restore_quarantine(&self) {
        for slot in SlotName::ALL {
            for quarantined in self.state_of(slot).map(|dir| dir.state().quarantined).unwrap_or_default() {
                each!(self, slot, |policy| policy.restore_quarantine(quarantined));
            }
        }
    }

    fn state_of(&self, slot: SlotName) -> Option<&StateDir> {
        self.state.as_ref()?.iter().find(|dir| dir.slot() == slot)
    }
}

fn write_down(mut next: impl FnMut() -> Option<Vec<SlotName>>, policies: &Weak<Policies>) {
    while let Some(slots) = next()
        && let Some(policies) = policies.upgrade()
    {
        for slot in slots {
            policies.after_trip(slot, true);
        }
    }
}
