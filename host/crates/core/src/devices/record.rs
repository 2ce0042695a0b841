//! The record of a device in the cluster's store: who holds its session, what happened to it lately, and the changes of
//! both.
//!
//! A record is changed only by compare-and-set on its epoch, and each change gives it a greater one. The next epoch is one
//! more, or the writer's clock (milliseconds since the Unix epoch) if that is more. So epochs grow even across a store
//! that was restarted empty, and of two sockets that were accepted while nobody could see the record the one that was
//! accepted later has the greater epoch. Safety never rests on the clocks: only which of the two is kept does.
//!
//! An operator's changes ([`DeviceRecord::blocked`], [`DeviceRecord::unblocked`], [`DeviceRecord::disconnected`], [`DeviceRecord::paired_with`]) are
//! made by the host in the same way: read, change, compare-and-set. It then tells the replica of the holder that there was
//! to evict it ([`crate::devices::DeviceSessions::handle_evict`], with the new record's epoch), and the dashboards of the status.

use std::sync::Arc;

use crate::decisions::{Departure, Event, HISTORY_MAX, Happening};
use crate::experiments::trial::{ExposedDevice, RecordChange};
use crate::experiments::{Exposure, Trial};
use crate::ids::SocketId;

/// What is known of a device, cluster-wide. The default is that of a device nobody has heard of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceRecord {
    /// Grows with every change; 0 if there is no record.
    pub epoch: u64,
    /// The socket that holds the session.
    pub holder: Option<Holder>,
    /// How the last holder ended, if nobody holds the session.
    pub ended: Option<Ended>,
    /// Newest first; at most [`HISTORY_MAX`].
    pub events: Vec<Happened>,
    /// How often the session went to another socket while the one that had it was not known to be gone.
    pub flips: u64,
    /// How often a newcomer was refused by `settle`.
    pub refusals: u64,
    /// What dashboards are told.
    pub status: DeviceStatus,
    /// An operator does not want it.
    pub is_blocked: bool,
    /// It was paired, or brought the token of a paired device.
    pub is_paired: bool,
    /// The user or organisation that it belongs to.
    pub owner: Option<Arc<str>>,
    /// By which an operator pairs it, or has paired it: a token that carries another code proves nothing then.
    pub pairing_code: Option<Arc<str>>,
    /// When it last registered, or its holder ended, in milliseconds since the Unix epoch.
    pub last_seen_ms: u64,
    /// Its exposure to an experiment and what became of it; of the last one, if there were several.
    pub trial: Option<Box<Trial>>,
}

/// The socket that holds a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The replica's uid.
    pub replica: Arc<str>,
    /// The socket.
    pub socket: SocketId,
    /// The record's epoch when it was accepted.
    pub epoch: u64,
    /// When it was accepted, in milliseconds since the Unix epoch.
    pub accepted_ms: u64,
    /// It proved a device token.
    pub has_proved: bool,
    /// Hash of its fingerprint.
    pub fingerprint: Option<u64>,
    /// Hash of its network address.
    pub address: Option<u64>,
}

/// How a holder ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why. [`Departure::Evicted`]: an operator disconnected it.
    pub how: Departure,
    /// When that was written, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The uid of the replica that held it, and that is to say that the device is offline.
    pub replica: Arc<str>,
}

/// Something that happened to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happened {
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// What it was.
    pub what: Happening,
}

/// What dashboards are told of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DeviceStatus {
    /// Nobody holds its session, or the holder gives no heartbeat.
    #[default]
    Offline,
    /// A socket holds its session.
    Online,
    /// A socket holds its session, and it is not paired yet.
    Provisioning,
}

/// What becomes of the holder that a record names when another socket gets the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is closed for it.
    Evicted,
    /// It is gone already, and how if that is known.
    Gone(Departure),
}

impl DeviceRecord {
    /// Whether it names this socket as the holder.
    pub fn is_held_by(&self, replica: &str, socket: SocketId) -> bool {
        self.holder.as_ref().is_some_and(|holder| *holder.replica == *replica && holder.socket == socket)
    }

