//! Keeps what the other replicas (peers) announced of their sockets: the other end of their
//! [`Announcer`](super::announcer::Announcer)s.
//!
//! ```text
//! seen, of an unknown peer ────────────── AskSnapshot ─ parts ─ in step ─ changes in sequence ─ applied
//!                                              ↑                  │ ├─ a hole, or another number seen: asks
//!                                              │                  │ └─ lost ─ Gone for all, forgotten
//!                                              └── seen ─ silent ─┘
//! ```
//!
//! A peer sends its changes, its snapshots and the numbers in its heartbeats in one order. Some of them may be lost. The host
//! decides which peers are alive and says so by `handle_seen` and `handle_lost`, so it has to watch every peer that it passed
//! anything on from. Only `handle_seen` makes a silent peer count again.
//!
//! # Invariants
//!
//! - **announced**: the directory holds no socket and no method that its owner did not announce.
//! - **one stream**: for each socket, the commands are `Connect`, then `Register` and `Unregister`, then one `Gone`. If the cause
//!   of that `Gone` is [`Departure::ReplicaSilent`], either one more `Gone` follows, with what became of the socket, or a
//!   new `Connect`. Neither follows while the owner stays silent.
//! - **in step**: when nothing has been lost for a while, the directory holds what its peers announced.
//! - **own numbers**: no two peers have the same replica number, and none has 0.

use std::collections::BTreeMap;

use super::announcement::{NumberedChange, SnapshotPart};
use super::ownership::Ownership;
use super::peer::Peer;
use super::peer_command::{PeerCommand, PeerSettings};
use crate::decisions::Departure;
use crate::ids::SocketId;
use crate::time::Time;

/// The sockets of all peers. `P` is how the host names a peer.
#[derive(Debug)]
pub struct PeerDirectory<P> {
    /// The latest moment it was told.
    now: Time,
    peers: BTreeMap<P, Peer>,
    /// The peer of each replica number.
    replicas: BTreeMap<u32, P>,
    ledger: Ownership<P>,
}

impl<P: Clone + Ord> PeerDirectory<P> {
    /// A directory without peers.
    pub fn new(settings: PeerSettings) -> PeerDirectory<P> {
        PeerDirectory {
            now: Time::ZERO,
            peers: BTreeMap::new(),
            replicas: BTreeMap::new(),
            ledger: Ownership::new(settings),
        }
    }

    /// A peer is alive and `seq` is the number of its last change. One that is new, was silent, or has another number
    /// than is known here, is asked for a snapshot.
    pub fn handle_seen(&mut self, name: &P, seq: u64, now: Time) {
        let now = self.advance(now);
        let Some(peer) = self.admit(name) else { return };
        peer.wake();
        if !peer.is_at(seq) && peer.ask_from(now) {
            self.ask(name);
        }
    }

    /// A peer's change. Applied if it is the next one, dropped if it is an old one; if there is a hole, it is asked for a
    /// snapshot. Of a peer that is silent or not known it is dropped: who watches it, if it is, will say so.
    pub fn handle_change(&mut self, name: &P, numbered: NumberedChange, now: Time) {
        let now = self.advance(now);
        let Some(peer) = self.peers.get_mut(name) else { return };
        let is_in_step = peer.change(numbered, &mut self.ledger);
        if !is_in_step && peer.ask_from(now) {
            self.ask(name);
        }
    }

    /// A part of a peer's snapshot. With its last part it is applied as the difference to what is known; if a part is
    /// missing, the peer is asked again. Of a peer that is silent or not known it is dropped.
    pub fn handle_snapshot_part(&mut self, name: &P, part: SnapshotPart, now: Time) {
        let now = self.advance(now);
        let Some(peer) = self.peers.get_mut(name) else { return };
        let is_whole = peer.part(part, &mut self.ledger, now);
        if !is_whole && peer.ask_again_from(now) {
            self.ask(name);
        }
    }

    /// A peer is silent ([`Departure::ReplicaSilent`]), or is gone for good (any other cause). All its sockets are gone
    /// by that. A silent one remains known, with its number, until it is seen again or gone for good; with the latter
    /// the sockets that it had before its silence are gone once more, by what is known now.
    pub fn handle_lost(&mut self, name: &P, cause: Departure, now: Time) {
        let now = self.advance(now);
        let Some(peer) = self.peers.get_mut(name) else { return };
        if cause == Departure::ReplicaSilent {
            return peer.fall_silent(&mut self.ledger, now);
        }
        peer.end(cause, &mut self.ledger);
        self.forget(name);
    }

    /// Asks those again that have not answered. To be called when [`PeerDirectory::poll_timeout`] says so; at any other time it
    /// does no harm.
    pub fn handle_timeout(&mut self, now: Time) {
        let now = self.advance(now);
        for (name, peer) in &mut self.peers {
            if peer.asks_at().is_some_and(|at| at <= now) && peer.ask_again_from(now) {
                self.ledger.commands.push_back(PeerCommand::AskSnapshot { peer: name.clone() });
            }
        }
    }

    /// When [`PeerDirectory::handle_timeout`] is to be called next; `None` while nobody is being asked.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.peers.values().filter_map(Peer::asks_at).min()
    }

    /// The next thing to do, in the order it came up.
    pub fn next_command(&mut self) -> Option<PeerCommand<P>> {
        self.ledger.commands.pop_front()
    }

    /// The peer that a socket is at; `None` if it is not known, or its owner is silent.
    pub fn owner(&self, socket: SocketId) -> Option<&P> {
        self.replicas.get(self.ledger.owners.get(&socket)?)
    }

    /// The replica number of a peer: small, from 1, the same for as long as the peer is known.
    pub fn replica(&self, name: &P) -> Option<u32> {
        self.peers.get(name).map(|peer| peer.replica)
    }

    /// How many peers are known, silent ones included.
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// How many peers are known, not silent, and have not answered with a snapshot since they became so.
    pub fn unsynced(&self) -> usize {
        self.peers.values().filter(|peer| peer.is_unsynced()).count()
    }

    /// How many sockets of peers are known.
    pub fn sockets(&self) -> usize {
        self.ledger.owners.len()
    }

    /// How often something was dropped because it was over a bound, or because another peer has announced the socket.
    pub fn refused(&self) -> u64 {
        self.ledger.refused
    }

    fn advance(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    fn ask(&mut self, name: &P) {
        self.ledger.commands.push_back(PeerCommand::AskSnapshot { peer: name.clone() });
    }

    /// The peer, which may be new; `None` if there are too many.
    fn admit(&mut self, name: &P) -> Option<&mut Peer> {
        if !self.peers.contains_key(name) {
            if self.peers.len() >= self.ledger.settings.peers_max && !self.give_way() {
                self.ledger.refused += 1;
                return None;
            }
            // As many numbers as peers are taken, so one of the first that many and one is free.
            let replica = (1..=u32::MAX).find(|number| !self.replicas.contains_key(number))?;
            self.replicas.insert(replica, name.clone());
            self.peers.insert(name.clone(), Peer::new(replica));
        }
        self.peers.get_mut(name)
    }

    /// Forgets the peer that has been silent longest, if any is: its sockets are gone already.
    fn give_way(&mut self) -> bool {
        let silent = self.peers.iter().filter_map(|(name, peer)| Some((peer.silent_since()?, name)));
        let Some(name) = silent.min().map(|(_, name)| name.clone()) else { return false };
        self.forget(&name);
        true
    }

    fn forget(&mut self, name: &P) {
        if let Some(peer) = self.peers.remove(name) {
            self.replicas.remove(&peer.replica);
        }
    }
}
