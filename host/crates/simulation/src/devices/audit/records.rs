//! Judges the records that the store takes, and the sockets that replicas take for holders.

use std::sync::Arc;

use pointwork_core::SocketId;
use pointwork_core::decisions::Happening;
use pointwork_core::devices::{DeviceRecord, DeviceStatus};

use super::auditor::{Believed, DeviceAuditor, HISTORY_MAX};
use crate::time::SECOND;

/// For how long it is remembered that a socket was in place.
const REMEMBERED_US: u64 = 60 * SECOND;

impl DeviceAuditor {
    /// The store takes a record. `believed` are the sockets that replicas take for holders of the device, `silence_us`
    /// is the longest time in which the new holder gave no heartbeat, if that is a socket that is there.
    pub(crate) fn check_written(
        &mut self,
        device: &Arc<str>,
        (old, new): (&DeviceRecord, &DeviceRecord),
        believed: &[Believed],
        silence_us: Option<u64>,
    ) {
        self.demand(new.epoch > old.epoch, "epoch-grows", || format!("{device}: {} -> {}", old.epoch, new.epoch));
        self.demand(new.events.len() <= HISTORY_MAX, "bounded-history", || format!("{device}: {}", new.events.len()));
        let known = self.device(device);
        known.accepted = new.holder.as_ref().map_or(known.accepted, |holder| holder.epoch.max(known.accepted));
        if new.refusals > old.refusals {
            let kept =
                |record: &DeviceRecord| (record.holder.clone(), record.status, record.ended.clone(), record.flips);
            let is_harmless =
                kept(old) == kept(new) && new.events.first().is_some_and(|event| event.what == Happening::Refused);
            self.demand(is_harmless, "refusal-is-harmless", || format!("{device}: {old:?} -> {new:?}"));
        }
        if new.status == DeviceStatus::Offline && old.status != DeviceStatus::Offline && !self.is_operating {
            self.check_offline(device, new, believed, silence_us);
        }
    }

    fn check_offline(&mut self, device: &Arc<str>, new: &DeviceRecord, believed: &[Believed], silence_us: Option<u64>) {
        if let Some(holder) = &new.holder {
            let is_silent = silence_us.is_none_or(|silence_us| silence_us >= self.heartbeat_timeout_us);
            return self.demand(is_silent, "no-false-offline", || format!("{device} is held by {:?}", holder.socket));
        }
        let (is_in_trouble, last_step_us) = (self.is_in_trouble(), self.last_step_us);
        let known = self.device(device);
        let held_us = if known.is_held { Some(last_step_us) } else { known.held_us };
        // One that was accepted while its replica did not see the record is not known to others that do; one that lost
        // the session may not have heard of it yet.
        let accepted = known.accepted;
        let is_held = believed.iter().any(|one| one.holder.is_sure && one.holder.epoch >= accepted);
        self.demand(!is_held, "no-false-offline", || format!("{device} is offline beside {believed:?}"));
        let away_us = held_us.map(|at| self.now_us - at);
        let is_debounced = away_us.is_none_or(|away_us| away_us >= self.offline_debounce_us);
        self.demand(is_debounced || is_in_trouble, "debounced", || format!("{device} is offline after {away_us:?} us"));
    }

    /// A step is over in which something may have happened to a device. `named` is the open socket that its record
    /// names: its replica may still wait for the news that it was accepted.
    pub(crate) fn check_device(
        &mut self,
        device: &Arc<str>,
        record: &DeviceRecord,
        believed: &[Believed],
        named: Option<SocketId>,
    ) {
        let (is_in_trouble, last_step_us, now_us) = (self.is_in_trouble(), self.last_step_us, self.now_us);
        let is_named = |one: &Believed| record.is_held_by(&one.replica, one.holder.socket);
        let sure = || believed.iter().filter(|one| one.holder.is_sure);
        let intruder = sure().find(|one| !is_named(one) && one.holder.epoch >= record.epoch);
        self.demand(intruder.is_none() || is_in_trouble, "one-holder", || {
            format!("{device}: {intruder:?} beside {record:?}")
        });
        let twin =
            sure().enumerate().find(|(nth, one)| sure().take(*nth).any(|other| other.holder.epoch == one.holder.epoch));
        self.demand(twin.is_none() || is_in_trouble, "one-holder", || format!("{device}: two of one epoch: {twin:?}"));

        let known = self.device(device);
        let is_held = sure().any(is_named);
        if known.is_held && !is_held {
            known.held_us = Some(last_step_us);
        }
        known.is_held = is_held;
        let in_place: Vec<SocketId> = believed.iter().map(|one| one.holder.socket).chain(named).collect();
        for (socket, left_us) in &mut known.in_place {
            if !in_place.contains(socket) {
                left_us.get_or_insert(last_step_us);
            }
        }
        known.in_place.retain(|(socket, left_us)| {
            !in_place.contains(socket) && left_us.is_none_or(|at| now_us - at < REMEMBERED_US)
        });
        known.in_place.extend(in_place.into_iter().map(|socket| (socket, None)));
    }
}
