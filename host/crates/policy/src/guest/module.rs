//! A policy that serves nothing: asked beside a host, to see what it would answer.

use crate::contract::Info;
use crate::contract::slot::Slot;
use crate::engine::Engine;
use crate::guest::Digest;
use crate::guest::component::check;
use crate::guest::generation::{describe, link};
use crate::guest::instance::{Instance, SETUP_DEADLINE_MS};
use crate::guest::log::GuestLog;
use crate::guest::{Failure, FailureKind, LoadError};
use crate::sandbox::SlotLimits;
use std::time::{Duration, Instant};

/// A module with its configuration: compiled, checked and configured as for a load. What it prints is dropped.
pub struct Module<S: Slot> {
    engine: Engine,
    linked: S::Linked,
    limits: SlotLimits,
    config_json: String,
    digest: Digest,
    info: Info,
}

/// An answer of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<V> {
    /// Its verdict, or why there is none.
    pub verdict: Result<V, AskError>,
    /// How long the guest took.
    pub cost: Duration,
}

/// Why a module gave no verdict: where it serves, the native rule would answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .kind.as_str())]
pub struct AskError {
    /// The kind.
    pub kind: FailureKind,
    /// Bounded; the guest's own words and functions.
    pub message: String,
}

impl<S: Slot> Module<S> {
    /// Checks it in every way that a load does.
    ///
    /// # Errors
    /// As of a load.
    pub fn new(engine: &Engine, wasm: &[u8], config_json: &str, limits: SlotLimits) -> Result<Self, LoadError> {
        let checked = check(engine, wasm)?;
        if checked.slot != S::NAME {
            return Err(LoadError::WrongWorld { found: checked.slot.world(), wanted: S::NAME.world() });
        }
        let linked = link::<S>(engine, &checked)?;
        let digest = Digest::of_generation(wasm, config_json);
        let info = describe::<S>(engine, &linked, &limits, &GuestLog::new(S::NAME, digest.short()))?;
        let module = Self { engine: engine.clone(), linked, limits, config_json: config_json.to_owned(), digest, info };
        let configured = module.configured().map_err(|error| LoadError::ConfigureFailed(told(&error)))?;
        configured.map_err(LoadError::ConfigureRefused)?;
        Ok(module)
    }

    /// The digest that its generation has where it serves.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What it says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Somebody who asks it, one question after the other in one instance.
    pub fn asker(&self) -> Asker<'_, S> {
        Asker { module: self, instance: None }
    }

    fn configured(&self) -> Result<Result<Instance<S>, String>, Failure> {
        let mut instance = Instance::new(&self.engine, &self.linked, &self.limits, SETUP_DEADLINE_MS)?;
        let configured = instance.configure(&self.config_json, SETUP_DEADLINE_MS)?;
        instance.forget_output();
        Ok(configured.map(|()| instance))
    }
}

/// Asks a module. An instance that trapped is replaced, as where it serves.
pub struct Asker<'a, S: Slot> {
    module: &'a Module<S>,
    instance: Option<Instance<S>>,
}

impl<S: Slot> Asker<'_, S> {
    /// One question, within the deadline of the module's limits.
    pub fn ask(&mut self, question: &S::Question) -> Answer<S::Verdict> {
        let mut instance = match self.instance.take().map_or_else(|| self.fresh(), Ok) {
            Ok(instance) => instance,
            Err(error) => return Answer { verdict: Err(error), cost: Duration::ZERO },
        };
        let begun = Instant::now();
        let answer = instance.ask(question, self.module.limits.deadline_ms);
        let cost = begun.elapsed();
        instance.forget_output();
        if !answer.as_ref().is_err_and(|failure| failure.instance_lost) {
            self.instance = Some(instance);
        }
        Answer { verdict: answer.map_err(|failure| AskError { kind: failure.kind, message: failure.message }), cost }
    }

    /// The next question is asked in an instance that has answered none.
    pub fn renew(&mut self) {
        self.instance = None;
    }

    fn fresh(&self) -> Result<Instance<S>, AskError> {
        let failed = |message: String| AskError { kind: FailureKind::Instantiate, message };
        match self.module.configured() {
            Ok(Ok(instance)) => Ok(instance),
            Ok(Err(refusal)) => Err(failed(format!("refused its configuration: {refusal}"))),
            Err(failure) => Err(failed(told(&failure))),
        }
    }
}

fn told(failure: &Failure) -> String {
    format!("{}: {}", failure.kind.as_str(), failure.message)
}