    /// The status while somebody holds the session.
    pub fn status_held(&self) -> DeviceStatus {
        if self.pairing_code.is_some() && !self.is_paired { DeviceStatus::Provisioning } else { DeviceStatus::Online }
    }

    /// What a policy is told of what happened lately, newest first.
    pub fn history(&self, unix_ms: u64) -> Vec<Event> {
        let ago_ms = |at_ms| u32::try_from(unix_ms.saturating_sub(at_ms)).unwrap_or(u32::MAX);
        self.events.iter().map(|event| Event { ago_ms: ago_ms(event.at_ms), what: event.what }).collect()
    }

    /// `holder` gets the session; its epoch is the new record's, which is greater than `above`, too. `fate` is that of the
    /// one that this record names, if it names one.
    pub fn accepted(&self, mut holder: Holder, fate: Fate, above: u64, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(above, unix_ms);
        let is_eviction = self.holder.is_some() && fate == Fate::Evicted;
        match (next.holder.take(), fate) {
            (None, _) => {}
            (Some(_), Fate::Evicted) => {
                next.flips += 1;
                next.push(Happening::Evicted, unix_ms);
            }
            (Some(_), Fate::Gone(how)) => next.push(happening(how), unix_ms),
        }
        next.push(Happening::Accepted, unix_ms);
        holder.epoch = next.epoch;
        // One that takes the session back had lost it until now.
        let since_ms = if is_eviction { unix_ms } else { holder.accepted_ms };
        (next.holder, next.ended) = (Some(holder), None);
        next.status = next.status_held();
        next.last_seen_ms = unix_ms;
        next.tried(self, Some(Some(since_ms)), is_eviction, unix_ms)
    }

    /// A newcomer was refused; nothing else changes.
    pub fn refused(&self, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(0, unix_ms);
        next.refusals += 1;
        next.push(Happening::Refused, unix_ms);
        if let Some(trial) = &mut next.trial {
            trial.refused(unix_ms);
        }
        next.tried(self, None, false, unix_ms)
    }

    /// The holder is as `status` says; it registered again if `is_refresh`. The new epoch is greater than `above`, too.
    pub fn touched(&self, status: DeviceStatus, is_refresh: bool, above: u64, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(above, unix_ms);
        next.status = status;
        if is_refresh {
            next.push(Happening::Refreshed, unix_ms);
            next.last_seen_ms = unix_ms;
        }
        next.tried(self, None, false, unix_ms)
    }

    /// The holder ended, and nobody holds the session. The status stays.
    pub fn released(&self, how: Departure, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(0, unix_ms);
        if let Some(holder) = next.holder.take() {
            next.push(happening(how), unix_ms);
            next.ended = Some(Ended { how, at_ms: unix_ms, replica: holder.replica });
            next.last_seen_ms = unix_ms;
        }
        next.tried(self, Some(None), false, unix_ms)
    }

    /// Nobody came in time: it is offline. The new epoch is greater than `above`, too.
    pub fn offline(&self, above: u64, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(above, unix_ms);
        next.status = DeviceStatus::Offline;
        next.tried(self, None, false, unix_ms)
    }

    /// An operator ends the session: the socket that has it is to be evicted, the device may come back.
    pub fn disconnected(&self, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(0, unix_ms);
        if let Some(holder) = next.holder.take() {
            next.push(Happening::Evicted, unix_ms);
            next.ended = Some(Ended { how: Departure::Evicted, at_ms: unix_ms, replica: holder.replica });
        }
        next.status = DeviceStatus::Offline;
        next.tried(self, Some(None), false, unix_ms)
    }

    /// An operator ends the session and does not let the device come back.
    pub fn blocked(&self, unix_ms: u64) -> DeviceRecord {
        DeviceRecord { is_blocked: true, ..self.disconnected(unix_ms) }
    }

    /// An operator lets the device come back.
    pub fn unblocked(&self, unix_ms: u64) -> DeviceRecord {
        DeviceRecord { is_blocked: false, ..self.next(0, unix_ms) }
    }

