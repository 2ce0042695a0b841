//! What a replica holds of one slot.

use std::collections::{BTreeMap, BTreeSet};

use pointwork_core::rollout::{Digest, Document, Follower, Report, Uid};
use pointwork_policy::{SlotName, SlotStatus};

use super::store::{Module, Reports};
use crate::policies::slots::PreparedPolicy;

pub(super) struct Place {
    pub(super) follower: Follower,
    /// Prepared, and waiting to serve or to be discarded.
    pub(super) held: BTreeMap<Digest, PreparedPolicy>,
    /// The bytes of what serves, served and is pushed: an emptied Redis gets them back.
    pub(super) modules: BTreeMap<Digest, Module>,
    /// What was last seen of the cluster.
    pub(super) shown: Option<Shown>,
    /// The store's clock at the last look, in milliseconds since the Unix epoch.
    pub(super) now_ms: u64,
    /// Why the document cannot be read.
    pub(super) trouble: Option<String>,
}

/// What was seen of the cluster.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) document: Document,
    pub(super) reports: Reports,
    pub(super) live: BTreeSet<Uid>,
}

impl Place {
    pub(super) fn new(me: Uid, timeout_ms: u64) -> Self {
        Self {
            follower: Follower::new(me, timeout_ms),
            held: BTreeMap::new(),
            modules: BTreeMap::new(),
            shown: None,
            now_ms: 0,
            trouble: None,
        }
    }

    /// Brings the machine what the engine says: what serves, and what its breaker took back.
    pub(super) fn update(&mut self, status: &SlotStatus) {
        let serving = status.digest.map(|digest| Digest::from(digest.to_string()));
        self.follower.serves(serving, status.generation);
        for quarantined in &status.quarantined {
            let digest = quarantined.digest.to_string();
            if !self.follower.knows_quarantined(&digest) {
                self.held.remove(digest.as_str());
                self.follower.tripped(digest.into(), quarantined.why.clone());
            }
        }
    }

    pub(super) fn report(&mut self, status: &SlotStatus) -> Report {
        self.update(status);
        self.follower.report()
    }

    /// What [`Place::report`] would give, for whoever looks on: what the breaker took back is news for the machine between its
    /// steps alone, or a digest that is freed there goes back into quarantine.
    pub(super) fn shown_report(&self, status: &SlotStatus) -> Report {
        let serving = status.digest.map(|digest| Digest::from(digest.to_string()));
        Report { serving, generation: status.generation, ..self.follower.report() }
    }

    /// Drops the bytes that nobody will want.
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
        if let Some(trouble) = &self.trouble {
            return Some(format!("policy {slot}: {trouble}"));
        }
        let Some(shown) = &self.shown else {
            return Some("policy: what serves in the cluster was not read yet".to_owned());
        };
        let current = shown.document.current.as_deref().unwrap_or("the native rule");
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
    use pointwork_core::rollout::{Seen, Step};

    use super::*;
    use crate::config::{PolicyConfig, RpcConfig};
    use crate::policies::slots::Policies;

    #[test]
    fn a_look_brings_the_machine_nothing() {
        let slot = SlotName::Target;
        let policies = Policies::new(&PolicyConfig::default(), &RpcConfig::default()).unwrap();
        policies.quarantine(slot, pointwork_policy::Digest::of_generation(b"bad", "{}"), "traps");
        let mut place = Place::new("me".into(), 1_000);
        assert_eq!(place.shown_report(&policies.slot_status(slot)), Report::default());
        assert_eq!(place.follower.step(&Seen::default()), None, "it was in quarantine, and may be about to be freed");
        place.update(&policies.slot_status(slot));
        assert!(matches!(place.follower.step(&Seen::default()), Some(Step::Write(_))));
    }
}
