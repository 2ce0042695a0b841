//! Looks at what the replicas share, whenever there is news and once a second, and carries out what the machine says.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pointwork_core::rollout::{Digest, Document, Seen, Step, Uid};
use pointwork_policy::{Digest as EngineDigest, SlotName};
use tokio::sync::{Notify, broadcast};
use tokio::time::sleep;

use super::Shared;
use super::place::Shown;
use super::store::{Looked, Read, StoreError};

/// How often it is looked without news.
const POLL: Duration = Duration::from_secs(1);
/// How often it is looked again at once, because something was done; after that there is time for everything else.
const LOOKS_MAX: usize = 16;
/// Steps that are taken on what was seen once.
const STEPS_MAX: usize = 64;

/// What was seen at one look, of all slots.
struct Look {
    now_ms: u64,
    live: BTreeSet<Uid>,
    is_complete: bool,
}

/// How to go on after a step.
enum Next {
    /// With the next step on what was seen.
    Step,
    /// With another look.
    Look,
    /// When there is news or time has passed.
    Wait,
}

/// Follows until the last of `shared` is gone.
pub(super) fn start(shared: &Arc<Shared>) {
    let (this, news, trips) = (Arc::downgrade(shared), shared.news.clone(), shared.policies.trips());
    tokio::spawn(run(this, news, trips));
}

async fn run(this: Weak<Shared>, news: Arc<Notify>, mut trips: broadcast::Receiver<pointwork_policy::Trip>) {
    loop {
        let Some(shared) = this.upgrade() else { return };
        for _ in 0..LOOKS_MAX {
            if !shared.look().await {
                break;
            }
        }
        drop(shared);
        tokio::select! {
            () = news.notified() => {}
            // Which one it was is told by the engine's status.
            _ = trips.recv() => {}
            () = sleep(POLL) => {}
        }
    }
}

