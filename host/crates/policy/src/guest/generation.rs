//! One generation of a slot's policy: a module with its configuration, and its warm instances.

use crate::contract::Info;
use crate::contract::slot::Slot;
use crate::engine::Engine;
use crate::guest::Digest;
use crate::guest::component::Checked;
use crate::guest::instance::{Instance, SETUP_DEADLINE_MS};
use crate::guest::log::GuestLog;
use crate::guest::{Failure, FailureKind, LoadError};
use crate::sandbox::SlotLimits;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How many instances are made before a generation begins to serve.
const WARM_AT_START: usize = 4;

pub(crate) struct Generation<S: Slot> {
    pub(crate) digest: Digest,
    pub(crate) info: Info,
    pub(crate) log: GuestLog,
    engine: Engine,
    linked: S::Linked,
    config_json: String,
    limits: SlotLimits,
    /// A mutex, not a channel: it is held for a push or a pop, and the last one used has the warmest caches.
    idle: Mutex<Vec<Instance<S>>>,
    /// Instances are being made where no decision waits for them.
    is_warming: AtomicBool,
    /// Counts itself out when the generation is dropped.
    _live: Live,
}

/// An answer, and how long the guest took for it.
pub(crate) struct Asked<V> {
    pub(crate) answer: Result<V, Failure>,
    pub(crate) cost: Duration,
}

/// The setup of a generation, before it has a place among the others.
pub(crate) struct Setup<'a> {
    pub(crate) digest: Digest,
    pub(crate) config_json: &'a str,
    pub(crate) limits: SlotLimits,
    pub(crate) live: &'a Arc<AtomicUsize>,
}

impl<S: Slot> Generation<S> {
    /// Links, describes and configures it, all in a throwaway instance first, and makes the first warm ones.
    ///
    /// # Errors
    /// `link`, `bad-info`, `configure-refused` and `configure-failed`.
    pub(crate) fn set_up(engine: &Engine, checked: &Checked, setup: &Setup<'_>) -> Result<Self, LoadError> {
        let linked = link::<S>(engine, checked)?;
        let log = GuestLog::new(S::NAME, setup.digest.short());
        let info = describe::<S>(engine, &linked, &setup.limits, &log)?;
        let generation = Self {
            digest: setup.digest,
            info,
            log,
            engine: engine.clone(),
            linked,
            config_json: setup.config_json.to_string(),
            limits: setup.limits,
            idle: Mutex::default(),
            is_warming: AtomicBool::new(false),
            _live: Live::new(setup.live),
        };
        let first = generation.configured(SETUP_DEADLINE_MS).map_err(Unready::into_load_error)?;
        generation.put_back(first);
        generation.warm().map_err(Unready::into_load_error)?;
        Ok(generation)
    }

    /// Makes as many instances as one has that begins to serve.
    fn warm(&self) -> Result<(), Unready> {
        let warm = self.idle().len();
        for _ in warm..WARM_AT_START.min(self.limits.instances_max) {
            self.put_back(self.configured(SETUP_DEADLINE_MS)?);
        }
        Ok(())
    }

    /// It serves again, or has too few instances; meanwhile a decision makes its own one if need be.
    pub(crate) fn warm_later(self: &Arc<Self>) {
        if self.is_warming.swap(true, Ordering::Relaxed) {
            return;
        }
        let warming = Warming(Arc::clone(self));
        // One that cannot be made any more is told by the decision that needs it.
        self.engine.later(move || drop(warming.0.warm()));
    }

    /// It serves no more, but may again: one instance is kept.
    pub(crate) fn put_aside(&self) {
        let mut idle = self.idle();
        let kept = idle.len().min(1);
        let surplus = idle.split_off(kept);
        drop(idle);
        self.engine.later(move || drop(surplus));
    }

