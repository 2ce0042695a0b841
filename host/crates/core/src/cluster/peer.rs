//! Tracks one peer: what it announced, and whether this replica has missed a change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::announcement::{NumberedChange, SnapshotPart, SocketChange};
use super::ownership::Ownership;
use super::partial_snapshot::PartialSnapshot;
use super::peer_command::PeerCommand;
use crate::decisions::Departure;
use crate::ids::SocketId;
use crate::time::{Origin, Time};

/// How often a peer is asked for a snapshot until it answers.
pub const ASK_EVERY: Duration = Duration::from_millis(500);

/// The cause when a peer's snapshot lacks a socket: the message with the true cause was lost, and this one is the likeliest.
const VANISHED: Departure = Departure::TransportLost;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) replica: u32,
    /// The number of its last change that is known; `None` until its snapshot is in.
    seq: Option<u64>,
    silent: Option<Time>,
    /// When it is asked for a snapshot again; `None` if it is not being asked.
    asks: Option<Time>,
    arriving: Option<PartialSnapshot>,
    /// None without methods.
    sockets: BTreeMap<SocketId, KnownSocket>,
    /// The sockets that were gone with its silence, with their users, until it is known what became of them.
    missing: BTreeMap<SocketId, Arc<str>>,
}

#[derive(Debug)]
struct KnownSocket {
    user: Arc<str>,
    methods: BTreeSet<Arc<str>>,
}

