//! Answers decisions by the active policy, an arm or the native rule, and gives up what fails too often.

use super::arms::{Arm, ArmAnswer};
use super::breaker::Trip;
use super::decision::{By, Decision, Shadow};
use super::history::Quarantined;
use super::policy::{ActiveGeneration, Policy};
use crate::contract::Slot;
use crate::guest::{Digest, Failure, FailureKind, GuestAnswer};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The answer of a slot: the verdict with its generation's number, or why there is none.
struct SlotAnswer<V> {
    verdict: Result<(V, u64), Option<FailureKind>>,
    digest: Option<Digest>,
    cost: Duration,
}

impl<S: Slot> Policy<S> {
    /// Decides by the policy if one is loaded and keeps its deadline and the contract's bounds, else by `native`.
    ///
    /// Synchronous, for any thread including async workers: it never waits longer than the deadline (twice that when an
    /// instance has to be made first), and no guest can make it panic.
    pub fn decide(&self, question: &S::Question, native: impl FnOnce() -> S::Verdict) -> Decision<S::Verdict> {
        self.decide_by(None, question, native)
    }

    /// As [`Policy::decide`], by an arm. Without that arm, what serves decides. If the arm fails, the native rule
    /// answers; the failure counts neither among the slot's failures nor for its breaker.
    pub fn decide_by(
        &self,
        arm: Option<&str>,
        question: &S::Question,
        native: impl FnOnce() -> S::Verdict,
    ) -> Decision<S::Verdict> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let id = self.engine.next_decision();
        let SlotAnswer { verdict, digest, cost } = match arm.and_then(|arm| self.arms.get(arm)) {
            Some(arm) => {
                let Shadow { verdict, digest, cost, .. } = self.ask(&arm, question, id);
                SlotAnswer { verdict: verdict.map(|verdict| (verdict, 0)).map_err(Some), digest: Some(digest), cost }
            }
            None => self.ask_active(question, id),
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

    /// Asks an arm what it would decide; `None` without that arm. It counts as the arm's call, not among the slot's
    /// decisions.
    pub fn ask_arm(&self, arm: &str, question: &S::Question) -> Option<Shadow<S::Verdict>> {
        let arm = self.arms.get(arm)?;
        Some(self.ask(&arm, question, self.engine.next_decision()))
    }

    fn ask_active(&self, question: &S::Question, id: u64) -> SlotAnswer<S::Verdict> {
        let active = self.active.load();
        let Some(active) = &*active else {
            return SlotAnswer { verdict: Err(None), digest: None, cost: Duration::ZERO };
        };
        let GuestAnswer { verdict, cost } = active.generation.ask(question, id);
        let verdict = verdict
            .map(|verdict| (verdict, active.number))
            .map_err(|failure| Some(self.handle_failure(active, failure, S::moment(question).now_ms, id)));
        SlotAnswer { verdict, digest: Some(active.generation.digest()), cost }
    }

    fn ask(&self, arm: &Arc<Arm<S>>, question: &S::Question, id: u64) -> Shadow<S::Verdict> {
        let ArmAnswer { verdict, cost, trip_reason } = arm.ask(question, id, &self.breaker);
        let digest = arm.generation.digest();
        if let (Err(kind), Some(why)) = (&verdict, trip_reason) {
            self.report_trip(&Trip {
                slot: S::NAME,
                arm: Some(Arc::clone(&arm.name)),
                digest,
                info: arm.generation.info().clone(),
                kind: *kind,
                why,
                at_ms: S::moment(question).now_ms,
                serves: self.active.load().as_ref().map(|active| active.generation.digest()),
            });
        }
        Shadow { verdict, id, digest, cost }
    }

    fn handle_failure(&self, active: &Arc<ActiveGeneration<S>>, failure: Failure, now_ms: u64, id: u64) -> FailureKind {
        let kind = failure.kind;
        self.counters.count_failure(kind);
        active.generation.log().log_failure(&failure, now_ms, id);
        if active.failures.add(&failure, now_ms, &self.breaker) {
            self.trip(active, &failure, now_ms);
        }
        self.counters.keep_failure(failure, now_ms, active.number);
        kind
    }

    /// Gives a generation up. If several decisions fail at the same time, only the first does.
    fn trip(&self, active: &Arc<ActiveGeneration<S>>, failure: &Failure, now_ms: u64) {
        let generation = &active.generation;
        let why = self.breaker.trip_reason(failure);
        let mut history = self.history.lock();
        if !self.active.load().as_ref().is_some_and(|serving| Arc::ptr_eq(serving, active)) {
            return;
        }
        history.trips += 1;
        history.quarantine(Quarantined { digest: generation.digest(), why: why.clone(), at: now_ms });
        let serves = self.fall_back(&mut history);
        drop(history);
        self.report_trip(&Trip {
            slot: S::NAME,
            arm: None,
            digest: generation.digest(),
            info: generation.info().clone(),
            kind: failure.kind,
            why,
            at_ms: now_ms,
            serves,
        });
    }

    /// Logs a trip and calls the hook.
    fn report_trip(&self, trip: &Trip) {
        let (slot, digest, name) = (trip.slot.as_str(), trip.digest.short(), trip.info.name.as_str());
        let (arm, why, kind) = (trip.arm.as_deref(), trip.why.as_str(), trip.kind.as_str());
        let serves = trip.serves.map_or_else(|| "the native rule".to_string(), |digest| digest.short());
        tracing::warn!(target: "pointwork::policy", slot, digest, name, arm, kind, serves, "policy given up: {why}");
        if let Some(hook) = &self.hook {
            hook(trip);
        }
    }
}