    /// One decision, by a warm instance if there is one. `id` is the decision's, for the log.
    pub(crate) fn ask(self: &Arc<Self>, question: &S::Question, id: u64) -> Asked<S::Verdict> {
        let deadline_ms = self.limits.deadline_ms;
        let warm = self.idle().pop();
        let mut instance = match warm.map_or_else(|| self.configured(deadline_ms), Ok) {
            Ok(instance) => instance,
            Err(unready) => {
                self.warm_later();
                return Asked { answer: Err(unready.into_failure()), cost: Duration::ZERO };
            }
        };
        let begun = Instant::now();
        let answer = instance.ask(question, deadline_ms);
        let cost = begun.elapsed();
        instance.log_output(&self.log, S::moment(question).now_ms, Some(id));
        match &answer {
            Err(failure) if failure.instance_lost => self.replace(instance),
            _ => self.put_back(instance),
        }
        Asked { answer, cost }
    }

    /// A lost instance is freed, and a successor warmed, where no decision waits for it.
    fn replace(self: &Arc<Self>, lost: Instance<S>) {
        let generation = Arc::downgrade(self);
        self.engine.later(move || {
            drop(lost);
            let Some(generation) = generation.upgrade() else {
                return;
            };
            if generation.idle().len() < generation.limits.instances_max
                && let Ok(instance) = generation.configured(SETUP_DEADLINE_MS)
            {
                generation.put_back(instance);
            }
        });
    }

    fn put_back(&self, instance: Instance<S>) {
        let mut idle = self.idle();
        if idle.len() < self.limits.instances_max {
            idle.push(instance);
        }
    }

    fn configured(&self, deadline_ms: u64) -> Result<Instance<S>, Unready> {
        let mut instance =
            Instance::new(&self.engine, &self.linked, &self.limits, deadline_ms).map_err(Unready::Failed)?;
        let configured = instance.configure(&self.config_json, deadline_ms);
        instance.log_output(&self.log, 0, None);
        configured.map_err(Unready::Failed)?.map_err(Unready::Refused)?;
        Ok(instance)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Instance<S>>> {
        self.idle.lock()
    }
}

/// Resolves the imports and the exports; the types must fit exactly.
pub(crate) fn link<S: Slot>(engine: &Engine, checked: &Checked) -> Result<S::Linked, LoadError> {
    let misfit = |error: wasmtime::Error| LoadError::Link(crate::text::bounded(&format!("{error:#}"), 1024));
    let pre = engine.linker().instantiate_pre(&checked.component).map_err(misfit)?;
    S::link(pre).map_err(misfit)
}

/// Asks a throwaway instance what it is.
pub(crate) fn describe<S: Slot>(
    engine: &Engine,
    linked: &S::Linked,
    limits: &SlotLimits,
    log: &GuestLog,
) -> Result<Info, LoadError> {
    let failed = |failure: Failure| Unready::Failed(failure).into_load_error();
    let mut instance = Instance::<S>::new(engine, linked, limits, SETUP_DEADLINE_MS).map_err(failed)?;
    let info = instance.describe();
    instance.log_output(log, 0, None);
    let info = info.map_err(failed)?;
    info.check().map_err(LoadError::BadInfo)?;
    Ok(info)
}

/// Why there is no configured instance.
enum Unready {
    Failed(Failure),
    Refused(String),
}

impl Unready {
    fn into_load_error(self) -> LoadError {
        match self {
            Self::Failed(failure) => {
                LoadError::ConfigureFailed(format!("{}: {}", failure.kind.as_str(), failure.message))
            }
            Self::Refused(refusal) => LoadError::ConfigureRefused(refusal),
        }
    }

    fn into_failure(self) -> Failure {
        // A load gives the set-up more time than a decision has: what is slow to set up is not bad.
        let is_borne = matches!(&self, Self::Failed(failure) if failure.kind == FailureKind::Deadline);
        let message = match self {
            Self::Failed(failure) => format!("{}: {}", failure.kind.as_str(), failure.message),
            Self::Refused(refusal) => format!("refused its configuration: {refusal}"),
        };
        Failure { kind: FailureKind::Instantiate, message, instance_lost: true, is_borne }
    }
}

/// A generation that is warmed; the end of it is the end of that, for a job that is never run too.
struct Warming<S: Slot>(Arc<Generation<S>>);

impl<S: Slot> Drop for Warming<S> {
    fn drop(&mut self) {
        self.0.is_warming.store(false, Ordering::Relaxed);
    }
}

/// One generation in the gauge of those not yet dropped.
struct Live(Arc<AtomicUsize>);

impl Live {
    fn new(gauge: &Arc<AtomicUsize>) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(gauge))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
