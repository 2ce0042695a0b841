//! What decisions leave behind for experiments until it is brought to the store, every half second: who was exposed, what became
//! of users' calls, how shadows disagreed. A decision pays for a short lock; what finds no room is counted and dropped.

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

use pointwork_core::experiment::Experiment;

/// Units that wait for the next flush at most, of all experiments together.
const WAITING_MAX: usize = 100_000;
/// Shadow questions that wait for their turn.
const SHADOWS_MAX: usize = 1_024;
/// Cells of a matrix that wait for the next flush.
const CELLS_MAX: usize = 10_000;

/// How a call can end but by an answer.
pub(crate) const ERROR_KINDS: [&str; 6] =
    ["not_available", "same_socket", "disconnected", "timeout", "unusable", "unreachable"];

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answered {
    /// `success`, or one of [`ERROR_KINDS`].
    pub(crate) result: &'static str,
    /// From its arrival until it was sent to a daemon, or ended.
    pub(crate) waited: Duration,
    /// From its arrival until it ended.
    pub(crate) took: Duration,
}

/// What became of a user since the last flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserDelta {
    pub(crate) arm: usize,
    pub(crate) weights: Vec<u32>,
    pub(crate) horizon_ms: u32,
    /// When the first of it was.
    pub(crate) at_ms: u64,
    /// By name; those that are 0 are not there.
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

/// A cell of a matrix: the treatment, what the slot decided, what the treatment would have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) arm: String,
    pub(crate) served: String,
    pub(crate) shadow: String,
}

/// All that waits, by the experiment's id.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) exposed: HashMap<Arc<str>, BTreeSet<String>>,
    pub(crate) users: HashMap<Arc<str>, BTreeMap<String, UserDelta>>,
    pub(crate) cells: HashMap<Arc<str>, HashMap<Cell, u64>>,
    units: usize,
    cell_count: usize,
}

type Question = Box<dyn FnOnce() + Send>;

/// See the head of this file.
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    dropped: AtomicU64,
    shadows: SyncSender<Question>,
    shadows_dropped: AtomicU64,
}

impl Outbox {
    /// Starts the thread that asks shadows. It ends with the outbox.
    pub(crate) fn start() -> std::io::Result<Arc<Self>> {
        let (shadows, questions) = sync_channel::<Question>(SHADOWS_MAX);
        std::thread::Builder::new().name("shadows".to_owned()).spawn(move || {
            questions.into_iter().for_each(|question| question());
        })?;
        Ok(Arc::new(Self {
            waiting: Mutex::default(),
            dropped: AtomicU64::new(0),
            shadows,
            shadows_dropped: AtomicU64::new(0),
        }))
    }

    /// A device is exposed.
    pub(crate) fn expose(&self, experiment: &Arc<str>, device: &str) {
        let mut waiting = self.waiting.lock();
        let is_known = waiting.exposed.get(experiment).is_some_and(|devices| devices.contains(device));
        if is_known {
            return;
        }
        if waiting.units >= WAITING_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.units += 1;
        waiting.exposed.entry(experiment.clone()).or_default().insert(device.to_owned());
    }

    /// A decision about a call of a user was taken.
    pub(crate) fn user_decided(
        &self,
        id: &Arc<str>,
        unit: &str,
        arm: usize,
        experiment: &Experiment,
        is_failed: bool,
        at_ms: u64,
    ) {
        self.with_user(id, unit, arm, experiment, at_ms, |counts| {
            *counts.entry("decisions").or_default() += 1;
            if is_failed {
                *counts.entry("failures").or_default() += 1;
            }
        });
    }

    /// A call of a user ended.
    pub(crate) fn user_answered(
        &self,
        id: &Arc<str>,
        unit: &str,
        arm: usize,
        experiment: &Experiment,
        answered: &Answered,
        at_ms: u64,
    ) {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.with_user(id, unit, arm, experiment, at_ms, |counts| {
            *counts.entry("calls").or_default() += 1;
            *counts.entry("waited_us").or_default() += micros(answered.waited);
            *counts.entry(answered.result).or_default() += 1;
            if answered.result == "success" {
                *counts.entry("took_us").or_default() += micros(answered.took);
            }
        });
    }

    fn with_user(
        &self,
        id: &Arc<str>,
        unit: &str,
        arm: usize,
        experiment: &Experiment,
        at_ms: u64,
        count: impl FnOnce(&mut BTreeMap<&'static str, u64>),
    ) {
        let mut waiting = self.waiting.lock();
        let waiting = &mut *waiting;
        let users = waiting.users.entry(id.clone()).or_default();
        if !users.contains_key(unit) {
            if waiting.units >= WAITING_MAX {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            waiting.units += 1;
            let weights = experiment.weights.clone();
            let horizon_ms = experiment.horizon_ms;
            users.insert(unit.to_owned(), UserDelta { arm, weights, horizon_ms, at_ms, counts: BTreeMap::new() });
        }
        if let Some(delta) = users.get_mut(unit).filter(|delta| delta.arm == arm) {
            count(&mut delta.counts);
        }
    }

    /// Has a shadow asked, off the path of the decision.
    pub(crate) fn ask_shadow(&self, question: Question) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.shadows.try_send(question) {
            self.shadows_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A shadow answered.
    pub(crate) fn note_shadow(&self, experiment: &Arc<str>, cell: Cell) {
        let mut waiting = self.waiting.lock();
        let waiting = &mut *waiting;
        let cells = waiting.cells.entry(experiment.clone()).or_default();
        if let Some(count) = cells.get_mut(&cell) {
            *count += 1;
        } else if waiting.cell_count < CELLS_MAX {
            waiting.cell_count += 1;
            cells.insert(cell, 1);
        } else {
            self.shadows_dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes all that waits.
    pub(crate) fn take(&self) -> Waiting {
        std::mem::take(&mut *self.waiting.lock())
    }

    /// Exposures that found no room, and shadow questions that did not, since the start.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        (self.dropped.load(Ordering::Relaxed), self.shadows_dropped.load(Ordering::Relaxed))
    }
}
