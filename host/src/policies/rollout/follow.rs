//! Reads what the replicas share each second, and at once when there is news, and takes the steps that the machine decides.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pointwork_core::rollout::{RolloutView, Uid};
use pointwork_policy::{Digest as EngineDigest, SlotName, Trip};
use tokio::sync::{Notify, broadcast};
use tokio::time::sleep;

use super::slot_state::ClusterView;
use super::state::RolloutState;
use super::steps::AfterStep;
use super::store::{StoredDocument, StoredSlot};

/// How often the store is read without news.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// How often the store is read again at once after steps. Then other tasks get a turn.
const READS_MAX: usize = 16;
/// The most steps after one read.
const STEPS_MAX: usize = 64;

/// What one read says of the cluster, for all slots.
struct ClusterState {
    now_ms: u64,
    live: BTreeSet<Uid>,
    is_complete: bool,
}

/// Starts to follow. The task ends with the rollouts.
pub(super) fn start(state: &Arc<RolloutState>) {
    tokio::spawn(run(Arc::downgrade(state), state.news.clone(), state.policies.trips()));
}

async fn run(state: Weak<RolloutState>, news: Arc<Notify>, mut trips: broadcast::Receiver<Trip>) {
    loop {
        let Some(state) = state.upgrade() else { return };
        for _ in 0..READS_MAX {
            if !state.read_all().await {
                break;
            }
        }
        drop(state);
        tokio::select! {
            () = news.notified() => {}
            // The engine's status says which generation has tripped.
            _ = trips.recv() => {}
            () = sleep(READ_INTERVAL) => {}
        }
    }
}

impl RolloutState {
    /// Reads all slots and takes their steps. Returns whether to read again at once.
    async fn read_all(self: &Arc<Self>) -> bool {
        let statuses = self.policies.status();
        let reports: Vec<_> =
            statuses.iter().map(|status| (status.slot, self.slot(status.slot).lock().report(status))).collect();
        let (now_ms, slots) = match self.store.turn(&self.me, &reports).await {
            Ok(read) => read,
            Err(error) => {
                self.note_away(&error);
                return false;
            }
        };
        self.was_read.store(true, Ordering::Relaxed);
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("what the cluster says of policies can be read again");
        }
        let is_news = std::mem::replace(&mut *self.announced.lock(), reports.clone()) != reports;
        if is_news {
            self.replicas.tell_policy_news();
        }
        let cluster = self.replicas.cluster();
        let standing = cluster.standing();
        let live = cluster.peers().into_iter().map(Uid::from).chain([self.me.clone()]).collect();
        let cluster = ClusterState { now_ms, live, is_complete: standing.linked && standing.complete };
        let mut is_due = false;
        for ((slot, _), stored) in reports.iter().zip(slots) {
            is_due |= self.follow(*slot, stored, &cluster).await;
        }
        is_due
    }

    /// Takes the steps of one slot. Returns whether to read again at once.
    async fn follow(self: &Arc<Self>, slot: SlotName, stored: StoredSlot, cluster: &ClusterState) -> bool {
        let read = match stored.stored {
            Ok(read) => read,
            Err(error) => {
                let problem = self.slot(slot).lock().problem.replace(error.to_string());
                if problem.is_none() {
                    tracing::warn!(%slot, %error, "what serves goes on serving");
                }
                return false;
            }
        };
        let ClusterState { now_ms, live, is_complete } = cluster;
        let seen = RolloutView {
            now_ms: *now_ms,
            document: read.document.clone(),
            reports: stored.reports.iter().map(|(uid, (_, report))| (uid.clone(), report.clone())).collect(),
            live: live.clone(),
            is_current_stored: stored.is_serving_stored,
            is_complete: *is_complete,
        };
        {
            let mut of_slot = self.slot(slot).lock();
            of_slot.problem = None;
            of_slot.now_ms = *now_ms;
            let (document, live) = (read.document.clone(), live.clone());
            of_slot.cluster = Some(ClusterView { document, reports: stored.reports, live });
        }
        let is_due = self.take_steps(slot, &read, &seen).await;
        let mut of_slot = self.slot(slot).lock();
        of_slot.prune();
        let is_in_step = of_slot.follower.is_in_step();
        drop(of_slot);
        if is_in_step {
            // The history does not name undone generations, so the breaker cannot go back to one.
            let former = read.document.history.iter().flatten();
            let former: Vec<EngineDigest> = former.filter_map(|digest| digest.parse().ok()).collect();
            self.policies.keep_only(slot, &former);
        }
        is_due
    }

    async fn take_steps(self: &Arc<Self>, slot: SlotName, read: &StoredDocument, seen: &RolloutView) -> bool {
        let mut is_due = false;
        for _ in 0..STEPS_MAX {
            let step = {
                let mut of_slot = self.slot(slot).lock();
                of_slot.update(&self.policies.slot_status(slot));
                of_slot.follower.step(seen)
            };
            let Some(step) = step else { break };
            match self.carry_out(slot, step, read, seen.now_ms).await {
                AfterStep::Step => is_due = true,
                AfterStep::Read => return true,
                AfterStep::Wait => return false,
            }
        }
        is_due
    }
}