impl Shared {
    /// One look; whether another is due at once.
    async fn look(self: &Arc<Self>) -> bool {
        let statuses = self.policies.status();
        let reports: Vec<_> =
            statuses.iter().map(|status| (status.slot, self.place(status.slot).lock().report(status))).collect();
        let (now_ms, slots) = match self.store.turn(&self.me, &reports).await {
            Ok(seen) => seen,
            Err(error) => {
                self.away(&error);
                return false;
            }
        };
        self.has_looked.store(true, Ordering::Relaxed);
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("what the cluster says of policies can be read again");
        }
        let is_news = std::mem::replace(&mut *self.told.lock(), reports.clone()) != reports;
        if is_news {
            self.replicas.tell_policy_news();
        }
        let cluster = self.replicas.cluster();
        let standing = cluster.standing();
        let live = cluster.peers().into_iter().map(Uid::from).chain([self.me.clone()]).collect();
        let look = Look { now_ms, live, is_complete: standing.linked && standing.complete };
        let mut is_due = false;
        for ((slot, _), looked) in reports.iter().zip(slots) {
            is_due |= self.follow(*slot, looked, &look).await;
        }
        is_due
    }

    /// All that one slot needs; whether another look is due.
    async fn follow(self: &Arc<Self>, slot: SlotName, looked: Looked, look: &Look) -> bool {
        let read = match looked.read {
            Ok(read) => read,
            Err(error) => {
                let trouble = self.place(slot).lock().trouble.replace(error.to_string());
                if trouble.is_none() {
                    tracing::warn!(%slot, %error, "what serves goes on serving");
                }
                return false;
            }
        };
        let seen = Seen {
            now_ms: look.now_ms,
            document: read.document.clone(),
            reports: looked.reports.iter().map(|(uid, (_, report))| (uid.clone(), report.clone())).collect(),
            live: look.live.clone(),
            is_current_stored: looked.is_serving_stored,
            is_complete: look.is_complete,
        };
        {
            let mut place = self.place(slot).lock();
            place.trouble = None;
            place.now_ms = look.now_ms;
            let (document, live) = (read.document.clone(), look.live.clone());
            place.shown = Some(Shown { document, reports: looked.reports, live });
        }
        let mut is_due = false;
        for _ in 0..STEPS_MAX {
            let step = {
                let mut place = self.place(slot).lock();
                place.update(&self.policies.slot_status(slot));
                place.follower.step(&seen)
            };
            let Some(step) = step else { break };
            match self.carry(slot, step, &read, look.now_ms).await {
                Next::Step => is_due = true,
                Next::Look => {
                    is_due = true;
                    break;
                }
                Next::Wait => {
                    is_due = false;
                    break;
                }
            }
        }
        let mut place = self.place(slot).lock();
        place.prune();
        let is_in_step = place.follower.is_in_step();
        drop(place);
        if is_in_step {
            // What an operator went back from is in no history: the breaker must not lead to it.
            let former = read.document.history.iter().flatten();
            let former: Vec<EngineDigest> = former.filter_map(|digest| digest.parse().ok()).collect();
            self.policies.keep_only(slot, &former);
        }
        is_due
    }

    async fn carry(self: &Arc<Self>, slot: SlotName, step: Step, read: &Read, now_ms: u64) -> Next {
        match step {
            Step::Prepare(digest) => self.prepare(slot, digest),
            Step::Switch(digest) => self.switch(slot, &digest, now_ms),
            Step::Unload => self.policies.unload(slot),
            Step::Quarantine(digest, why) => {
                self.place(slot).lock().held.remove(&digest);
                if let Ok(digest) = digest.parse::<EngineDigest>() {
                    self.policies.quarantine(slot, digest, &why);
                }
            }
            Step::Free(digest) => {
                if let Ok(digest) = digest.parse::<EngineDigest>() {
                    self.policies.retry(slot, &digest);
                }
            }
            Step::Discard(digest) => drop(self.place(slot).lock().held.remove(&digest)),
            Step::Store(digest) => return self.after(self.put_back(slot, [&digest], now_ms).await),
            Step::Write(document) => return self.write(slot, read, &document).await,
            Step::Restore(document) => {
                tracing::warn!(%slot, "Redis has forgotten what serves, and is told");
                let modules = document.modules();
                if let Err(error) = self.put_back(slot, &modules, now_ms).await {
                    return self.after(Err(error));
                }
                return self.write(slot, read, &document).await;
            }
        }
        Next::Step
    }

    fn switch(&self, slot: SlotName, digest: &Digest, now_ms: u64) {
        let held = self.place(slot).lock().held.remove(digest);
        let switched = held.map(|policy| self.policies.switch(policy));
        let problem = match switched {
            Some(Ok(_)) => return,
            Some(Err(error)) => (error.kind(), error.to_string()),
            None => ("unreadable", "it was prepared and is gone".to_owned()),
        };
        self.place(slot).lock().follower.refused(digest, problem.0, &problem.1, now_ms);
    }

    async fn write(&self, slot: SlotName, read: &Read, document: &Document) -> Next {
        let written = self.store.write(slot, read, document, None).await;
        if written == Ok(true) {
            tell(slot, &read.document, document);
            self.replicas.tell_policy_news();
        }
        self.after(written.map(drop))
    }

    async fn put_back<'a>(
        &self,
        slot: SlotName,
        digests: impl IntoIterator<Item = &'a Digest>,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        for digest in digests {
            let module = self.place(slot).lock().modules.get(digest).cloned();
            if let Some(module) = module {
                self.store.put(slot, digest, &module, now_ms).await?;
            }
        }
        Ok(())
    }

    fn after(&self, done: Result<(), StoreError>) -> Next {
        match done {
            Ok(()) => Next::Look,
            Err(error) => {
                self.away(&error);
                Next::Wait
            }
        }
    }

    /// What is wrong with the connection is told by who looks after it.
    fn away(&self, error: &StoreError) {
        let is_starting = matches!(error, StoreError::Away(_)) && !self.has_looked.load(Ordering::Relaxed);
        if !is_starting && !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, "what the cluster says of policies cannot be read: what serves goes on serving");
        }
    }
}

/// The steps that concern all are told by the replica that took them.
fn tell(slot: SlotName, was: &Document, is: &Document) {
    let current = is.current.as_deref().unwrap_or("the native rule");
    if is.current != was.current {
        metrics::counter!("pointwork_policy_rollouts_total", "slot" => slot.as_str(), "result" => "moved").increment(1);
        tracing::info!(%slot, digest = current, "the pointer of the cluster moves");
    }
    if let Some(failed) = is.failed.as_ref().filter(|_| is.failed != was.failed) {
        metrics::counter!("pointwork_policy_rollouts_total", "slot" => slot.as_str(), "result" => "failed")
            .increment(1);
        let replica = failed.replica.as_deref().unwrap_or("none");
        tracing::warn!(%slot, digest = &*failed.digest, replica, kind = failed.kind, "a push failed: {}", failed.message);
    }
}
