//! What serves one slot: a policy that can be swapped at any time, and the native rule behind it.

use crate::component::{check, check_bytes};
use crate::contract::Info;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::error::{Failure, FailureKind, LoadError};
use crate::generation::{Generation, Setup};
use crate::limits::SlotLimits;
use crate::slot::Slot;
use crate::status::{Counters, DecisionFailure, LoadFailure, SlotStatus, unix_ms};
use arc_swap::ArcSwapOption;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The policy of one slot. Decisions are answered without a lock that a load could hold; loads come one after the other.
pub struct Policy<S: Slot> {
    engine: Engine,
    limits: SlotLimits,
    active: ArcSwapOption<Generation<S>>,
    counters: Counters,
    live: Arc<AtomicUsize>,
    last_failure: Mutex<Option<DecisionFailure>>,
    last_load_error: Mutex<Option<LoadFailure>>,
    /// Held while a load works: what serves is changed by one at a time.
    serving: Mutex<Serving>,
    /// A copy of `serving` for the report, which must not wait for a compilation.
    shown: Mutex<Serving>,
}

/// A decision and who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<V> {
    /// What to do.
    pub verdict: V,
    /// Whose verdict it is.
    pub by: By,
}

/// Who made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The policy.
    Wasm {
        /// Number of its generation.
        generation: u64,
    },
    /// The native rule.
    Native {
        /// Why it was not the policy's; `None` when none is loaded.
        reason: Option<FailureKind>,
    },
}

/// A load that went well.
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

#[derive(Debug, Clone, Copy)]
struct Serving {
    generation: u64,
    since_ms: u64,
}

impl<S: Slot> Policy<S> {
    /// A slot that the native rule serves until a policy is loaded.
    pub fn new(engine: &Engine, limits: SlotLimits) -> Self {
        let serving = Serving { generation: 0, since_ms: unix_ms() };
        Self {
            engine: engine.clone(),
            limits,
            active: ArcSwapOption::empty(),
            counters: Counters::default(),
            live: Arc::default(),
            last_failure: Mutex::default(),
            last_load_error: Mutex::default(),
            serving: Mutex::new(serving),
            shown: Mutex::new(serving),
        }
    }

    /// Decides: by the policy if one is loaded and answers within its deadline and the contract's bounds, else by `native`.
    ///
    /// Synchronous, for any thread, an async worker included: it never waits longer than the deadline (twice that when an
    /// instance has to be made first), and no guest can make it panic.
    pub fn decide(&self, question: &S::Question, native: impl FnOnce() -> S::Verdict) -> Decision<S::Verdict> {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let active = self.active.load();
        let reason = match &*active {
            None => None,
            Some(generation) => match generation.ask(question) {
                Ok(verdict) => {
                    let generation = generation.number;
                    return Decision { verdict, by: By::Wasm { generation } };
                }
                Err(failure) => Some(self.note_failure(generation, failure, S::moment(question).now_ms)),
            },
        };
        self.counters.native.fetch_add(1, Ordering::Relaxed);
        Decision { verdict: native(), by: By::Native { reason } }
    }

    /// Loads a policy: checks it in every way, warms it, and switches to it last. Takes as long as a compilation: not for an
    /// async worker. What serves goes on serving meanwhile, and for good when this fails; the same bytes may be tried again.
    ///
    /// # Errors
    /// See [`LoadError`]; it is kept for [`Policy::status`] too.
    pub fn load(&self, wasm: &[u8], config_json: &str) -> Result<LoadReport, LoadError> {
        let mut serving = lock(&self.serving);
        let digest = Digest::of_generation(wasm, config_json);
        let loaded = self.load_generation(&mut serving, wasm, config_json, digest);
        *lock(&self.last_load_error) = loaded.as_ref().err().map(|error| LoadFailure::new(error, Some(digest)));
        loaded
    }

    /// The policy's file could not be read: kept for [`Policy::status`], what serves goes on serving.
    pub fn note_unreadable(&self, message: &str) -> LoadError {
        let error = LoadError::Unreadable(crate::text::bounded(message, 1024));
        *lock(&self.last_load_error) = Some(LoadFailure::new(&error, None));
        error
    }

    /// Back to the native rule.
    pub fn unload(&self) {
        let mut serving = lock(&self.serving);
        if self.active.load().is_some() {
            self.switch(&mut serving, None);
        }
        *lock(&self.last_load_error) = None;
    }

    /// The report for the admin API. Never waits for a load.
    pub fn status(&self) -> SlotStatus {
        let active = self.active.load_full();
        let shown = *lock(&self.shown);
        SlotStatus {
            slot: S::NAME,
            source: if active.is_some() { "wasm" } else { "native" },
            info: active.as_ref().map(|generation| generation.info.clone()),
            digest: active.as_ref().map(|generation| generation.digest),
            generation: shown.generation,
            since_ms: shown.since_ms,
            calls: self.counters.calls.load(Ordering::Relaxed),
            native: self.counters.native.load(Ordering::Relaxed),
            failures: self.counters.failures(),
            last_load_error: lock(&self.last_load_error).clone(),
            last_failure: lock(&self.last_failure).clone(),
            live_generations: self.live.load(Ordering::Relaxed),
        }
    }

    fn load_generation(
        &self,
        serving: &mut Serving,
        wasm: &[u8],
        config_json: &str,
        digest: Digest,
    ) -> Result<LoadReport, LoadError> {
        check_bytes(wasm)?;
        if let Some(active) = &*self.active.load()
            && active.digest == digest
        {
            return Ok(report(active, false));
        }
        let checked = check(&self.engine, wasm)?;
        if checked.slot != S::NAME {
            return Err(LoadError::WrongWorld { found: checked.slot.world(), wanted: S::NAME.world() });
        }
        let setup =
            Setup { number: serving.generation + 1, digest, config_json, limits: self.limits, live: &self.live };
        let generation = Arc::new(Generation::set_up(&self.engine, &checked, &setup)?);
        let report = report(&generation, true);
        self.switch(serving, Some(generation));
        Ok(report)
    }

    fn switch(&self, serving: &mut Serving, next: Option<Arc<Generation<S>>>) {
        serving.generation += 1;
        serving.since_ms = unix_ms();
        *lock(&self.shown) = *serving;
        self.active.store(next);
    }

    fn note_failure(&self, generation: &Generation<S>, failure: Failure, now_ms: u64) -> FailureKind {
        let kind = failure.kind;
        self.counters.count_failure(kind);
        generation.log.failure(kind.as_str(), &failure.message, now_ms);
        *lock(&self.last_failure) = Some(DecisionFailure::new(failure, now_ms, generation.number));
        kind
    }
}

fn report<S: Slot>(generation: &Generation<S>, changed: bool) -> LoadReport {
    LoadReport { changed, generation: generation.number, digest: generation.digest, info: generation.info.clone() }
}

/// A panic in one of these short sections leaves nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
