//! One replica of the simulation: its announcer, its directory of peers, and the liveness that a host would know of its
//! peers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pointwork_core::decisions::Departure;
use pointwork_core::{Announcer, PeerCommand, PeerDirectory, PeerSettings, SocketId, Time};

use crate::mirror::{Entry, Mirror};
use crate::{Message, Name};

const BEAT: Duration = Duration::from_millis(500);
const SILENT_AFTER: Duration = Duration::from_secs(3);
const LOST_AFTER: Duration = Duration::from_secs(10);

pub(crate) struct Replica {
    name: Name,
    pub(crate) announcer: Announcer,
    pub(crate) directory: PeerDirectory<Name>,
    pub(crate) mirror: Mirror,
    pub(crate) inbox: Vec<(Time, Name, Message)>,
    pub(crate) last_arrival: BTreeMap<Name, Time>,
    pub(crate) hung_until: Time,
    /// Until when everything that is sent to it is lost.
    pub(crate) deaf_until: Time,
    next_beat: Time,
    /// When each peer was heard of last, and whether it counts as silent.
    peers: BTreeMap<Name, (Time, bool)>,
}

impl Replica {
    pub(crate) fn new(name: Name, next_beat: Time) -> Replica {
        Replica {
            name,
            announcer: Announcer::new(),
            directory: PeerDirectory::new(PeerSettings::default()),
            mirror: Mirror::default(),
            inbox: Vec::new(),
            last_arrival: BTreeMap::new(),
            hung_until: Time::ZERO,
            deaf_until: Time::ZERO,
            next_beat,
            peers: BTreeMap::new(),
        }
    }

    /// What has arrived by now, in order of arrival.
    pub(crate) fn due(&mut self, now: Time) -> Vec<(Name, Message)> {
        // Stable, so that what one sender sent for the same moment stays in order.
        self.inbox.sort_by_key(|(at, ..)| *at);
        let due = self.inbox.partition_point(|(at, ..)| *at <= now);
        self.inbox.drain(..due).map(|(_, from, message)| (from, message)).collect()
    }

    pub(crate) fn hear(&mut self, from: Name, message: Message, now: Time) -> Vec<PeerCommand<Name>> {
        match message {
            Message::Seen(seq) => {
                self.peers.insert(from, (now, false));
                self.directory.handle_seen(&from, seq, now);
            }
            Message::Change(numbered) => {
                self.peers.entry(from).or_insert((now, false));
                self.directory.handle_change(&from, numbered, now);
            }
            Message::Part(part) => self.directory.handle_snapshot_part(&from, part, now),
            Message::Dead => {
                self.peers.remove(&from);
                self.directory.handle_lost(&from, Departure::ReplicaLost, now);
            }
            Message::Ask => {}
        }
        self.told()
    }

    pub(crate) fn keep_time(&mut self, now: Time) -> Vec<PeerCommand<Name>> {
        for (peer, (heard, is_silent)) in &mut self.peers {
            let silence = now.saturating_since(*heard);
            if silence >= SILENT_AFTER && !*is_silent {
                *is_silent = true;
                self.directory.handle_lost(peer, Departure::ReplicaSilent, now);
            }
            if silence >= LOST_AFTER {
                self.directory.handle_lost(peer, Departure::ReplicaLost, now);
            }
        }
        self.peers.retain(|_, (heard, _)| now.saturating_since(*heard) < LOST_AFTER);
        self.directory.handle_timeout(now);
        self.told()
    }

    pub(crate) fn beat(&mut self, now: Time) -> Option<Message> {
        if self.next_beat > now {
            return None;
        }
        self.next_beat = now + BEAT;
        Some(Message::Seen(self.announcer.seq()))
    }

    /// The invariants that hold at any moment.
    pub(crate) fn check(&self) {
        let numbers: Vec<u32> = self.peers.keys().filter_map(|peer| self.directory.replica(peer)).collect();
        assert_eq!(numbers.len(), self.directory.peers(), "liveness and directory know the same peers");
        let distinct: BTreeSet<&u32> = numbers.iter().collect();
        assert!(distinct.len() == numbers.len() && !distinct.contains(&0), "own numbers: {numbers:?}");
        let silent: BTreeSet<Name> =
            self.peers.iter().filter(|(_, (_, is_silent))| *is_silent).map(|(peer, _)| *peer).collect();
        self.mirror.check(&self.directory, &silent);
        assert_eq!(self.directory.refused(), 0, "no socket is at two replicas, and no bound is near");
    }

    /// Nothing has been lost for a while: the directory holds what the announcers hold, and nothing is under way.
    pub(crate) fn check_in_step(&self, announcers: &[(Name, &Announcer)], now: Time) {
        let mut expected: BTreeMap<SocketId, Entry> = BTreeMap::new();
        for (peer, announcer) in announcers {
            for announced in announcer.snapshot(now).sockets {
                let methods = announced.methods.into_iter().map(|(method, _)| method).collect();
                expected.insert(announced.socket, (*peer, announced.user, methods));
            }
        }
        assert_eq!(self.mirror.sockets, expected, "in step: replica {}", self.name);
        assert!(self.mirror.silent.is_empty(), "nothing is left of silent peers");
        assert_eq!((self.directory.peers(), self.directory.unsynced()), (announcers.len(), 0));
        assert_eq!(self.directory.poll_timeout(), None, "nobody is being asked");
    }

    fn told(&mut self) -> Vec<PeerCommand<Name>> {
        std::iter::from_fn(|| self.directory.next_command()).collect()
    }
}
