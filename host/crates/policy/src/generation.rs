//! One generation of a slot's policy: a module with its configuration, and its warm instances.

use crate::component::Checked;
use crate::contract::Info;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::error::{Failure, FailureKind, LoadError};
use crate::instance::{Instance, SETUP_DEADLINE_MS};
use crate::limits::SlotLimits;
use crate::output::GuestLog;
use crate::slot::Slot;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many instances are made before a generation begins to serve.
const WARM_AT_START: usize = 4;

pub(crate) struct Generation<S: Slot> {
    /// Grows with each change of what serves the slot.
    pub(crate) number: u64,
    pub(crate) digest: Digest,
    pub(crate) info: Info,
    pub(crate) log: GuestLog,
    engine: Engine,
    linked: S::Linked,
    config_json: String,
    limits: SlotLimits,
    /// A mutex, not a channel: it is held for a push or a pop, and the last one used has the warmest caches.
    idle: Mutex<Vec<Instance<S>>>,
    /// Counts itself out when the generation is dropped.
    _live: Live,
}

/// The setup of a generation, before it has a place among the others.
pub(crate) struct Setup<'a> {
    pub(crate) number: u64,
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
            number: setup.number,
            digest: setup.digest,
            info,
            log,
            engine: engine.clone(),
            linked,
            config_json: setup.config_json.to_string(),
            limits: setup.limits,
            idle: Mutex::default(),
            _live: Live::new(setup.live),
        };
        let first = generation.configured(SETUP_DEADLINE_MS).map_err(Unready::into_load_error)?;
        generation.put_back(first);
        for _ in 1..WARM_AT_START.min(setup.limits.instances_max) {
            let another = generation.configured(SETUP_DEADLINE_MS).map_err(Unready::into_load_error)?;
            generation.put_back(another);
        }
        Ok(generation)
    }

    /// One decision, by a warm instance if there is one.
    pub(crate) fn ask(self: &Arc<Self>, question: &S::Question) -> Result<S::Verdict, Failure> {
        let deadline_ms = self.limits.deadline_ms;
        let warm = self.idle().pop();
        let mut instance = match warm {
            Some(instance) => instance,
            None => self.configured(deadline_ms).map_err(Unready::into_failure)?,
        };
        let answer = instance.ask(question, deadline_ms);
        instance.log_output(&self.log, S::moment(question).now_ms);
        match &answer {
            Err(failure) if failure.instance_lost => self.replace(instance),
            _ => self.put_back(instance),
        }
        answer
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
        instance.log_output(&self.log, 0);
        configured.map_err(Unready::Failed)?.map_err(Unready::Refused)?;
        Ok(instance)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Instance<S>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
    instance.log_output(log, 0);
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
        let message = match self {
            Self::Failed(failure) => format!("{}: {}", failure.kind.as_str(), failure.message),
            Self::Refused(refusal) => format!("refused its configuration: {refusal}"),
        };
        Failure { kind: FailureKind::Instantiate, message, instance_lost: true }
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
