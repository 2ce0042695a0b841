//! Asks a policy that serves no slot, to see what it would answer.

use super::component::check_for;
use super::digest::Digest;
use super::failure::{Failure, FailureKind};
use super::instance::{GuestAnswer, Instance, SETUP_DEADLINE_MS};
use super::load_error::LoadError;
use super::prototype::{Prototype, SetupError};
use crate::contract::{Info, Slot};
use crate::engine::Engine;
use crate::sandbox::SlotLimits;
use std::time::Duration;

/// A module with its configuration: compiled, checked and configured as for a load. What it prints is dropped.
pub struct Module<S: Slot> {
    prototype: Prototype<S>,
}

/// An answer of a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<V> {
    /// Its verdict, or why there is none.
    pub verdict: Result<V, AskError>,
    /// How long the guest took.
    pub cost: Duration,
}

/// Why a module gave no verdict. In a slot, the native rule would answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .kind.as_str())]
pub struct AskError {
    /// The kind.
    pub kind: FailureKind,
    /// Bounded; the guest's own message and functions.
    pub message: String,
}

impl<S: Slot> Module<S> {
    /// Checks a policy in every way that a load does.
    ///
    /// # Errors
    /// As for a load.
    pub fn new(engine: &Engine, wasm: &[u8], config_json: &str, limits: SlotLimits) -> Result<Self, LoadError> {
        let checked = check_for(S::NAME, engine, wasm)?;
        let digest = Digest::of_generation(wasm, config_json);
        let module = Self { prototype: Prototype::new(engine, &checked, digest, config_json, limits)? };
        module.new_instance()?;
        Ok(module)
    }

    /// The digest that its generation would have in a slot.
    pub fn digest(&self) -> Digest {
        self.prototype.digest
    }

    /// The policy's description of itself.
    pub fn info(&self) -> &Info {
        &self.prototype.info
    }

    /// Starts to ask it, one question after the other in one instance.
    pub fn asker(&self) -> Asker<'_, S> {
        Asker { module: self, instance: None }
    }

    fn new_instance(&self) -> Result<Instance<S>, SetupError> {
        self.prototype.instance(SETUP_DEADLINE_MS, Instance::forget_output)
    }
}

/// Asks a module. An instance that trapped is replaced, as in a slot.
pub struct Asker<'a, S: Slot> {
    module: &'a Module<S>,
    instance: Option<Instance<S>>,
}

impl<S: Slot> Asker<'_, S> {
    /// Asks one question, within the deadline of the module's limits.
    pub fn ask(&mut self, question: &S::Question) -> Answer<S::Verdict> {
        let mut instance = match self.instance.take().map_or_else(|| self.module.new_instance(), Ok) {
            Ok(instance) => instance,
            Err(error) => return Answer { verdict: Err(Failure::from(error).into()), cost: Duration::ZERO },
        };
        let GuestAnswer { verdict, cost } = instance.ask(question, self.module.prototype.limits.deadline_ms);
        instance.forget_output();
        if !verdict.as_ref().is_err_and(|failure| failure.instance_lost) {
            self.instance = Some(instance);
        }
        Answer { verdict: verdict.map_err(AskError::from), cost }
    }

    /// Asks the next question in a new instance.
    pub fn renew(&mut self) {
        self.instance = None;
    }
}

impl From<Failure> for AskError {
    fn from(Failure { kind, message, .. }: Failure) -> Self {
        Self { kind, message }
    }
}
