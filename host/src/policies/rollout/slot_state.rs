//! Holds what a replica knows of the rollout in one slot.

use std::collections::{BTreeMap, BTreeSet};

use pointwork_core::rollout::{Digest, Document, Follower, ReplicaReport, Uid};
use pointwork_policy::{SlotName, SlotStatus};

use super::store::Reports;
use crate::policies::PolicyModule;
use crate::policies::slots::PreparedPolicy;

pub(super) struct SlotRolloutState {
    pub(super) follower: Follower,
    /// Prepared policies that will serve or be discarded.
    pub(super) prepared: BTreeMap<Digest, PreparedPolicy>,
    /// The modules that serve, have served, or are pushed. They are stored again when Redis has lost them.
    pub(super) modules: BTreeMap<Digest, PolicyModule>,
    /// The cluster as it was last read.
    pub(super) cluster: Option<ClusterView>,
    /// The store's clock when it was last read, in milliseconds since the Unix epoch.
    pub(super) now_ms: u64,
    /// Why the document cannot be read.
    pub(super) problem: Option<String>,
}

/// A slot in the cluster, as it was read.
#[derive(Clone, Default)]
pub(super) struct ClusterView {
    pub(super) document: Document,
    pub(super) reports: Reports,
    pub(super) live: BTreeSet<Uid>,
}

impl SlotRolloutState {
    pub(super) fn new(me: Uid, timeout_ms: u64) -> Self {
        Self {
            follower: Follower::new(me, timeout_ms),
            prepared: BTreeMap::new(),
            modules: BTreeMap::new(),
            cluster: None,
            now_ms: 0,
            problem: None,
        }
    }

    /// Tells the machine which generation serves, and which ones the engine's breaker has quarantined.
    pub(super) fn update(&mut self, status: &SlotStatus) {
        let serving = status.digest.map(|digest| Digest::from(digest.to_string()));
        self.follower.serves(serving, status.generation);
        for quarantined in &status.quarantined {
            let digest = quarantined.digest.to_string();
            if !self.follower.knows_quarantined(&digest) {
                self.prepared.remove(digest.as_str());
                self.follower.tripped(digest.into(), quarantined.why.clone());
            }
        }
    }

    pub(super) fn report(&mut self, status: &SlotStatus) -> ReplicaReport {
        self.update(status);
        self.follower.report()
    }

    /// The same report as [`SlotRolloutState::report`], without a change of the machine. The machine must learn of quarantined
    /// digests only between its steps; otherwise a digest that it frees goes back into quarantine.
    pub(super) fn peek_report(&self, status: &SlotStatus) -> ReplicaReport {
        let serving = status.digest.map(|digest| Digest::from(digest.to_string()));
        ReplicaReport { serving, generation: status.generation, ..self.follower.report() }
    }

    /// Drops the modules that are no longer needed.
    pub(super) fn prune(&mut self) {
        let wanted = self.follower.wanted();
        let unwanted: BTreeSet<_> = self.modules.keys().filter(|digest| !wanted.contains(*digest)).cloned().collect();
        self.modules.retain(|digest, _| !unwanted.contains(digest));
        self.follower.forget(&unwanted);
    }

    /// Why this replica is not ready.
    pub(super) fn missing(&self, slot: SlotName) -> Option<String> {
        if self.follower.was_in_step() {
            return None;
        }
        if let Some(problem) = &self.problem {
            return Some(format!("policy {slot}: {problem}"));
        }
        let Some(cluster) = &self.cluster else {
            return Some("policy: what serves in the cluster was not read yet".to_owned());
        };
        let current = cluster.document.current.as_deref().unwrap_or("the native rule");
        if self.follower.is_in_step() {
            return Some(format!("policy {slot}: the other replicas have not said yet what they serve"));
        }
        let error = self.follower.report().error.filter(|error| &*error.digest == current);
        Some(match error {
            Some(error) => format!("policy {slot}: {current} cannot be prepared: {}: {}", error.kind, error.message),
            None => format!("policy {slot}: {current} is being prepared"),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use pointwork_core::rollout::{RolloutStep, RolloutView};

    use super::*;
    use crate::config::{PolicyConfig, RpcConfig};
    use crate::policies::slots::Policies;

    #[test]
    fn a_status_request_does_not_change_the_machine() {
        let slot = SlotName::Target;
        let policies = Policies::new(&PolicyConfig::default(), &RpcConfig::default()).unwrap();
        policies.quarantine(slot, pointwork_policy::Digest::of_generation(b"bad", "{}"), "traps");
        let mut state = SlotRolloutState::new("me".into(), 1_000);
        assert_eq!(state.peek_report(&policies.slot_status(slot)), ReplicaReport::default());
        assert_eq!(
            state.follower.step(&RolloutView::default()),
            None,
            "the digest was quarantined before, and may be freed soon"
        );
        state.update(&policies.slot_status(slot));
        assert!(matches!(state.follower.step(&RolloutView::default()), Some(RolloutStep::Write(_))));
    }
}
