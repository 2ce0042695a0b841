//! Prepares policies, and makes a prepared policy serve its slot or an arm of an experiment.

use std::sync::Arc;

use pointwork_policy::{
    ArmError, Digest, Grace, LoadError, LoadReport, Prepared, Presence, Settle, Slot, SlotName, Target, contract::Info,
};

use super::{
    change::{note_refused, note_switched},
    state::{Policies, with_policy},
};

/// A policy that can serve its slot at once.
pub struct PreparedPolicy {
    prepared: AnyPrepared,
    slot: SlotName,
    digest: Digest,
    info: Info,
    /// Module and configuration, when they are to be kept for a restart.
    source: Option<(Vec<u8>, String)>,
}

enum AnyPrepared {
    Target(Prepared<Target>),
    Grace(Prepared<Grace>),
    Presence(Prepared<Presence>),
    Settle(Prepared<Settle>),
}

/// Evaluates an expression with the policy of a slot and what is prepared for it.
macro_rules! with_prepared {
    ($policies:expr, $prepared:expr, |$policy:ident, $value:ident| $body:expr) => {
        match $prepared {
            AnyPrepared::Target($value) => {
                let $policy = &$policies.target;
                $body
            }
            AnyPrepared::Grace($value) => {
                let $policy = &$policies.grace;
                $body
            }
            AnyPrepared::Presence($value) => {
                let $policy = &$policies.presence;
                $body
            }
            AnyPrepared::Settle($value) => {
                let $policy = &$policies.settle;
                $body
            }
        }
    };
}

impl PreparedPolicy {
    fn new<S: Slot>(
        prepared: Prepared<S>,
        wrap: fn(Prepared<S>) -> AnyPrepared,
        source: Option<(Vec<u8>, String)>,
    ) -> Self {
        let (digest, info) = (prepared.digest(), prepared.info().clone());
        Self { prepared: wrap(prepared), slot: S::NAME, digest, info, source }
    }

    /// The slot that it is for.
    pub fn slot(&self) -> SlotName {
        self.slot
    }

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
        Ok(match slot {
            SlotName::Target => PreparedPolicy::new(self.target.prepare(module, config)?, AnyPrepared::Target, source),
            SlotName::Grace => PreparedPolicy::new(self.grace.prepare(module, config)?, AnyPrepared::Grace, source),
            SlotName::Presence => {
                PreparedPolicy::new(self.presence.prepare(module, config)?, AnyPrepared::Presence, source)
            }
            SlotName::Settle => PreparedPolicy::new(self.settle.prepare(module, config)?, AnyPrepared::Settle, source),
        })
    }

    /// Makes a prepared policy serve its slot. Writes to `policy.state_dir`: do not call it on an async worker.
    ///
    /// # Errors
    /// When its digest was quarantined since it was prepared.
    pub fn switch(&self, policy: PreparedPolicy) -> Result<LoadReport, LoadError> {
        let PreparedPolicy { prepared, slot, digest, source, .. } = policy;
        let switched = with_prepared!(self, prepared, |policy, prepared| {
            let switched = policy.switch(prepared);
            policy.note_load(digest, switched.as_ref().err());
            switched
        });
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
        with_prepared!(self, policy.prepared, |policy, prepared| policy.set_arm(arm, prepared))
    }

    /// Removes an arm. Returns whether it was there.
    pub fn clear_arm(&self, slot: SlotName, arm: &str) -> bool {
        with_policy!(self, slot, |policy| policy.clear_arm(arm))
    }
}