impl Peer {
    pub(super) fn new(replica: u32) -> Peer {
        Peer {
            replica,
            seq: None,
            silent: None,
            asks: None,
            arriving: None,
            sockets: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    pub(super) fn is_at(&self, seq: u64) -> bool {
        self.seq == Some(seq)
    }

    pub(super) fn is_unsynced(&self) -> bool {
        self.seq.is_none() && self.silent.is_none()
    }

    pub(super) fn silent_since(&self) -> Option<Time> {
        self.silent
    }

    pub(super) fn asks_at(&self) -> Option<Time> {
        self.asks
    }

    /// Whether to ask it now; not if it is being asked already.
    pub(super) fn ask_from(&mut self, now: Time) -> bool {
        if self.asks.is_some() {
            return false;
        }
        self.asks = Some(now + ASK_EVERY);
        true
    }

    /// Whether to ask it once more; not if it is not being asked.
    pub(super) fn ask_again_from(&mut self, now: Time) -> bool {
        if self.asks.is_none() {
            return false;
        }
        self.asks = Some(now + ASK_EVERY);
        true
    }

    /// It is seen, whether or not it was silent.
    pub(super) fn wake(&mut self) {
        self.silent = None;
    }

    /// Takes a change in. Whether it is in step, or out of it by being silent; if not, it is to be asked.
    pub(super) fn change<P>(&mut self, numbered: NumberedChange, ledger: &mut Ownership<P>) -> bool {
        if self.silent.is_some() {
            return true;
        }
        let Some(seq) = self.seq else { return false };
        if numbered.seq <= seq {
            return true;
        }
        if numbered.seq - seq > 1 {
            return false;
        }
        self.seq = Some(numbered.seq);
        // A snapshot that is on the way does not have it.
        self.arriving = None;
        match numbered.change {
            SocketChange::Joined { socket, user, resumable, method } => {
                self.join(socket, &user, resumable, vec![(method, Duration::ZERO)], ledger);
            }
            SocketChange::Left { socket, method } => self.leave(socket, &method, ledger),
            SocketChange::Gone { socket, cause } => self.drop_socket(socket, cause, ledger),
        }
        true
    }

    /// Takes a part of a snapshot in. `false` if the snapshot cannot be made whole any more.
    pub(super) fn part<P>(&mut self, part: SnapshotPart, ledger: &mut Ownership<P>, now: Time) -> bool {
        let is_old = self.asks.is_none() && self.seq.is_some_and(|seq| part.seq <= seq);
        if self.silent.is_some() || is_old {
            return true;
        }
        let mut arriving = match self.arriving.take() {
            _ if part.index == 0 => PartialSnapshot::new(part.seq),
            Some(arriving) if arriving.seq == part.seq && arriving.next == part.index => arriving,
            // The rest of a snapshot that is broken already is not what it is asked for once more.
            broken => return broken.is_none(),
        };
        for announced in part.sockets {
            arriving.take(announced, ledger, now);
        }
        if part.last {
            self.apply(arriving, ledger, now);
            return true;
        }
        let Some(next) = arriving.next.checked_add(1) else { return false };
        arriving.next = next;
        self.arriving = Some(arriving);
        true
    }

    /// It is not heard from: its sockets are gone by that, and kept in mind.
    pub(super) fn fall_silent<P>(&mut self, ledger: &mut Ownership<P>, now: Time) {
        for (socket, known) in std::mem::take(&mut self.sockets) {
            ledger.gone(socket, known.user.clone(), Departure::ReplicaSilent);
            self.missing.insert(socket, known.user);
        }
        (self.seq, self.asks, self.arriving) = (None, None, None);
        self.silent.get_or_insert(now);
    }

    /// It is gone for good, with all that it has and all that was missing.
    pub(super) fn end<P>(&mut self, cause: Departure, ledger: &mut Ownership<P>) {
        for (socket, known) in std::mem::take(&mut self.sockets) {
            ledger.gone(socket, known.user, cause);
        }
        for (socket, user) in std::mem::take(&mut self.missing) {
            ledger.still_gone(socket, user, cause);
        }
    }

    /// A whole snapshot is in: applies the difference to what is known.
    fn apply<P>(&mut self, arriving: PartialSnapshot, ledger: &mut Ownership<P>, now: Time) {
        (self.seq, self.asks) = (Some(arriving.seq), None);
        let arrived = &arriving.sockets;
        for (socket, user) in std::mem::take(&mut self.missing) {
            if arrived.get(&socket).is_none_or(|arrived| arrived.user != user) {
                ledger.still_gone(socket, user, VANISHED);
            }
        }
        let vanished: Vec<SocketId> =
            self.sockets.keys().copied().filter(|socket| !arrived.contains_key(socket)).collect();
        for socket in vanished {
            self.drop_socket(socket, VANISHED, ledger);
        }
        for (socket, arrived) in arriving.sockets {
            let methods: Vec<(Arc<str>, Duration)> =
                arrived.methods.iter().map(|(method, since)| (method.clone(), since.age(now))).collect();
            self.leave_all_but(socket, &arrived.methods, ledger);
            self.join(socket, &arrived.user, arrived.resumable, methods, ledger);
            self.drop_if_empty(socket, ledger);
        }
    }

    /// A socket has these methods, among others perhaps. What is known already is not touched.
    fn join<P>(
        &mut self,
        socket: SocketId,
        user: &Arc<str>,
        resumable: bool,
        methods: Vec<(Arc<str>, Duration)>,
        ledger: &mut Ownership<P>,
    ) {
        if self.sockets.get(&socket).is_some_and(|known| known.user != *user) {
            self.drop_socket(socket, Departure::Closed, ledger);
        }
        for (method, age) in methods {
            let has = self.sockets.get(&socket).map(|known| &known.methods);
            if has.is_some_and(|methods| methods.contains(&method)) {
                continue;
            }
            let is_within = ledger.settings.takes(user, &method)
                && has.map_or(0, BTreeSet::len) < ledger.settings.methods_per_socket_max
                && (has.is_some() || self.sockets.len() < ledger.settings.sockets_per_peer_max)
                && ledger.owners.get(&socket).is_none_or(|owner| *owner == self.replica);
            if !is_within {
                ledger.refused += 1;
                continue;
            }
            let known = self.sockets.entry(socket).or_insert_with(|| {
                ledger.connect(socket, user.clone(), self.replica, resumable);
                KnownSocket { user: user.clone(), methods: BTreeSet::new() }
            });
            known.methods.insert(method.clone());
            ledger.commands.push_back(PeerCommand::Register { socket, user: user.clone(), method, age });
        }
    }

    fn leave<P>(&mut self, socket: SocketId, method: &Arc<str>, ledger: &mut Ownership<P>) {
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        if known.methods.remove(method) {
            let (user, method) = (known.user.clone(), method.clone());
            ledger.commands.push_back(PeerCommand::Unregister { socket, user, method });
        }
        self.drop_if_empty(socket, ledger);
    }

    /// Takes back what a socket has no more. It is left without methods if it has others now.
    fn leave_all_but<P>(&mut self, socket: SocketId, methods: &BTreeMap<Arc<str>, Origin>, ledger: &mut Ownership<P>) {
        let Some(known) = self.sockets.get_mut(&socket) else { return };
        for method in known.methods.extract_if(.., |method| !methods.contains_key(method)) {
            let user = known.user.clone();
            ledger.commands.push_back(PeerCommand::Unregister { socket, user, method });
        }
    }

    fn drop_if_empty<P>(&mut self, socket: SocketId, ledger: &mut Ownership<P>) {
        if self.sockets.get(&socket).is_some_and(|known| known.methods.is_empty()) {
            self.drop_socket(socket, Departure::Unregistered, ledger);
        }
    }

    fn drop_socket<P>(&mut self, socket: SocketId, cause: Departure, ledger: &mut Ownership<P>) {
        if let Some(known) = self.sockets.remove(&socket) {
            ledger.gone(socket, known.user, cause);
        }
    }
}
