//! Counts what becomes of a device after its exposure to an experiment. The trial is part of the device's record, so it
//! changes in the same compare-and-set as what it counts.
//!
//! It counts from the exposure until the horizon is over, and never changes after that; a span that lasts is counted up to
//! now, or the end of the horizon. What is counted ([`Outcomes`]):
//!
//! - **flips**: another socket got the session while the one that had it lived: it was evicted, and was not half-open (see
//!   *stranded*).
//! - **refused**: registers that `settle` refused.
//! - **offline**: the time in which the record, and so every dashboard, says that the device is offline.
//! - **stranded**: the time in which a socket of the device wanted the session and the one that had it was dead. By the
//!   design of the machine there is only one way to that: the holder is half-open, its end not known, and newcomers are
//!   refused in its favour. So it is counted when the holder ends: if by then nothing had been heard of it for longer than
//!   the engine's ping interval, the time since the first refusal after its last sign of life counts. Where that silence is
//!   not known (the holder's replica died, or does not answer) nothing counts, nor does what is found after the horizon.
//! - **stable**: the time to one stable socket: from the first open of the burst that the exposure belongs to until the
//!   acceptance of the first holder that is then kept for a whole settle window. A burst is a chain of opens, each less
//!   than a window after the one before; an open is known by the decision on it (accepted or refused). A holder that was
//!   there before the burst and is kept for a window from the exposure on counts as 0; without any by the end of the
//!   horizon it is the time up to that end.
//! - **decisions** and, of these, **failures**: those that fell back to the native rule because the arm's module could not
//!   answer. One counts when it was written into the record; what was decided while the store was away is in no figure.
//!
//! A device goes on being decided for when its horizon is over, perhaps in another arm. That changes nothing of the above, which
//! is what a report says; but a guardrail is to see it. So a treatment's decision that is not within the horizon, or not of the
//! arm of the exposure, begins an account of its own, [`Trial::guard`]: it counts the same things for a horizon, then the next
//! decision begins it anew. A decision of the control ends it: the control has no guardrails.

use serde::{Deserialize, Serialize};

/// A decision of `settle` in an arm, as it is written into the record together with what was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    /// The experiment's id.
    pub experiment: String,
    /// The arm's name.
    pub arm: String,
    /// It is the control's.
    pub is_control: bool,
    /// The weights of all arms at this moment, control first.
    pub weights: Vec<u32>,
    /// For so long from the first exposure on it is counted what becomes of the device, in milliseconds.
    pub horizon_ms: u32,
    /// The settle window, in milliseconds.
    pub window_ms: u32,
    /// The engine's ping interval, in milliseconds.
    pub silence_ms: u32,
    /// The arm's module could not answer: the native rule did.
    pub is_failed: bool,
}

/// The exposure of a device, and what became of it. Times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The experiment's id.
    pub experiment: Box<str>,
    /// The arm's name.
    pub arm: Box<str>,
    /// The weights of all arms at the exposure, control first.
    pub weights: Box<[u32]>,
    /// When it was exposed.
    pub exposed_ms: u64,
    /// The horizon: so many milliseconds.
    pub horizon_ms: u32,
    /// The settle window, in milliseconds.
    pub window_ms: u32,
    /// The engine's ping interval, in milliseconds.
    pub silence_ms: u32,
    /// Decisions in the arm.
    #[serde(default)]
    pub decisions: u32,
    /// Of these, those that fell back to the native rule.
    #[serde(default)]
    pub failures: u32,
    /// See the head.
    #[serde(default)]
    pub flips: u32,
    /// See the head.
    #[serde(default)]
    pub refused: u32,
    /// See the head; in milliseconds, spans that ended.
    #[serde(default)]
    pub stranded_ms: u64,
    /// See the head; in milliseconds, spans that ended.
    #[serde(default)]
    pub offline_ms: u64,
    /// Since when it is offline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_since_ms: Option<u64>,
    /// The first refusal since the holder's last sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_since_ms: Option<u64>,
    /// When the burst began.
    pub burst_ms: u64,
    /// When the holder was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_since_ms: Option<u64>,
    /// The time to one stable socket, once there was one; in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_ms: Option<u64>,
    /// See the head; has none itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Box<Trial>>,
    /// How long nothing had been heard of the holder, as far as it is known, at the change that is being made; none between
    /// changes.
    #[serde(skip)]
    pub(crate) silent_ms: Option<u32>,
}

