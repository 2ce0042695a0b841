//! What serves one slot: a policy that can be swapped at any time, and the native rule behind it.

use crate::contract::Info;
use crate::contract::slot::Slot;
use crate::engine::Engine;
use crate::guest::Digest;
use crate::guest::LoadError;
use crate::guest::component::{check, check_bytes};
use crate::guest::generation::{Generation, Setup};
use crate::sandbox::SlotLimits;
use crate::slot::arms::ArmError;
use crate::slot::arms::Arms;
use crate::slot::breaker::{Breaker, Failures, TripHook};
use crate::slot::counters::Counters;
use crate::slot::history::{History, Kept, Standing};
use crate::slot::status::{DecisionFailure, KeptStatus, LoadFailure, SlotStatus, unix_ms};
use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The policy of one slot. Decisions are answered without a lock that a load could hold.
pub struct Policy<S: Slot> {
    pub(super) engine: Engine,
    pub(super) limits: SlotLimits,
    pub(super) breaker: Breaker,
    pub(super) hook: Option<TripHook>,
    pub(super) active: ArcSwapOption<Active<S>>,
    pub(super) arms: Arms<S>,
    pub(super) counters: Counters,
    pub(super) live: Arc<AtomicUsize>,
    pub(super) last_failure: Mutex<Option<DecisionFailure>>,
    pub(super) last_load_error: Mutex<Option<LoadFailure>>,
    /// Held while a load works: one after the other.
    pub(super) loading: Mutex<()>,
    /// Held while what serves is changed, never while a guest runs or is compiled.
    pub(super) history: Mutex<History<S>>,
}

/// A generation in its place.
pub(super) struct Active<S: Slot> {
    pub(super) number: u64,
    pub(super) generation: Arc<Generation<S>>,
    pub(super) failures: Failures,
}

/// A policy that was compiled, checked, configured and warmed, and serves nothing yet.
pub struct Prepared<S: Slot> {
    generation: Generation<S>,
}

impl<S: Slot> Prepared<S> {
    /// Digest of module, configuration and contract.
    pub fn digest(&self) -> Digest {
        self.generation.digest
    }

    /// What the policy says of itself.
    pub fn info(&self) -> &Info {
        &self.generation.info
    }
}

