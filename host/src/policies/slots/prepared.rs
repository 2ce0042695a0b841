//! Prepares policies, and makes a prepared policy serve its slot or an arm of an experiment.

use std::sync::Arc;

use pointwork_policy::{ArmError, Digest, LoadError, LoadReport, Prepared, SlotName, contract::Info};

use super::{
    change::{note_refused, note_switched},
    shadow::ExperimentSlot,
    state::{Policies, with_policy},
};

/// A policy that can serve its slot at once.
pub struct PreparedPolicy {
    prepared: Box<dyn AnyPrepared>,
    slot: SlotName,
    digest: Digest,
    info: Info,
    /// Module and configuration, when they are to be kept for a restart.
    source: Option<(Vec<u8>, String)>,
}

/// A prepared policy of any slot.
trait AnyPrepared: Send {
    fn switch(self: Box<Self>, policies: &Policies) -> Result<LoadReport, LoadError>;
    fn set_arm(self: Box<Self>, policies: &Policies, arm: Arc<str>) -> Result<(), ArmError>;
}

impl<S: ExperimentSlot> AnyPrepared for Prepared<S> {
    fn switch(self: Box<Self>, policies: &Policies) -> Result<LoadReport, LoadError> {
        let (policy, digest) = (S::policy(policies), self.digest());
        let switched = policy.switch(*self);
        policy.note_load(digest, switched.as_ref().err());
        switched
    }

    fn set_arm(self: Box<Self>, policies: &Policies, arm: Arc<str>) -> Result<(), ArmError> {
        S::policy(policies).set_arm(arm, *self)
    }
}

impl PreparedPolicy {
    /// Digest of module, configuration and contract.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The policy's name and version, as it says itself.
    pub fn info(&self) -> &Info {
        &self.info
    }
}

impl Policies {
    /// Does all of a load but the switch. Compiles the module: do not call it on an async worker.
    ///
    /// # Errors
    /// The same as those of a load. They are neither logged nor counted.
    pub fn prepare(&self, slot: SlotName, module: &[u8], config: &str) -> Result<PreparedPolicy, LoadError> {
        let source = self.state_dirs.is_some().then(|| (module.to_vec(), config.to_owned()));
        with_policy!(self, slot, |policy| {
            let prepared = policy.prepare(module, config)?;
            let (digest, info) = (prepared.digest(), prepared.info().clone());
            Ok(PreparedPolicy { prepared: Box::new(prepared), slot, digest, info, source })
        })
    }

    /// Makes a prepared policy serve its slot. Writes to `policy.state_dir`: do not call it on an async worker.
    ///
    /// # Errors
    /// When its digest was quarantined since it was prepared.
    pub fn switch(&self, policy: PreparedPolicy) -> Result<LoadReport, LoadError> {
        let PreparedPolicy { prepared, slot, digest, source, .. } = policy;
        let switched = prepared.switch(self);
        match &switched {
            Ok(report) => {
                note_switched(slot, report);
                if let Some((module, config)) = source {
                    self.keep(slot, &digest, &module, &config);
                }
            }
            Err(error) => note_refused(slot, error),
        }
        switched
    }

    /// Makes a prepared policy answer for an arm, beside the policy that serves the slot.
    ///
    /// # Errors
    /// When the slot has too many arms.
    pub fn set_arm(&self, arm: Arc<str>, policy: PreparedPolicy) -> Result<(), ArmError> {
        policy.prepared.set_arm(self, arm)
    }

    /// Removes an arm. Returns whether it was there.
    pub fn clear_arm(&self, slot: SlotName, arm: &str) -> bool {
        with_policy!(self, slot, |policy| policy.clear_arm(arm))
    }
}
