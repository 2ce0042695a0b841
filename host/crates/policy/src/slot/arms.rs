//! Asks policies beside the one that serves the slot: the arms of an experiment, and shadows.

use super::breaker::{Breaker, FailureMoments};
use super::counters::Counters;
use super::status::ArmStatus;
use crate::contract::Slot;
use crate::guest::{Digest, FailureKind, Generation, GuestAnswer};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many arms a slot may have.
pub const ARMS_MAX: usize = 16;

/// Why an arm was not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArmError {
    /// The slot has as many arms as it may have.
    #[error("the slot has {limit} arms already")]
    TooMany {
        /// The bound.
        limit: usize,
    },
}

pub(super) struct Arm<S: Slot> {
    pub(super) name: Arc<str>,
    pub(super) generation: Arc<Generation<S>>,
    failures: FailureMoments,
    tripped: AtomicBool,
    counters: Counters,
}

/// The answer of an arm.
pub(super) struct ArmAnswer<V> {
    pub(super) verdict: Result<V, FailureKind>,
    pub(super) cost: Duration,
    /// Set by the failure that made the arm trip, once.
    pub(super) trip_reason: Option<String>,
}

impl<S: Slot> Arm<S> {
    fn new(name: Arc<str>, generation: Generation<S>) -> Self {
        Self {
            name,
            generation: Arc::new(generation),
            failures: FailureMoments::default(),
            tripped: AtomicBool::new(false),
            counters: Counters::default(),
        }
    }

    pub(super) fn ask(&self, question: &S::Question, id: u64, breaker: &Breaker) -> ArmAnswer<S::Verdict> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        if self.tripped.load(Ordering::Relaxed) {
            self.counters.count_failure(FailureKind::Tripped);
            return ArmAnswer { verdict: Err(FailureKind::Tripped), cost: Duration::ZERO, trip_reason: None };
        }
        let GuestAnswer { verdict, cost } = self.generation.ask(question, id);
        let mut trip_reason = None;
        let verdict = verdict.map_err(|failure| {
            let (kind, now_ms) = (failure.kind, S::moment(question).now_ms);
            self.counters.count_failure(kind);
            self.generation.log().log_failure(&failure, now_ms, id);
            if self.failures.add(&failure, now_ms, breaker) && !self.tripped.swap(true, Ordering::Relaxed) {
                trip_reason = Some(breaker.trip_reason(&failure));
            }
            self.counters.keep_failure(failure, now_ms, 0);
            kind
        });
        ArmAnswer { verdict, cost, trip_reason }
    }

    fn status(&self) -> ArmStatus {
        ArmStatus {
            arm: self.name.to_string(),
            digest: self.generation.digest(),
            info: self.generation.info().clone(),
            calls: self.counters.calls.load(Ordering::Relaxed),
            failures: self.counters.failures(),
            last_failure: self.counters.last_failure(),
            tripped: self.tripped.load(Ordering::Relaxed),
        }
    }
}

type ByName<S> = BTreeMap<Arc<str>, Arc<Arm<S>>>;

/// The arms of one slot. Decisions read them without a lock.
pub(super) struct Arms<S: Slot> {
    by_name: ArcSwap<ByName<S>>,
    /// Held while the map is copied and replaced.
    changing: Mutex<()>,
}

impl<S: Slot> Default for Arms<S> {
    fn default() -> Self {
        Self { by_name: ArcSwap::from_pointee(BTreeMap::new()), changing: Mutex::default() }
    }
}

impl<S: Slot> Arms<S> {
    pub(super) fn get(&self, name: &str) -> Option<Arc<Arm<S>>> {
        self.by_name.load().get(name).cloned()
    }

    pub(super) fn set(&self, name: Arc<str>, generation: Generation<S>) -> Result<(), ArmError> {
        self.change(|arms| {
            if arms.len() >= ARMS_MAX && !arms.contains_key(&name) {
                return Err(ArmError::TooMany { limit: ARMS_MAX });
            }
            arms.insert(Arc::clone(&name), Arc::new(Arm::new(name, generation)));
            Ok(())
        })
    }

    pub(super) fn clear(&self, name: &str) -> bool {
        self.change(|arms| arms.remove(name).is_some())
    }

    /// Asks the arms of this digest again. Returns whether one of them had tripped.
    pub(super) fn retry(&self, digest: &Digest) -> bool {
        let arms = self.by_name.load();
        let of_digest = arms.values().filter(|arm| arm.generation.digest() == *digest);
        of_digest.fold(false, |any, arm| {
            arm.failures.clear();
            arm.tripped.swap(false, Ordering::Relaxed) || any
        })
    }

    pub(super) fn status(&self) -> Vec<ArmStatus> {
        self.by_name.load().values().map(|arm| arm.status()).collect()
    }

    fn change<T>(&self, change: impl FnOnce(&mut ByName<S>) -> T) -> T {
        let _changing = self.changing.lock();
        let mut arms = ByName::clone(&self.by_name.load());
        let changed = change(&mut arms);
        self.by_name.store(Arc::new(arms));
        changed
    }
}