/// What became of a device by some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcomes {
    /// See the head of [`trial`](self).
    pub flips: u32,
    /// Registers that `settle` refused.
    pub refused: u32,
    /// In milliseconds.
    pub stranded_ms: u64,
    /// In milliseconds.
    pub offline_ms: u64,
    /// In milliseconds.
    pub stable_ms: u64,
    /// There was a stable socket.
    pub is_stable: bool,
    /// Decisions in the arm.
    pub decisions: u32,
    /// Those of them that fell back to the native rule.
    pub failures: u32,
}

impl Trial {
    /// The exposure of a device, as its record was before.
    pub(crate) fn new(exposure: &Exposure, device: &ExposedDevice, unix_ms: u64) -> Trial {
        Trial {
            experiment: exposure.experiment.as_str().into(),
            arm: exposure.arm.as_str().into(),
            weights: exposure.weights.as_slice().into(),
            exposed_ms: unix_ms,
            horizon_ms: exposure.horizon_ms,
            window_ms: exposure.window_ms,
            silence_ms: exposure.silence_ms,
            offline_since_ms: device.is_offline.then_some(unix_ms),
            burst_ms: device.burst_ms,
            holder_since_ms: device.holder_since_ms,
            ..Trial::default()
        }
    }

    /// The end of the horizon.
    pub fn ends_ms(&self) -> u64 {
        self.exposed_ms.saturating_add(u64::from(self.horizon_ms))
    }

    /// Whether the horizon lasts at a moment.
    pub fn is_open(&self, unix_ms: u64) -> bool {
        unix_ms < self.ends_ms()
    }

    /// What has become of the device by a moment.
    pub fn outcomes(&self, unix_ms: u64) -> Outcomes {
        let by_ms = unix_ms.min(self.ends_ms());
        let offline_ms = self.offline_since_ms.map_or(0, |since_ms| by_ms.saturating_sub(since_ms));
        let stable_ms = self.stable_by(by_ms);
        Outcomes {
            flips: self.flips,
            refused: self.refused,
            stranded_ms: self.stranded_ms,
            offline_ms: self.offline_ms + offline_ms,
            stable_ms: stable_ms.unwrap_or_else(|| by_ms.saturating_sub(self.burst_ms)),
            is_stable: stable_ms.is_some(),
            decisions: self.decisions,
            failures: self.failures,
        }
    }

    /// Whether a decision that is taken now in an arm counts for the exposure; else it is the guard's.
    pub fn covers(&self, arm: &str, unix_ms: u64) -> bool {
        self.is_open(unix_ms) && *self.arm == *arm
    }

    /// A decision in an arm is written. `device`: as its record was before.
    pub(crate) fn decided(&mut self, exposure: &Exposure, device: &ExposedDevice, unix_ms: u64) {
        self.count(exposure.is_failed, unix_ms);
        if self.covers(&exposure.arm, unix_ms) {
            return;
        }
        if exposure.is_control {
            self.guard = None;
            return;
        }
        let known = self.guard.take().filter(|guard| guard.covers(&exposure.arm, unix_ms));
        let mut guard = known.unwrap_or_else(|| Box::new(Trial::new(exposure, device, unix_ms)));
        guard.count(exposure.is_failed, unix_ms);
        self.guard = Some(guard);
    }

    fn count(&mut self, is_failed: bool, unix_ms: u64) {
        if self.is_open(unix_ms) {
            self.decisions = self.decisions.saturating_add(1);
            self.failures = self.failures.saturating_add(u32::from(is_failed));
        }
    }

    /// So long nothing had been heard of the holder, at the change that is being made.
    pub(crate) fn silent_for(&mut self, silent_ms: u32) {
        self.silent_ms = Some(silent_ms);
        if let Some(guard) = &mut self.guard {
            guard.silent_for(silent_ms);
        }
    }

