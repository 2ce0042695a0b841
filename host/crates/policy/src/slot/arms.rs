//! Policies that answer beside the one that serves the slot: the arms of an experiment, and shadows.

use crate::contract::slot::Slot;
use crate::guest::Digest;
use crate::guest::FailureKind;
use crate::guest::generation::{Asked, Generation};
use crate::slot::breaker::{Breaker, Failures};
use crate::slot::counters::Counters;
use crate::slot::status::{ArmStatus, DecisionFailure};
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
    /// The slot has as many as it may have.
    #[error("the slot has {limit} arms already")]
    TooMany {
        /// The bound.
        limit: usize,
    },
}

pub(crate) struct Arm<S: Slot> {
    pub(crate) name: Arc<str>,
    pub(crate) generation: Arc<Generation<S>>,
    failures: Failures,
    tripped: AtomicBool,
    counters: Counters,
    last_failure: Mutex<Option<DecisionFailure>>,
}

/// How an arm answered.
pub(crate) struct Answered<V> {
    pub(crate) verdict: Result<V, FailureKind>,
    pub(crate) cost: Duration,
    /// Set once: by the failure that was one too many.
    pub(crate) trip: Option<String>,
}

impl<S: Slot> Arm<S> {
    fn new(name: Arc<str>, generation: Generation<S>) -> Self {
        Self {
            name,
            generation: Arc::new(generation),
            failures: Failures::default(),
            tripped: AtomicBool::new(false),
            counters: Counters::default(),
            last_failure: Mutex::default(),
        }
    }

    pub(crate) fn ask(&self, question: &S::Question, id: u64, breaker: &Breaker) -> Answered<S::Verdict> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        if self.tripped.load(Ordering::Relaxed) {
            self.counters.count_failure(FailureKind::Tripped);
            return Answered { verdict: Err(FailureKind::Tripped), cost: Duration::ZERO, trip: None };
        }
        let Asked { answer, cost } = self.generation.ask(question, id);
        let (verdict, trip) = match answer {
            Ok(verdict) => (Ok(verdict), None),
            Err(failure) => {
                let (kind, now_ms) = (failure.kind, S::moment(question).now_ms);
                self.counters.count_failure(kind);
                self.generation.log.failure(kind.as_str(), &failure.message, now_ms, id);
                let is_counted = !failure.is_borne;
                let too_many =
                    is_counted && self.failures.note(now_ms, breaker) && !self.tripped.swap(true, Ordering::Relaxed);
                let trip = too_many.then(|| breaker.words(&failure));
                *self.last_failure.lock() = Some(DecisionFailure::new(failure, now_ms, 0));
                (Err(kind), trip)
            }
        };
        Answered { verdict, cost, trip }
    }

    fn status(&self) -> ArmStatus {
        ArmStatus {
            arm: self.name.to_string(),
            digest: self.generation.digest,
            info: self.generation.info.clone(),
            calls: self.counters.calls.load(Ordering::Relaxed),
            failures: self.counters.failures(),
            last_failure: self.last_failure.lock().clone(),
            tripped: self.tripped.load(Ordering::Relaxed),
        }
    }
}

type ByName<S> = BTreeMap<Arc<str>, Arc<Arm<S>>>;

/// The arms of one slot: read by decisions without a lock.
pub(crate) struct Arms<S: Slot> {
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
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Arm<S>>> {
        self.by_name.load().get(name).cloned()
    }

    pub(crate) fn set(&self, name: Arc<str>, generation: Generation<S>) -> Result<(), ArmError> {
        self.change(|arms| {
            if arms.len() >= ARMS_MAX && !arms.contains_key(&name) {
                return Err(ArmError::TooMany { limit: ARMS_MAX });
            }
            arms.insert(Arc::clone(&name), Arc::new(Arm::new(name, generation)));
            Ok(())
        })
    }

    pub(crate) fn clear(&self, name: &str) -> bool {
        self.change(|arms| arms.remove(name).is_some())
    }

    /// Arms of this digest are asked again; whether there was one that was not.
    pub(crate) fn retry(&self, digest: &Digest) -> bool {
        let arms = self.by_name.load();
        let of_digest = arms.values().filter(|arm| arm.generation.digest == *digest);
        of_digest.fold(false, |any, arm| {
            arm.failures.clear();
            arm.tripped.swap(false, Ordering::Relaxed) || any
        })
    }

    pub(crate) fn status(&self) -> Vec<ArmStatus> {
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
