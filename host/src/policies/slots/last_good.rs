//! Keeps the last good policies, the quarantine and the undone digests over a restart, in `policy.state_dir`.

use std::{
    sync::{Arc, Weak},
    thread,
};

use pointwork_policy::{Digest, LoadReport, SlotName, Standing};
use tokio::sync::broadcast::error::RecvError;

use super::{
    state::{Policies, with_policy},
    state_dir::SlotStateDir,
};

impl Policies {
    /// The first load of a slot. If the module is refused, or an operator undid it, the last good generation that a former process
    /// kept serves, if there is one.
    pub fn load_at_start(&self, slot: SlotName, module: &[u8], config: &str) {
        let digest = Digest::of_generation(module, config);
        let was_undone = self.state_dir(slot).is_some_and(|dir| dir.state().undone.contains(&digest));
        if was_undone && self.load_kept(slot, Standing::Undone).is_some() {
            tracing::info!(%slot, %digest, "policy stays undone: the one before serves");
            return;
        }
        if !self.load(slot, module, config) {
            self.load_last_good(slot);
        }
    }

    /// Makes the last good generation serve a slot that no policy serves. Returns whether there was one.
    pub fn load_last_good(&self, slot: SlotName) -> bool {
        let Some(LoadReport { digest, info, .. }) = self.load_kept(slot, Standing::LastGood) else {
            return false;
        };
        tracing::warn!(%slot, %digest, name = info.name, version = info.version, "the last good policy serves");
        true
    }

    /// Starts a thread that writes each trip to `policy.state_dir`, so that decisions do not wait for a file. It ends with the
    /// policies.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn write_trips_down(self: &Arc<Self>) -> std::io::Result<()> {
        if self.state_dirs.is_none() {
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

    /// Saves the state after a generation may have been quarantined. If no policy serves now, loads one that a former process kept.
    pub(super) fn after_trip(&self, slot: SlotName, served: bool) {
        if served && self.slot_status(slot).digest.is_none() {
            self.load_last_good(slot);
        }
        self.save(slot);
    }

    /// Loads the newest kept generation that is allowed and can be loaded.
    pub(super) fn load_kept(&self, slot: SlotName, standing: Standing) -> Option<LoadReport> {
        let dir = self.state_dir(slot)?;
        if standing == Standing::LastGood && with_policy!(self, slot, |policy| policy.is_taken_away()) {
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
            let loaded = with_policy!(self, slot, |policy| policy.load_as(&module, &config, standing));
            loaded
                .inspect_err(|error| tracing::warn!(%slot, %digest, %error, "a kept policy is not loaded"))
                .ok()
                .filter(|report| report.changed)
        })
    }

    /// The generations that an operator undid and did not load again.
    pub(crate) fn undone(&self, slot: SlotName) -> Vec<Digest> {
        let mut undone = with_policy!(self, slot, |policy| policy.undone());
        undone.extend(self.state_dir(slot).map(|dir| dir.state().undone).unwrap_or_default());
        undone
    }

    /// Whether an operator undid the generation with this digest and did not load it again.
    pub(crate) fn was_undone(&self, slot: SlotName, digest: &str) -> bool {
        self.undone(slot).iter().any(|undone| undone.to_string() == *digest)
    }

    pub(super) fn keep(&self, slot: SlotName, digest: &Digest, module: &[u8], config: &str) {
        if let Some(dir) = self.state_dir(slot) {
            dir.keep(digest, module, config, || self.slot_status(slot));
        }
    }

    pub(super) fn save(&self, slot: SlotName) {
        if let Some(dir) = self.state_dir(slot) {
            let undone = with_policy!(self, slot, |policy| policy.undone());
            dir.save(&undone, || self.slot_status(slot));
        }
    }

    pub(super) fn restore_quarantine(&self) {
        for slot in SlotName::ALL {
            for quarantined in self.state_dir(slot).map(|dir| dir.state().quarantined).unwrap_or_default() {
                with_policy!(self, slot, |policy| policy.restore_quarantine(quarantined));
            }
        }
    }

    fn state_dir(&self, slot: SlotName) -> Option<&SlotStateDir> {
        self.state_dirs.as_ref()?.iter().find(|dir| dir.slot() == slot)
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