    /// `settle` refused a newcomer.
    pub(crate) fn refused(&mut self, unix_ms: u64) {
        if let Some(guard) = &mut self.guard {
            guard.refused(unix_ms);
        }
        if !self.is_open(unix_ms) {
            return;
        }
        self.refused = self.refused.saturating_add(1);
        let heard_ms = self.silence(unix_ms).map_or(0, |silent_ms| unix_ms.saturating_sub(silent_ms));
        let since_ms = self.refused_since_ms.filter(|since_ms| *since_ms > heard_ms);
        self.refused_since_ms = Some(since_ms.unwrap_or(unix_ms));
    }

    /// The record whose trial this is changes.
    pub(crate) fn changed(&mut self, change: &RecordChange, unix_ms: u64) {
        if let Some(guard) = &mut self.guard {
            guard.changed(change, unix_ms);
        }
        let by_ms = unix_ms.min(self.ends_ms());
        self.stable_ms = self.stable_by(by_ms);
        match (change.was_offline, change.is_offline) {
            (true, false) => {
                let since_ms = self.offline_since_ms.take().unwrap_or(by_ms);
                self.offline_ms += by_ms.saturating_sub(since_ms);
            }
            (false, true) if self.is_open(unix_ms) => self.offline_since_ms = Some(unix_ms),
            _ => {}
        }
        if let Some(since_ms) = change.holder_since_ms {
            self.holder_ended(change.was_held, change.is_eviction, unix_ms);
            // One that is taken back after the horizon had been accepted within it.
            self.holder_since_ms = since_ms.filter(|_| self.is_open(unix_ms));
        }
        self.silent_ms = None;
    }

    /// How long nothing has been heard of the holder: at most since it was accepted. Its replica may have answered for the one before.
    fn silence(&self, unix_ms: u64) -> Option<u64> {
        let held_ms = self.holder_since_ms.map_or(u64::MAX, |since_ms| unix_ms.saturating_sub(since_ms));
        self.silent_ms.map(|silent_ms| u64::from(silent_ms).min(held_ms))
    }

    /// The holder that there was, if there was one, ended.
    fn holder_ended(&mut self, is_held: bool, is_eviction: bool, unix_ms: u64) {
        let refused_since_ms = self.refused_since_ms.take();
        if !is_held || !self.is_open(unix_ms) {
            return;
        }
        let half_open = self.silence(unix_ms).filter(|silent_ms| *silent_ms > u64::from(self.silence_ms));
        match half_open {
            Some(silent_ms) => {
                let heard_ms = unix_ms.saturating_sub(silent_ms);
                let since_ms = refused_since_ms.filter(|since_ms| *since_ms > heard_ms);
                self.stranded_ms += since_ms.map_or(0, |since_ms| unix_ms.saturating_sub(since_ms));
            }
            None => self.flips = self.flips.saturating_add(u32::from(is_eviction)),
        }
    }

    /// The time to one stable socket, if there was one by `by_ms`, which is not after the horizon's end.
    fn stable_by(&self, by_ms: u64) -> Option<u64> {
        let kept = |since_ms: &u64| (*since_ms).max(self.exposed_ms) + u64::from(self.window_ms) <= by_ms;
        let found = self.holder_since_ms.filter(kept).map(|since_ms| since_ms.saturating_sub(self.burst_ms));
        self.stable_ms.or(found)
    }
}

/// A device at its exposure, as its record was before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExposedDevice {
    pub(crate) is_offline: bool,
    /// When the holder that there is was accepted.
    pub(crate) holder_since_ms: Option<u64>,
    /// When the burst of opens began that the exposure belongs to.
    pub(crate) burst_ms: u64,
}

/// What a change of a record does that its trial counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordChange {
    pub(crate) was_offline: bool,
    pub(crate) is_offline: bool,
    pub(crate) was_held: bool,
    /// The holder is another one, accepted then; or there is none any more.
    pub(crate) holder_since_ms: Option<Option<u64>>,
    /// The one that there was is evicted.
    pub(crate) is_eviction: bool,
}
