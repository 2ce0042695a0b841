//! Collects what decisions leave behind for experiments until it is flushed to the store: exposed units, sums of users, and
//! disagreements of shadows. A decision only takes a short lock. What finds no room is counted and dropped.

use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use pointwork_core::experiments::Experiment;

/// The most units between two flushes, of all experiments together.
const UNITS_MAX: usize = 100_000;
/// The most questions that wait for the shadows' thread.
const SHADOWS_MAX: usize = 1_024;
/// The most matrix cells between two flushes.
const CELLS_MAX: usize = 10_000;

/// How a call can fail.
pub(crate) const ERROR_KINDS: [&str; 6] =
    ["not_available", "same_socket", "disconnected", "timeout", "unusable", "unreachable"];

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedCall {
    /// `success`, or one of [`ERROR_KINDS`].
    pub(crate) result: &'static str,
    /// From its arrival until it was sent to a daemon, or ended.
    pub(crate) waited: Duration,
    /// From its arrival until it ended.
    pub(crate) took: Duration,
}

/// What was counted for a user since the last flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserDelta {
    pub(crate) arm: usize,
    pub(crate) weights: Vec<u32>,
    pub(crate) horizon_ms: u32,
    /// When the first event was.
    pub(crate) at_ms: u64,
    /// By name; a count of 0 is left out.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

/// A cell of the matrix of disagreements: the treatment, what the slot decided, and what the treatment would have decided.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct DisagreementCell {
    pub(crate) arm: String,
    pub(crate) served: String,
    pub(crate) shadow: String,
}

/// What was collected since the last flush, by the experiment's id.
#[derive(Debug, Default)]
pub(crate) struct OutboxContent {
    pub(crate) exposed: HashMap<Arc<str>, BTreeSet<String>>,
    pub(crate) users: HashMap<Arc<str>, BTreeMap<String, UserDelta>>,
    pub(crate) cells: HashMap<Arc<str>, HashMap<DisagreementCell, u64>>,
    units: usize,
    cell_count: usize,
}

type ShadowQuestion = Box<dyn FnOnce() + Send>;

/// A user, and the arm of an experiment that decides about its calls.
pub(crate) struct UserInArm<'a> {
    pub(crate) id: &'a Arc<str>,
    pub(crate) experiment: &'a Experiment,
    pub(crate) unit: &'a str,
    pub(crate) arm: usize,
}

/// Collects results for the next flush.
pub(crate) struct ExperimentOutbox {
    content: Mutex<OutboxContent>,
    dropped: AtomicU64,
    shadows: SyncSender<ShadowQuestion>,
    shadows_dropped: AtomicU64,
}

impl ExperimentOutbox {
    /// Starts the thread that asks shadows. It ends when the outbox is dropped.
    pub(crate) fn start() -> std::io::Result<Arc<Self>> {
        let (shadows, questions) = sync_channel::<ShadowQuestion>(SHADOWS_MAX);
        std::thread::Builder::new().name("shadows".to_owned()).spawn(move || {
            questions.into_iter().for_each(|question| question());
        })?;
        Ok(Arc::new(Self {
            content: Mutex::default(),
            dropped: AtomicU64::new(0),
            shadows,
            shadows_dropped: AtomicU64::new(0),
        }))
    }

    /// Notes that a device is exposed.
    pub(crate) fn expose(&self, experiment: &Arc<str>, device: &str) {
        let mut content = self.content.lock();
        let is_known = content.exposed.get(experiment).is_some_and(|devices| devices.contains(device));
        if is_known {
            return;
        }
        if content.units >= UNITS_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        content.units += 1;
        content.exposed.entry(experiment.clone()).or_default().insert(device.to_owned());
    }

    /// Notes a decision about a call of a user.
    pub(crate) fn user_decided(&self, user: &UserInArm<'_>, is_failed: bool, at_ms: u64) {
        self.count_for(user, at_ms, |counts| {
            *counts.entry("decisions").or_default() += 1;
            if is_failed {
                *counts.entry("failures").or_default() += 1;
            }
        });
    }

    /// Notes the end of a call of a user.
    pub(crate) fn call_ended(&self, user: &UserInArm<'_>, call: &EndedCall, at_ms: u64) {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.count_for(user, at_ms, |counts| {
            *counts.entry("calls").or_default() += 1;
            *counts.entry("waited_us").or_default() += micros(call.waited);
            *counts.entry(call.result).or_default() += 1;
            if call.result == "success" {
                *counts.entry("took_us").or_default() += micros(call.took);
            }
        });
    }

    fn count_for(&self, user: &UserInArm<'_>, at_ms: u64, count: impl FnOnce(&mut BTreeMap<&'static str, u64>)) {
        let mut content = self.content.lock();
        let OutboxContent { users, units, .. } = &mut *content;
        let users = users.entry(user.id.clone()).or_default();
        if !users.contains_key(user.unit) {
            if *units >= UNITS_MAX {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            *units += 1;
            let (weights, horizon_ms) = (user.experiment.weights.clone(), user.experiment.horizon_ms);
            let delta = UserDelta { arm: user.arm, weights, horizon_ms, at_ms, counts: BTreeMap::new() };
            users.insert(user.unit.to_owned(), delta);
        }
        if let Some(delta) = users.get_mut(user.unit).filter(|delta| delta.arm == user.arm) {
            count(&mut delta.counts);
        }
    }

    /// Asks a shadow on its own thread.
    pub(crate) fn ask_shadow(&self, question: ShadowQuestion) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.shadows.try_send(question) {
            self.shadows_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes what a shadow answered.
    pub(crate) fn note_shadow(&self, experiment: &Arc<str>, cell: DisagreementCell) {
        let mut content = self.content.lock();
        let content = &mut *content;
        let cells = content.cells.entry(experiment.clone()).or_default();
        if let Some(count) = cells.get_mut(&cell) {
            *count += 1;
        } else if content.cell_count < CELLS_MAX {
            content.cell_count += 1;
            cells.insert(cell, 1);
        } else {
            self.shadows_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes what was collected.
    pub(crate) fn take(&self) -> OutboxContent {
        std::mem::take(&mut *self.content.lock())
    }

    /// How many units and how many shadow questions found no room since the start.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        (self.dropped.load(Ordering::Relaxed), self.shadows_dropped.load(Ordering::Relaxed))
    }
}