/// What serves after a change that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadReport {
    /// False when the very same generation is serving already.
    pub changed: bool,
    /// Number of the generation that serves now.
    pub generation: u64,
    /// Its digest.
    pub digest: Digest,
    /// What the policy says of itself.
    pub info: Info,
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
            last_failure: Mutex::default(),
            last_load_error: Mutex::default(),
            loading: Mutex::default(),
            history: Mutex::new(History::new(unix_ms())),
        }
    }

    /// With another breaker than the default one.
    #[must_use]
    pub fn with_breaker(self, breaker: Breaker) -> Self {
        Self { breaker, ..self }
    }

    /// With somebody who is told of every trip.
    #[must_use]
    pub fn with_hook(self, hook: TripHook) -> Self {
        Self { hook: Some(hook), ..self }
    }

    /// Loads a policy: checks it in every way, warms it, and switches to it last. Takes as long as a compilation: not for an
    /// async worker. What serves goes on serving meanwhile, and for good when this fails; the same bytes may be tried again.
    ///
    /// # Errors
    /// See [`LoadError`]; it is kept for [`Policy::status`] too.
    pub fn load(&self, wasm: &[u8], config_json: &str) -> Result<LoadReport, LoadError> {
        self.load_as(wasm, config_json, Standing::Newest)
    }

    /// As [`Policy::load`], of what is not the newest: a good one that was kept elsewhere. Then the last load's error stays.
    /// As the last good one it does not take the place of another, nor of what was taken away by [`Policy::unload`]; as an undo it does, and what served is not kept.
    ///
    /// # Errors
    /// As [`Policy::load`].
    pub fn load_as(&self, wasm: &[u8], config_json: &str, standing: Standing) -> Result<LoadReport, LoadError> {
        let _loading = self.loading.lock();
        let digest = Digest::of_generation(wasm, config_json);
        let loaded = match self.serving_already(&digest, standing) {
            Some(report) => Ok(report),
            None => self.prepare(wasm, config_json).and_then(|prepared| self.switch_as(prepared, standing)),
        };
        if standing == Standing::Newest {
            self.note_load(digest, loaded.as_ref().err());
        }
        loaded
    }

    /// Everything of a load but the switch; several may be prepared at once. An error is for the caller alone.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn prepare(&self, wasm: &[u8], config_json: &str) -> Result<Prepared<S>, LoadError> {
        check_bytes(wasm)?;
        let digest = Digest::of_generation(wasm, config_json);
        self.refuse_quarantined(&digest)?;
        let checked = check(&self.engine, wasm)?;
        if checked.slot != S::NAME {
            return Err(LoadError::WrongWorld { found: checked.slot.world(), wanted: S::NAME.world() });
        }
        let setup = Setup { digest, config_json, limits: self.limits, live: &self.live };
        Ok(Prepared { generation: Generation::set_up(&self.engine, &checked, &setup)? })
    }

    /// Has a prepared policy serve the slot; decisions under way end in the one before, which is kept for [`Policy::undo`].
    ///
    /// # Errors
    /// [`LoadError::Quarantined`] when it was quarantined since it was prepared.
    pub fn switch(&self, prepared: Prepared<S>) -> Result<LoadReport, LoadError> {
        self.switch_as(prepared, Standing::Newest)
    }

    /// The last load of a policy failed, or went well: kept for [`Policy::status`]. [`Policy::load`] does it itself.
    pub fn note_load(&self, digest: Digest, error: Option<&LoadError>) {
        *self.last_load_error.lock() = error.map(|error| LoadFailure::new(error, Some(digest)));
    }

    /// The policy's file could not be read: kept for [`Policy::status`], what serves goes on serving.
    pub fn note_unreadable(&self, message: &str) -> LoadError {
        let error = LoadError::Unreadable(crate::text::bounded(message, 1024));
        *self.last_load_error.lock() = Some(LoadFailure::new(&error, None));
        error
    }

    /// Back to the native rule; what served is kept for [`Policy::undo`].
    pub fn unload(&self) {
        let mut history = self.history.lock();
        if let Some(active) = self.activate(&mut history, None, Standing::Newest) {
            history.keep(active);
        }
        history.is_taken_away = true;
        *self.last_load_error.lock() = None;
    }

    /// Has a prepared policy answer beside what serves, in place of an arm of that name.
    ///
    /// # Errors
    /// When the slot has [`ARMS_MAX`](crate::ARMS_MAX) others.
    pub fn set_arm(&self, arm: Arc<str>, prepared: Prepared<S>) -> Result<(), ArmError> {
        self.arms.set(arm, prepared.generation)
    }

    /// Takes an arm away; whether it was there.
    pub fn clear_arm(&self, arm: &str) -> bool {
        self.arms.clear(arm)
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
            info: active.as_ref().map(|active| active.generation.info.clone()),
            digest: active.as_ref().map(|active| active.generation.digest),
            generation: history.number,
            since_ms: history.since_ms,
            calls: self.counters.calls.load(Ordering::Relaxed),
            native: self.counters.native.load(Ordering::Relaxed),
            failures: self.counters.failures(),
            last_load_error: self.last_load_error.lock().clone(),
            last_failure: self.last_failure.lock().clone(),
            live_generations: self.live.load(Ordering::Relaxed).saturating_sub(idle),
            undone: active.is_some() && history.standing == Standing::Undone,
            last_good: active.is_some() && history.standing == Standing::LastGood,
            trips: history.trips,
            kept,
            quarantined: history.quarantined.clone(),
            arms: self.arms.status(),
        }
    }

    /// What serves is wanted as this from now on: an undone or last good one that is loaded is the newest.
    fn serving_already(&self, digest: &Digest, standing: Standing) -> Option<LoadReport> {
        let mut history = self.history.lock();
        let active = self.active.load();
        let active = active.as_ref().filter(|active| active.generation.digest == *digest)?;
        history.stand(standing);
        Some(report(active, false))
    }

    fn switch_as(&self, prepared: Prepared<S>, standing: Standing) -> Result<LoadReport, LoadError> {
        let mut history = self.history.lock();
        let digest = prepared.digest();
        if let Some(quarantined) = history.quarantine_of(&digest) {
            return Err(LoadError::Quarantined(quarantined.why.clone()));
        }
        if standing == Standing::LastGood && history.is_taken_away {
            return Err(LoadError::Unreadable("what was loaded last was taken away meanwhile".to_owned()));
        }
        // A last good one is for a slot that nothing serves: who loaded another one meanwhile wants that.
        let stays = |active: &&Arc<Active<S>>| standing == Standing::LastGood || active.generation.digest == digest;
        if let Some(active) = self.active.load().as_ref().filter(stays) {
            if active.generation.digest == digest {
                history.stand(standing);
            }
            return Ok(report(active, false));
        }
        history.forget(&digest);
        let next = Arc::new(prepared.generation);
        match self.activate(&mut history, Some(Arc::clone(&next)), standing) {
            Some(before) if standing == Standing::Undone => history.note_undone(before.generation.digest),
            Some(before) => history.keep(before),
            None => {}
        }
        Ok(LoadReport { changed: true, generation: history.number, digest, info: next.info.clone() })
    }

    fn refuse_quarantined(&self, digest: &Digest) -> Result<(), LoadError> {
        match self.history.lock().quarantine_of(digest) {
            Some(quarantined) => Err(LoadError::Quarantined(quarantined.why.clone())),
            None => Ok(()),
        }
    }

    /// Changes what serves, and gives what served until now.
    pub(super) fn activate(
        &self,
        history: &mut History<S>,
        next: Option<Arc<Generation<S>>>,
        standing: Standing,
    ) -> Option<Kept<S>> {
        let active = self.active.load_full();
        let since_ms = history.since_ms;
        history.stand(standing);
        if active.is_none() && next.is_none() {
            return None;
        }
        history.is_taken_away &= next.is_none();
        history.number += 1;
        history.since_ms = unix_ms();
        let number = history.number;
        self.active
            .store(next.map(|generation| Arc::new(Active { number, generation, failures: Failures::default() })));
        active.map(|active| Kept {
            generation: Arc::clone(&active.generation),
            number: active.number,
            since_ms,
            tripped: false,
        })
    }
}

fn report<S: Slot>(active: &Active<S>, changed: bool) -> LoadReport {
    let generation = &active.generation;
    LoadReport { changed, generation: active.number, digest: generation.digest, info: generation.info.clone() }
}

impl KeptStatus {
    fn of<S: Slot>(kept: &Kept<S>) -> Self {
        Self {
            generation: kept.number,
            digest: kept.generation.digest,
            info: kept.generation.info.clone(),
            since_ms: kept.since_ms,
            tripped: kept.tripped,
        }
    }
}
