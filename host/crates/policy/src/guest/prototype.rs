//! Makes configured instances of a policy that is linked and described.

use super::component::CheckedComponent;
use super::digest::Digest;
use super::failure::{Failure, FailureKind};
use super::instance::{Instance, SETUP_DEADLINE_MS};
use super::load_error::LoadError;
use super::log::GuestLog;
use crate::contract::{Info, Slot};
use crate::engine::Engine;
use crate::sandbox::SlotLimits;
use crate::text::bounded;

const MESSAGE_MAX_BYTES: usize = 1024;

/// A policy with its configuration, from which instances are made.
pub(super) struct Prototype<S: Slot> {
    pub(super) digest: Digest,
    pub(super) info: Info,
    pub(super) log: GuestLog,
    pub(super) engine: Engine,
    pub(super) limits: SlotLimits,
    linked: S::Linked,
    config_json: String,
}

impl<S: Slot> Prototype<S> {
    /// Links a component, whose types must fit exactly, and asks a throwaway instance for its description.
    ///
    /// # Errors
    /// `link`, `configure-failed` and `bad-info`.
    pub(super) fn new(
        engine: &Engine,
        checked: &CheckedComponent,
        digest: Digest,
        config_json: &str,
        limits: SlotLimits,
    ) -> Result<Self, LoadError> {
        let misfit = |error: wasmtime::Error| LoadError::Link(bounded(&format!("{error:#}"), MESSAGE_MAX_BYTES));
        let pre = engine.linker().instantiate_pre(&checked.component).map_err(misfit)?;
        let linked = S::link(pre).map_err(misfit)?;
        let log = GuestLog::new(S::NAME, digest.short());
        let info = describe::<S>(engine, &linked, &limits, &log)
            .map_err(|failure| LoadError::ConfigureFailed(failure.to_string()))?;
        info.check().map_err(LoadError::BadInfo)?;
        let (engine, config_json) = (engine.clone(), config_json.to_owned());
        Ok(Self { digest, info, log, engine, limits, linked, config_json })
    }

    /// Makes an instance and configures it. `take_output` receives the instance with what it printed, even if it fails.
    pub(super) fn instance(
        &self,
        deadline_ms: u64,
        take_output: impl FnOnce(&mut Instance<S>),
    ) -> Result<Instance<S>, SetupError> {
        let mut instance = Instance::new(&self.engine, &self.linked, &self.limits, deadline_ms)?;
        let configured = instance.configure(&self.config_json, deadline_ms);
        take_output(&mut instance);
        configured?.map_err(SetupError::Refused)?;
        Ok(instance)
    }
}

fn describe<S: Slot>(
    engine: &Engine,
    linked: &S::Linked,
    limits: &SlotLimits,
    log: &GuestLog,
) -> Result<Info, Failure> {
    let mut instance = Instance::<S>::new(engine, linked, limits, SETUP_DEADLINE_MS)?;
    let info = instance.describe();
    instance.log_output(log, 0, None);
    info
}

/// Why there is no configured instance.
pub(super) enum SetupError {
    /// A call of the guest failed.
    Failed(Failure),
    /// The policy refused its configuration, with this reason.
    Refused(String),
}

impl From<Failure> for SetupError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<SetupError> for LoadError {
    fn from(error: SetupError) -> Self {
        match error {
            SetupError::Failed(failure) => Self::ConfigureFailed(failure.to_string()),
            SetupError::Refused(refusal) => Self::ConfigureRefused(refusal),
        }
    }
}

impl From<SetupError> for Failure {
    /// The failure of the decision that needed the instance.
    fn from(error: SetupError) -> Self {
        let (message, is_counted) = match error {
            // A load allows more time for the setup than a decision has: a policy with a slow setup is not at fault.
            SetupError::Failed(failure) => (failure.to_string(), failure.kind != FailureKind::Deadline),
            SetupError::Refused(refusal) => (format!("refused its configuration: {refusal}"), true),
        };
        Self { kind: FailureKind::Instantiate, message, instance_lost: true, is_counted }
    }
}