    /// An operator paired the device, by the code that it has.
    pub fn paired_with(&self, owner: Option<Arc<str>>, unix_ms: u64) -> DeviceRecord {
        let mut next = self.next(0, unix_ms);
        (next.is_paired, next.owner) = (true, owner);
        if next.status == DeviceStatus::Provisioning {
            next.status = DeviceStatus::Online;
        }
        next.tried(self, None, false, unix_ms)
    }

    /// A decision of `settle` was taken in an arm. What was decided is to follow at the same moment; the epoch is still the same.
    pub fn exposed(&self, exposure: &Exposure, unix_ms: u64) -> DeviceRecord {
        let mut next = self.clone();
        let device = ExposedDevice {
            is_offline: self.status == DeviceStatus::Offline,
            holder_since_ms: self.holder.as_ref().map(|holder| holder.accepted_ms),
            burst_ms: self.burst_began(exposure.window_ms, unix_ms),
        };
        let known = next.trial.take().filter(|trial| *trial.experiment == *exposure.experiment);
        let mut trial = known.unwrap_or_else(|| Box::new(Trial::new(exposure, &device, unix_ms)));
        trial.decided(exposure, &device, unix_ms);
        next.trial = Some(trial);
        next
    }

    /// So long had nothing been heard of the holder. What becomes of it is to follow at the same moment; the epoch is still the same.
    pub fn silent_for(&self, silent_ms: u32) -> DeviceRecord {
        let mut next = self.clone();
        if let Some(trial) = &mut next.trial {
            trial.silent_for(silent_ms);
        }
        next
    }

    /// Its trial counts what changed since `before`. `holder_since_ms`: the holder is another one, accepted then; or none any more.
    fn tried(
        mut self,
        before: &DeviceRecord,
        holder_since_ms: Option<Option<u64>>,
        is_eviction: bool,
        unix_ms: u64,
    ) -> DeviceRecord {
        if let Some(trial) = &mut self.trial {
            let change = RecordChange {
                was_offline: before.status == DeviceStatus::Offline,
                is_offline: self.status == DeviceStatus::Offline,
                was_held: before.holder.is_some(),
                holder_since_ms,
                is_eviction,
            };
            trial.changed(&change, unix_ms);
        }
        self
    }

    /// When the burst began that an open at `unix_ms` belongs to: each open of it came less than a window after the one before.
    fn burst_began(&self, window_ms: u32, unix_ms: u64) -> u64 {
        let opens = self.events.iter().filter(|event| matches!(event.what, Happening::Accepted | Happening::Refused));
        let mut began_ms = unix_ms;
        for open in opens {
            if began_ms.saturating_sub(open.at_ms) >= u64::from(window_ms) {
                break;
            }
            began_ms = began_ms.min(open.at_ms);
        }
        began_ms
    }

    fn next(&self, above: u64, unix_ms: u64) -> DeviceRecord {
        DeviceRecord { epoch: self.epoch.max(above).saturating_add(1).max(unix_ms), ..self.clone() }
    }

    fn push(&mut self, what: Happening, unix_ms: u64) {
        self.events.truncate(HISTORY_MAX - 1);
        self.events.insert(0, Happened { at_ms: unix_ms, what });
    }
}

