//! Holds the state of the rollouts of all slots.

use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool, mpsc};
use std::time::Duration;

use pointwork_core::rollout::{Digest, ReplicaReport, Uid};
use pointwork_policy::SlotName;
use tokio::sync::Notify;

use super::slot_state::SlotRolloutState;
use super::store::RolloutStore;
use crate::cluster::Replicas;
use crate::config::PolicySource;
use crate::policies::PolicyModule;
use crate::policies::slots::Policies;

/// How long a replica that leaves waits for Redis.
const LEAVE_MAX: Duration = Duration::from_millis(500);

/// The rollouts of all slots; `None` where the policy directory says what serves.
#[derive(Clone)]
pub struct Rollouts(pub(super) Option<Arc<RolloutState>>);

pub(super) struct RolloutState {
    pub(super) me: Uid,
    pub(super) store: RolloutStore,
    pub(super) policies: Arc<Policies>,
    pub(super) replicas: Arc<Replicas>,
    /// In the order of [`SlotName::ALL`].
    pub(super) slots: [Mutex<SlotRolloutState>; SlotName::ALL.len()],
    pub(super) jobs: mpsc::Sender<PrepareJob>,
    /// Notified when the store should be read at once.
    pub(super) news: Arc<Notify>,
    /// The reports that were last announced to the other replicas.
    pub(super) announced: Mutex<Vec<(SlotName, ReplicaReport)>>,
    /// Whether Redis did not answer the last time.
    pub(super) is_away: AtomicBool,
    /// Whether Redis was read once. Before that it is not connected yet, and the connection logs when it stays away.
    pub(super) was_read: AtomicBool,
}

/// A policy to prepare. There is at most one of each slot.
pub(super) struct PrepareJob {
    pub(super) slot: SlotName,
    pub(super) digest: Digest,
    pub(super) module: PolicyModule,
}

impl Rollouts {
    /// Whether the cluster or the policy directory says what serves.
    #[must_use]
    pub fn source(&self) -> PolicySource {
        if self.0.is_some() { PolicySource::Cluster } else { PolicySource::Directory }
    }

    /// Why this replica does not yet serve what the cluster serves; `None` once it has.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let state = self.0.as_ref()?;
        SlotName::ALL.into_iter().find_map(|slot| state.slot(slot).lock().missing(slot))
    }

    /// Whether this replica cannot prepare or serve a policy of the cluster.
    pub(crate) fn is_refused(&self, slot: SlotName) -> bool {
        self.0.as_ref().is_some_and(|state| state.slot(slot).lock().follower.report().error.is_some())
    }

    /// Tells the other replicas that this one leaves.
    pub async fn leave(&self) {
        let Some(state) = &self.0 else { return };
        if !matches!(tokio::time::timeout(LEAVE_MAX, state.store.leave(&state.me)).await, Ok(Ok(()))) {
            tracing::debug!("what this replica reported of policies stays in Redis for a while");
        }
    }
}

impl RolloutState {
    pub(super) fn slot(&self, slot: SlotName) -> &Mutex<SlotRolloutState> {
        let at = SlotName::ALL.iter().position(|known| *known == slot).unwrap_or(0);
        &self.slots[at]
    }
}
