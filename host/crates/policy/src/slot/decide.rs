//! Decisions, and what follows when one fails.

use super::policy::{Active, Policy};
use crate::contract::slot::Slot;
use crate::guest::Digest;
use crate::guest::generation::Asked;
use crate::guest::{Failure, FailureKind};
use crate::slot::arms::Arm;
use crate::slot::breaker::Trip;
use crate::slot::decision::{By, Decision, Shadow};
use crate::slot::history::Quarantined;
use crate::slot::status::DecisionFailure;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How somebody who was asked answered: the verdict with its generation's number, or why there is none.
struct Outcome<V> {
    verdict: Result<(V, u64), Option<FailureKind>>,
    digest: Option<Digest>,
    cost: Duration,
}

impl<S: Slot> Policy<S> {
    /// Decides: by the policy if one is loaded and answers within its deadline and the contract's bounds, else by `native`.
    ///
    /// Synchronous, for any thread, an async worker included: it never waits longer than the deadline (twice that when an
    /// instance has to be made first), and no guest can make it panic.
    pub fn decide(&self, question: &S::Question, native: impl FnOnce() -> S::Verdict) -> Decision<S::Verdict> {
        self.decide_by(None, question, native)
    }

    /// As [`Policy::decide`], by an arm. Without that arm what serves decides. An arm's failure is the arm's alone: the
    /// native rule answers, and neither the slot's failures nor its breaker know of it.
    pub fn decide_by(
        &self,
        arm: Option<&str>,
        question: &S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> Decision<S::Verdict> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let id = self.engine.next_decision();
        let Outcome { verdict, digest, cost } = match arm.and_then(|arm| self.arms.get(arm)) {
            Some(arm) => {
                let Shadow { verdict, digest, cost, .. } = self.ask(&arm, question, id);
                Outcome { verdict: verdict.map(|verdict| (verdict, 0)).map_err(Some), digest: Some(digest), cost }
            }
            None => self.ask_serving(question, id),
        };
        match verdict {
            Ok((verdict, generation)) => Decision { verdict, by: By::Wasm { generation }, id, digest, cost },
            Err(reason) => {
                self.counters.native.fetch_add(1, Ordering::Relaxed);
                Decision { verdict: native(), by: By::Native { reason }, id, digest, cost }
            }
        }
    }

    /// Decides by `native`, whatever is loaded: for an arm that is the native rule.
    pub fn decide_native(&self, native: impl FnOnce() -> S::Verdict) -> Decision<S::Verdict> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.counters.native.fetch_add(1, Ordering::Relaxed);
        let id = self.engine.next_decision();
        Decision { verdict: native(), by: By::Native { reason: None }, id, digest: None, cost: Duration::ZERO }
    }

    /// What an arm would decide; `None` without that arm. It counts as the arm's, not among the slot's decisions.
    pub fn ask_arm(&self, arm: &str, question: &S::Question) -> Option<Shadow<S::Verdict>> {
        let arm = self.arms.get(arm)?;
        Some(self.ask(&arm, question, self.engine.next_decision()))
    }

    fn ask_serving(&self, question: &S::Question, id: u64) -> Outcome<S::Verdict> {
        let active = self.active.load();
        let Some(active) = &*active else {
            return Outcome { verdict: Err(None), digest: None, cost: Duration::ZERO };
        };
        let Asked { answer, cost } = active.generation.ask(question, id);
        let verdict = answer
            .map(|verdict| (verdict, active.number))
            .map_err(|failure| Some(self.note_failure(active, failure, S::moment(question).now_ms, id)));
        Outcome { verdict, digest: Some(active.generation.digest), cost }
    }

    fn ask(&self, arm: &Arc<Arm<S>>, question: &S::Question, id: u64) -> Shadow<S::Verdict> {
        let answered = arm.ask(question, id, &self.breaker);
        let digest = arm.generation.digest;
        if let (Err(kind), Some(why)) = (&answered.verdict, answered.trip) {
            self.tell(&Trip {
                slot: S::NAME,
                arm: Some(Arc::clone(&arm.name)),
                digest,
                info: arm.generation.info.clone(),
                kind: *kind,
                why,
                at_ms: S::moment(question).now_ms,
                serves: self.active.load().as_ref().map(|active| active.generation.digest),
            });
        }
        Shadow { verdict: answered.verdict, id, digest, cost: answered.cost }
    }

    fn note_failure(&self, active: &Arc<Active<S>>, failure: Failure, now_ms: u64, id: u64) -> FailureKind {
        let kind = failure.kind;
        self.counters.count_failure(kind);
        active.generation.log.failure(kind.as_str(), &failure.message, now_ms, id);
        if !failure.is_borne && active.failures.note(now_ms, &self.breaker) {
            self.trip(active, &failure, now_ms);
        }
        *self.last_failure.lock() = Some(DecisionFailure::new(failure, now_ms, active.number));
        kind
    }

    /// Gives a generation up; of those that fail at the same time the first one does.
    fn trip(&self, active: &Arc<Active<S>>, failure: &Failure, now_ms: u64) {
        let generation = &active.generation;
        let why = self.breaker.words(failure);
        let mut history = self.history.lock();
        if !self.active.load().as_ref().is_some_and(|serving| Arc::ptr_eq(serving, active)) {
            return;
        }
        history.trips += 1;
        history.quarantine(Quarantined { digest: generation.digest, why: why.clone(), at: now_ms });
        let serves = self.fall_back(&mut history);
        drop(history);
        self.tell(&Trip {
            slot: S::NAME,
            arm: None,
            digest: generation.digest,
            info: generation.info.clone(),
            kind: failure.kind,
            why,
            at_ms: now_ms,
            serves,
        });
    }

    /// One line, and a word to whoever wants to know.
    fn tell(&self, trip: &Trip) {
        let (slot, digest, name) = (trip.slot.as_str(), trip.digest.short(), trip.info.name.as_str());
        let (arm, why, kind) = (trip.arm.as_deref(), trip.why.as_str(), trip.kind.as_str());
        let serves = trip.serves.map_or_else(|| "the native rule".to_string(), |digest| digest.short());
        tracing::warn!(target: "pointwork::policy", slot, digest, name, arm, kind, serves, "policy given up: {why}");
        if let Some(hook) = &self.hook {
            hook(trip);
        }
    }
}
