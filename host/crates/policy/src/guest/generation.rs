//! Keeps the warm instances of one generation: a module with its configuration.

use super::component::CheckedComponent;
use super::digest::Digest;
use super::instance::{GuestAnswer, Instance, SETUP_DEADLINE_MS};
use super::load_error::LoadError;
use super::log::GuestLog;
use super::prototype::{Prototype, SetupError};
use crate::contract::{Info, Slot};
use crate::engine::Engine;
use crate::sandbox::SlotLimits;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many instances are made before a generation begins to serve.
const WARM_AT_START: usize = 4;

pub(crate) struct Generation<S: Slot> {
    prototype: Prototype<S>,
    /// A mutex, not a channel: it is held for a push or a pop, and the last one used has the warmest caches.
    idle: Mutex<Vec<Instance<S>>>,
    /// Instances are being made in the background.
    is_warming: AtomicBool,
    /// Counts this generation until it is dropped.
    _live: Arc<()>,
}

impl<S: Slot> Generation<S> {
    /// Links and describes a policy, and makes and configures the first instances. `live` has a clone in each
    /// generation that is not dropped yet.
    ///
    /// # Errors
    /// `link`, `bad-info`, `configure-refused` and `configure-failed`.
    pub(crate) fn new(
        engine: &Engine,
        checked: &CheckedComponent,
        digest: Digest,
        config_json: &str,
        limits: SlotLimits,
        live: &Arc<()>,
    ) -> Result<Self, LoadError> {
        let generation = Self {
            prototype: Prototype::new(engine, checked, digest, config_json, limits)?,
            idle: Mutex::default(),
            is_warming: AtomicBool::new(false),
            _live: Arc::clone(live),
        };
        let first = generation.new_instance(SETUP_DEADLINE_MS)?;
        generation.put_back(first);
        generation.warm()?;
        Ok(generation)
    }

    /// Digest of module, configuration and contract.
    pub(crate) fn digest(&self) -> Digest {
        self.prototype.digest
    }

    /// The policy's description of itself.
    pub(crate) fn info(&self) -> &Info {
        &self.prototype.info
    }

    pub(crate) fn log(&self) -> &GuestLog {
        &self.prototype.log
    }

    /// Makes instances until there are as many as at the start.
    fn warm(&self) -> Result<(), SetupError> {
        let idle = self.idle.lock().len();
        for _ in idle..WARM_AT_START.min(self.prototype.limits.instances_max) {
            self.put_back(self.new_instance(SETUP_DEADLINE_MS)?);
        }
        Ok(())
    }

    /// Makes instances in the background, for a generation that serves again or has too few. Meanwhile a decision makes
    /// its own instance if there is none.
    pub(crate) fn warm_later(self: &Arc<Self>) {
        if self.is_warming.swap(true, Ordering::Relaxed) {
            return;
        }
        let warming = Warming(Arc::clone(self));
        // If no instance can be made, the next decision that needs one reports it.
        self.prototype.engine.run_later(move || drop(warming.0.warm()));
    }

    /// Frees all instances but one, for a generation that serves no more but may serve again.
    pub(crate) fn put_aside(&self) {
        let mut idle = self.idle.lock();
        let kept = idle.len().min(1);
        let surplus = idle.split_off(kept);
        drop(idle);
        self.prototype.engine.run_later(move || drop(surplus));
    }

    /// Asks a warm instance for a verdict, or a new one if none is idle. `decision` is its id, for the log.
    pub(crate) fn ask(self: &Arc<Self>, question: &S::Question, decision: u64) -> GuestAnswer<S::Verdict> {
        let deadline_ms = self.prototype.limits.deadline_ms;
        let warm = self.idle.lock().pop();
        let mut instance = match warm.map_or_else(|| self.new_instance(deadline_ms), Ok) {
            Ok(instance) => instance,
            Err(error) => {
                self.warm_later();
                return GuestAnswer { verdict: Err(error.into()), cost: Duration::ZERO };
            }
        };
        let answer = instance.ask(question, deadline_ms);
        instance.log_output(self.log(), S::moment(question).now_ms, Some(decision));
        match &answer.verdict {
            Err(failure) if failure.instance_lost => self.replace_later(instance),
            _ => self.put_back(instance),
        }
        answer
    }

    /// Frees a lost instance and makes its successor, in the background.
    fn replace_later(self: &Arc<Self>, lost: Instance<S>) {
        let generation = Arc::downgrade(self);
        self.prototype.engine.run_later(move || {
            drop(lost);
            let Some(generation) = generation.upgrade() else {
                return;
            };
            if generation.idle.lock().len() < generation.prototype.limits.instances_max
                && let Ok(instance) = generation.new_instance(SETUP_DEADLINE_MS)
            {
                generation.put_back(instance);
            }
        });
    }

    fn put_back(&self, instance: Instance<S>) {
        let mut idle = self.idle.lock();
        if idle.len() < self.prototype.limits.instances_max {
            idle.push(instance);
        }
    }

    fn new_instance(&self, deadline_ms: u64) -> Result<Instance<S>, SetupError> {
        self.prototype.instance(deadline_ms, |instance| instance.log_output(self.log(), 0, None))
    }
}

/// A generation that is being warmed. Dropping it ends the warming, also if the job never runs.
struct Warming<S: Slot>(Arc<Generation<S>>);

impl<S: Slot> Drop for Warming<S> {
    fn drop(&mut self) {
        self.0.is_warming.store(false, Ordering::Relaxed);
    }
}