/// What a departure is called in the history.
fn happening(how: Departure) -> Happening {
    match how {
        Departure::Closed => Happening::Closed,
        Departure::Evicted => Happening::Evicted,
        Departure::NeverSeen
        | Departure::Unregistered
        | Departure::TransportLost
        | Departure::ReplicaLost
        | Departure::ReplicaSilent
        | Departure::Drained => Happening::Lost,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod trial_tests;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn holder(socket: u128) -> Holder {
        Holder {
            replica: "r".into(),
            socket: SocketId(socket),
            epoch: 0,
            accepted_ms: NOW_MS,
            has_proved: true,
            fingerprint: None,
            address: None,
        }
    }

    fn held() -> DeviceRecord {
        DeviceRecord::default().accepted(holder(1), Fate::Evicted, 0, NOW_MS)
    }

    fn happenings(record: &DeviceRecord) -> Vec<Happening> {
        record.events.iter().map(|event| event.what).collect()
    }

    #[test]
    fn epochs_grow_whatever_the_clock_says() {
        let one = held();
        assert_eq!((one.epoch, one.holder.as_ref().unwrap().epoch), (NOW_MS, NOW_MS));
        assert_eq!(one.refused(NOW_MS - 5_000).epoch, NOW_MS + 1);
        assert_eq!(one.accepted(holder(2), Fate::Evicted, NOW_MS + 70, 3).epoch, NOW_MS + 71);
        assert_eq!(one.offline(0, NOW_MS + 9).epoch, NOW_MS + 9);
    }

    #[test]
    fn a_flip_is_a_change_while_the_holder_was_there() {
        let one = held();
        assert_eq!((one.flips, happenings(&one)), (0, vec![Happening::Accepted]));
        let two = one.accepted(holder(2), Fate::Evicted, 0, NOW_MS + 5);
        assert_eq!((two.flips, two.status), (1, DeviceStatus::Online));
        assert_eq!(happenings(&two), [Happening::Accepted, Happening::Evicted, Happening::Accepted]);
        let three = two.accepted(holder(3), Fate::Gone(Departure::TransportLost), 0, NOW_MS + 6);
        assert_eq!((three.flips, three.events[1].what), (1, Happening::Lost));
        assert!(three.is_held_by("r", SocketId(3)) && !three.is_held_by("s", SocketId(3)));
    }

    #[test]
    fn a_release_keeps_the_status_until_it_is_said() {
        let gone = held().released(Departure::Closed, NOW_MS + 1);
        assert_eq!(
            (gone.holder.is_none(), gone.status, gone.events[0].what),
            (true, DeviceStatus::Online, Happening::Closed)
        );
        assert_eq!(gone.ended.as_ref().unwrap().how, Departure::Closed);
        assert_eq!(gone.offline(0, NOW_MS + 2).status, DeviceStatus::Offline);
        let back = gone.accepted(holder(2), Fate::Evicted, 0, NOW_MS + 3);
        assert_eq!((back.flips, back.ended), (0, None));
        assert_eq!(gone.released(Departure::TransportLost, NOW_MS + 4).events, gone.events, "nobody was there");
    }

    #[test]
    fn history_is_bounded_and_newest_first() {
        let mut record = held();
        for ms in 1..=20 {
            record = record.refused(NOW_MS + ms);
        }
        let history = record.history(NOW_MS + 21);
        assert_eq!((history.len(), history[0].ago_ms, history[15].ago_ms), (16, 1, 16));
        assert_eq!((record.refusals, record.history(NOW_MS)[0].ago_ms), (20, 0));
    }

    #[test]
    fn an_operator_pairs_blocks_and_unblocks() {
        let code = DeviceRecord { pairing_code: Some("c".into()), ..DeviceRecord::default() };
        let one = code.accepted(holder(1), Fate::Evicted, 0, NOW_MS);
        assert_eq!(one.status, DeviceStatus::Provisioning);
        let two = one.paired_with(Some("u".into()), NOW_MS);
        assert_eq!((two.status, two.is_paired, two.pairing_code.as_deref()), (DeviceStatus::Online, true, Some("c")));
        let three = two.blocked(NOW_MS);
        assert_eq!((three.status, three.is_blocked, three.holder.is_none()), (DeviceStatus::Offline, true, true));
        assert_eq!(three.ended.as_ref().unwrap().how, Departure::Evicted);
        let four = three.unblocked(NOW_MS);
        assert!(!four.is_blocked && four.epoch > three.epoch);
        let offline = held().touched(DeviceStatus::Offline, false, 0, NOW_MS);
        assert_eq!((offline.status, offline.holder.is_some()), (DeviceStatus::Offline, true));
    }
}
