//! Loads a policy into a slot or an arm, and unloads it.

use super::arms::ArmError;
use super::history::Standing;
use super::policy::{ActiveGeneration, Policy};
use super::status::LoadFailure;
use crate::contract::{Info, Slot};
use crate::guest::{Digest, Generation, LoadError, check_bytes, check_for};
use crate::text::bounded;
use std::sync::Arc;

const MESSAGE_MAX_BYTES: usize = 1024;

/// A policy that was compiled, checked, configured and warmed, and serves nothing yet.
pub struct Prepared<S: Slot> {
    generation: Generation<S>,
}

impl<S: Slot> Prepared<S> {
    /// Digest of module, configuration and contract.
    pub fn digest(&self) -> Digest {
        self.generation.digest()
    }

    /// The policy's description of itself.
    pub fn info(&self) -> &Info {
        self.generation.info()
    }
}

/// What serves after a change that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadReport {
    /// False if the same generation served already.
    pub changed: bool,
    /// Number of the generation that serves now.
    pub generation: u64,
    /// Its digest.
    pub digest: Digest,
    /// The policy's description of itself.
    pub info: Info,
}

impl LoadReport {
    pub(super) fn new<S: Slot>(serving: &Generation<S>, number: u64, changed: bool) -> Self {
        Self { changed, generation: number, digest: serving.digest(), info: serving.info().clone() }
    }
}

impl<S: Slot> Policy<S> {
    /// Loads a policy: checks it in every way, warms it, and switches to it last. Takes as long as a compilation, so
    /// call it outside async workers. What served goes on serving meanwhile, and also if the load fails. The same bytes
    /// may be loaded again.
    ///
    /// # Errors
    /// See [`LoadError`]; [`Policy::status`] reports it too.
    pub fn load(&self, wasm: &[u8], config_json: &str) -> Result<LoadReport, LoadError> {
        self.load_as(wasm, config_json, Standing::Newest)
    }

    /// As [`Policy::load`], also for a good policy that was kept elsewhere and is not the newest; then the error of the
    /// last load stays. A last good one replaces neither another policy nor one that [`Policy::unload`] took away. An
    /// undone one does, and what served is not kept.
    ///
    /// # Errors
    /// As for [`Policy::load`].
    pub fn load_as(&self, wasm: &[u8], config_json: &str, standing: Standing) -> Result<LoadReport, LoadError> {
        let _loading = self.loading.lock();
        let digest = Digest::of_generation(wasm, config_json);
        let loaded = match self.keep_serving(&digest, standing) {
            Some(report) => Ok(report),
            None => self.prepare(wasm, config_json).and_then(|prepared| self.switch_as(prepared, standing)),
        };
        if standing == Standing::Newest {
            self.note_load(digest, loaded.as_ref().err());
        }
        loaded
    }

    /// Does everything of a load but the switch; several policies may be prepared at once. [`Policy::status`] does not
    /// report an error.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn prepare(&self, wasm: &[u8], config_json: &str) -> Result<Prepared<S>, LoadError> {
        check_bytes(wasm)?;
        let digest = Digest::of_generation(wasm, config_json);
        self.history.lock().check_quarantine(&digest)?;
        let checked = check_for(S::NAME, &self.engine, wasm)?;
        let generation = Generation::new(&self.engine, &checked, digest, config_json, self.limits, &self.live)?;
        Ok(Prepared { generation })
    }

    /// Switches the slot to a prepared policy. Decisions under way end in the one before, which is kept for
    /// [`Policy::undo`].
    ///
    /// # Errors
    /// [`LoadError::Quarantined`] if it was quarantined since it was prepared.
    pub fn switch(&self, prepared: Prepared<S>) -> Result<LoadReport, LoadError> {
        self.switch_as(prepared, Standing::Newest)
    }

    /// Records for [`Policy::status`] whether the last load failed. [`Policy::load`] calls this itself.
    pub fn note_load(&self, digest: Digest, error: Option<&LoadError>) {
        *self.last_load_error.lock() = error.map(|error| LoadFailure::new(error, Some(digest)));
    }

    /// Records for [`Policy::status`] that the policy's file could not be read. What serves goes on serving.
    pub fn note_unreadable(&self, message: &str) -> LoadError {
        let error = LoadError::Unreadable(bounded(message, MESSAGE_MAX_BYTES));
        *self.last_load_error.lock() = Some(LoadFailure::new(&error, None));
        error
    }

    /// Goes back to the native rule. What served is kept for [`Policy::undo`].
    pub fn unload(&self) {
        let mut history = self.history.lock();
        if let Some(before) = self.activate(&mut history, None, Standing::Newest) {
            history.keep(before);
        }
        history.is_taken_away = true;
        *self.last_load_error.lock() = None;
    }

    /// Sets an arm, which answers beside what serves, or replaces the arm of that name.
    ///
    /// # Errors
    /// If the slot has [`ARMS_MAX`](crate::ARMS_MAX) others.
    pub fn set_arm(&self, arm: Arc<str>, prepared: Prepared<S>) -> Result<(), ArmError> {
        self.arms.set(arm, prepared.generation)
    }

    /// Removes an arm. Returns whether it existed.
    pub fn clear_arm(&self, arm: &str) -> bool {
        self.arms.clear(arm)
    }

    /// If this digest serves already, gives it this standing.
    fn keep_serving(&self, digest: &Digest, standing: Standing) -> Option<LoadReport> {
        let mut history = self.history.lock();
        let active = self.active.load();
        let active = active.as_ref().filter(|active| active.generation.digest() == *digest)?;
        history.set_standing(standing);
        Some(LoadReport::new(&active.generation, active.number, false))
    }

    fn switch_as(&self, prepared: Prepared<S>, standing: Standing) -> Result<LoadReport, LoadError> {
        let mut history = self.history.lock();
        let digest = prepared.digest();
        history.check_quarantine(&digest)?;
        if standing == Standing::LastGood && history.is_taken_away {
            return Err(LoadError::Unreadable("what was loaded last was taken away meanwhile".to_owned()));
        }
        // A last good policy is only for a slot that no policy serves: another load meanwhile was intended.
        let stays =
            |active: &&Arc<ActiveGeneration<S>>| standing == Standing::LastGood || active.generation.digest() == digest;
        if let Some(active) = self.active.load().as_ref().filter(stays) {
            if active.generation.digest() == digest {
                history.set_standing(standing);
            }
            return Ok(LoadReport::new(&active.generation, active.number, false));
        }
        history.forget(&digest);
        let next = Arc::new(prepared.generation);
        match self.activate(&mut history, Some(Arc::clone(&next)), standing) {
            Some(before) if standing == Standing::Undone => history.note_undone(before.generation.digest()),
            Some(before) => history.keep(before),
            None => {}
        }
        Ok(LoadReport::new(&next, history.number, true))
    }
}
