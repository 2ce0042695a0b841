//! Follows the commands of a directory of peers, and checks that they make sense.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pointwork_core::decisions::Departure;
use pointwork_core::{PeerCommand, PeerDirectory, SocketId, Time};

use crate::{Announcements, Name};

/// A socket's peer, its user and its methods.
pub(crate) type Entry = (Name, Arc<str>, BTreeSet<Arc<str>>);

#[derive(Default)]
pub(crate) struct Mirror {
    pub(crate) sockets: BTreeMap<SocketId, Entry>,
    /// The sockets that are gone by their peer's silence, with peer and user.
    pub(crate) silent: BTreeMap<SocketId, (Name, Arc<str>)>,
}

impl Mirror {
    pub(crate) fn hear(
        &mut self,
        command: &PeerCommand<Name>,
        directory: &PeerDirectory<Name>,
        announced: &Announcements,
        now: Time,
    ) {
        match command {
            PeerCommand::AskSnapshot { peer } => {
                assert!(directory.replica(peer).is_some(), "only known peers are asked")
            }
            PeerCommand::Connect { socket, user, replica, .. } => {
                let peer = *directory.owner(*socket).expect("a socket that connects has an owner");
                assert_eq!(directory.replica(&peer), Some(*replica));
                let before = self.silent.remove(socket);
                assert!(before.is_none_or(|(_, known)| known == *user), "one stream: another user without a Gone");
                let before = self.sockets.insert(*socket, (peer, user.clone(), BTreeSet::new()));
                assert_eq!(before, None, "one stream: connected twice");
            }
            PeerCommand::Register { socket, user, method, age } => {
                let (peer, known, methods) = self.sockets.get_mut(socket).expect("one stream: Connect comes first");
                assert_eq!(known, user);
                assert!(methods.insert(method.clone()), "one stream: registered twice");
                let first = announced.get(&(*peer, *socket, user.clone(), method.clone()));
                let first = first.expect("announced: only what its owner said");
                assert!(*age <= now.saturating_since(*first), "older than it can be");
            }
            PeerCommand::Unregister { socket, user, method } => {
                let (_, known, methods) = self.sockets.get_mut(socket).expect("one stream: Connect comes first");
                assert!(known == user && methods.remove(method), "one stream: unregistered what it had");
            }
            PeerCommand::Gone { socket, user, cause } => self.lose(*socket, user, *cause),
        }
    }

    pub(crate) fn check(&self, directory: &PeerDirectory<Name>, silent: &BTreeSet<Name>) {
        assert_eq!(self.sockets.len(), directory.sockets());
        for (socket, (peer, _, methods)) in &self.sockets {
            assert!(!methods.is_empty(), "a socket is announced by its methods");
            assert_eq!(directory.owner(*socket), Some(peer));
            assert!(!silent.contains(peer), "nothing is held of a silent peer");
        }
        for (peer, _) in self.silent.values() {
            assert!(silent.contains(peer) || directory.unsynced() > 0, "nothing is left behind of a peer that is back");
            assert!(directory.replica(peer).is_some(), "nothing is left behind of a peer that is lost");
        }
    }

    fn lose(&mut self, socket: SocketId, user: &Arc<str>, cause: Departure) {
        if let Some((peer, known, methods)) = self.sockets.remove(&socket) {
            assert_eq!(known, *user);
            assert!(cause != Departure::Unregistered || methods.is_empty(), "one stream: methods are taken back first");
            if cause == Departure::ReplicaSilent {
                self.silent.insert(socket, (peer, known));
            }
            return;
        }
        let (_, known) = self.silent.remove(&socket).expect("one stream: gone twice");
        assert!(known == *user && cause != Departure::ReplicaSilent, "one stream: silent twice");
    }
}
