//! Holds what the auditor knows of each socket and device, and the first invariant that did not hold.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::devices::{DeviceSettings, DeviceStatus, LocalHolder};

use crate::counts::Counts;
#[cfg(test)]
use crate::devices::tests::TrialCounts;
use crate::time::{MS, SECOND};
use crate::violation::Violation;

/// How long after the store was in trouble its record may not be the truth: every step may have waited in vain.
const TROUBLE_US: u64 = 20 * SECOND;
/// How many events a record keeps at most.
pub(super) const HISTORY_MAX: usize = 16;

#[derive(Default)]
pub(crate) struct DeviceAuditor {
    pub(super) now_us: u64,
    /// When the step before was over.
    pub(super) last_step_us: u64,
    pub(crate) sockets: BTreeMap<SocketId, SocketRecord>,
    /// Those that were refused in this step.
    pub(super) refused: Vec<SocketId>,
    pub(super) devices: BTreeMap<Arc<str>, DeviceRecord>,
    pub(super) heartbeat_timeout_us: u64,
    pub(super) offline_debounce_us: u64,
    /// When the store was last in trouble, or may have been.
    pub(crate) trouble_us: Option<u64>,
    /// What is written is an operator's change.
    pub(crate) is_operating: bool,
    #[cfg(test)]
    pub(crate) trials: TrialCounts,
    /// What happened. Only random schedules count.
    pub(crate) counts: Option<Counts>,
    /// The first invariant that did not hold.
    pub(crate) broken: Option<Violation>,
}

/// What a socket was told.
#[derive(Default)]
pub(crate) struct SocketRecord {
    pub(crate) arrived_us: Option<u64>,
    pub(crate) refreshes: usize,
    pub(super) is_checked: bool,
    /// It proved a token, or brought a pairing code.
    pub(super) is_proved: bool,
    pub(crate) is_registered: bool,
    pub(super) is_refused: bool,
    pub(crate) is_told_to_close: bool,
}

/// What is known of a device.
#[derive(Default)]
pub(crate) struct DeviceRecord {
    /// Its sockets that were in place, and when they were last, if they are not now.
    pub(super) in_place: Vec<(SocketId, Option<u64>)>,
    /// The greatest epoch by which a socket was accepted.
    pub(super) accepted: u64,
    /// What dashboards show: the status with the greatest epoch.
    pub(crate) shown: (u64, DeviceStatus),
    /// A replica takes a socket for the holder, and knows that the record says so.
    pub(super) is_held: bool,
    /// When that was last so, if it is not now.
    pub(super) held_us: Option<u64>,
}

/// A socket that a replica takes for the holder.
#[derive(Debug)]
pub(crate) struct Believed {
    pub(crate) replica: Arc<str>,
    pub(crate) holder: LocalHolder,
}

impl DeviceAuditor {
    pub(crate) fn new(settings: &DeviceSettings, is_counting: bool) -> DeviceAuditor {
        DeviceAuditor {
            heartbeat_timeout_us: u64::from(settings.heartbeat_timeout_ms) * MS,
            offline_debounce_us: u64::from(settings.offline_debounce_ms) * MS,
            counts: is_counting.then(Counts::default),
            ..DeviceAuditor::default()
        }
    }

    pub(crate) fn begin_step(&mut self, now_us: u64) {
        (self.last_step_us, self.now_us) = (self.now_us, now_us);
    }

    pub(crate) fn trouble(&mut self) {
        self.trouble_us = Some(self.now_us);
    }

    pub(super) fn is_in_trouble(&self) -> bool {
        self.trouble_us.is_some_and(|at| self.now_us - at < TROUBLE_US)
    }

    pub(crate) fn count(&mut self, what: fmt::Arguments<'_>) {
        if let Some(counts) = &mut self.counts {
            counts.count(what.to_string());
        }
    }

    pub(crate) fn demand(&mut self, holds: bool, invariant: &'static str, what: impl FnOnce() -> String) {
        if !holds && self.broken.is_none() {
            self.broken = Some(Violation { invariant, what: what() });
        }
    }

    pub(crate) fn device(&mut self, device: &Arc<str>) -> &mut DeviceRecord {
        self.devices.entry(device.clone()).or_default()
    }
}
