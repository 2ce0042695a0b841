//! Holds what serves one slot: the active policy, its arms, its history and its counters.

use super::arms::Arms;
use super::breaker::{Breaker, FailureMoments, TripHook};
use super::counters::Counters;
use super::history::{History, KeptGeneration, Standing};
use super::status::{KeptStatus, LoadFailure, SlotStatus, unix_ms};
use crate::contract::Slot;
use crate::engine::Engine;
use crate::guest::Generation;
use crate::sandbox::SlotLimits;
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The policy of one slot. Decisions are answered without a lock that a load could hold.
pub struct Policy<S: Slot> {
    pub(super) engine: Engine,
    pub(super) limits: SlotLimits,
    pub(super) breaker: Breaker,
    pub(super) hook: Option<TripHook>,
    pub(super) active: ArcSwapOption<ActiveGeneration<S>>,
    pub(super) arms: Arms<S>,
    pub(super) counters: Counters,
    /// Has a clone in each generation that is not dropped yet.
    pub(super) live: Arc<()>,
    pub(super) last_load_error: Mutex<Option<LoadFailure>>,
    /// Held while a load works: one after the other.
    pub(super) loading: Mutex<()>,
    /// Held while what serves is changed, never while a guest runs or is compiled.
    pub(super) history: Mutex<History<S>>,
}

/// The generation that serves.
pub(super) struct ActiveGeneration<S: Slot> {
    pub(super) number: u64,
    pub(super) generation: Arc<Generation<S>>,
    pub(super) failures: FailureMoments,
}

impl<S: Slot> Policy<S> {
    /// A slot that the native rule serves until a policy is loaded.
    pub fn new(engine: &Engine, limits: SlotLimits) -> Self {
        Self {
            engine: engine.clone(),
            limits,
            breaker: Breaker::default(),
            hook: None,
            active: ArcSwapOption::empty(),
            arms: Arms::default(),
            counters: Counters::default(),
            live: Arc::default(),
            last_load_error: Mutex::default(),
            loading: Mutex::default(),
            history: Mutex::new(History::new(unix_ms())),
        }
    }

    /// Replaces the default breaker.
    #[must_use]
    pub fn with_breaker(self, breaker: Breaker) -> Self {
        Self { breaker, ..self }
    }

    /// Calls a hook at every trip.
    #[must_use]
    pub fn with_hook(self, hook: TripHook) -> Self {
        Self { hook: Some(hook), ..self }
    }

    /// The report for the admin API. Never waits for a load.
    pub fn status(&self) -> SlotStatus {
        let history = self.history.lock();
        let active = self.active.load_full();
        let kept = history.kept.iter().map(KeptStatus::of).collect();
        let idle = history.kept.iter().filter(|kept| Arc::strong_count(&kept.generation) == 1).count();
        SlotStatus {
            slot: S::NAME,
            source: if active.is_some() { "wasm" } else { "native" },
            info: active.as_ref().map(|active| active.generation.info().clone()),
            digest: active.as_ref().map(|active| active.generation.digest()),
            generation: history.number,
            since_ms: history.since_ms,
            calls: self.counters.calls.load(Ordering::Relaxed),
            native: self.counters.native.load(Ordering::Relaxed),
            failures: self.counters.failures(),
            last_load_error: self.last_load_error.lock().clone(),
            last_failure: self.counters.last_failure(),
            live_generations: (Arc::strong_count(&self.live) - 1).saturating_sub(idle),
            undone: active.is_some() && history.standing == Standing::Undone,
            last_good: active.is_some() && history.standing == Standing::LastGood,
            trips: history.trips,
            kept,
            quarantined: history.quarantined.clone(),
            arms: self.arms.status(),
        }
    }

    /// Changes what serves, and returns what served until now.
    pub(super) fn activate(
        &self,
        history: &mut History<S>,
        next: Option<Arc<Generation<S>>>,
        standing: Standing,
    ) -> Option<KeptGeneration<S>> {
        let before = self.active.load_full();
        let since_ms = history.since_ms;
        history.set_standing(standing);
        if before.is_none() && next.is_none() {
            return None;
        }
        history.is_taken_away &= next.is_none();
        history.number += 1;
        history.since_ms = unix_ms();
        let number = history.number;
        let activated =
            |generation| Arc::new(ActiveGeneration { number, generation, failures: FailureMoments::default() });
        self.active.store(next.map(activated));
        before.map(|before| KeptGeneration {
            generation: Arc::clone(&before.generation),
            number: before.number,
            since_ms,
            tripped: false,
        })
    }
}

impl KeptStatus {
    fn of<S: Slot>(kept: &KeptGeneration<S>) -> Self {
        Self {
            generation: kept.number,
            digest: kept.generation.digest(),
            info: kept.generation.info().clone(),
            since_ms: kept.since_ms,
            tripped: kept.tripped,
        }
    }
}
