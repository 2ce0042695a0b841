//! What the peers share: the owner of each socket, the bounds, and the commands that wait to be carried out.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::peer_command::{PeerCommand, PeerSettings};
use crate::decisions::Departure;
use crate::ids::SocketId;

/// What concerns all peers together.
#[derive(Debug)]
pub(super) struct Ownership<P> {
    pub(super) settings: PeerSettings,
    /// The replica number of each socket's owner.
    pub(super) owners: HashMap<SocketId, u32>,
    pub(super) refused: u64,
    pub(super) commands: VecDeque<PeerCommand<P>>,
}

impl<P> Ownership<P> {
    pub(super) fn new(settings: PeerSettings) -> Ownership<P> {
        Ownership { settings, owners: HashMap::new(), refused: 0, commands: VecDeque::new() }
    }

    pub(super) fn connect(&mut self, socket: SocketId, user: Arc<str>, replica: u32, resumable: bool) {
        self.owners.insert(socket, replica);
        self.commands.push_back(PeerCommand::Connect { socket, user, replica, resumable });
    }

    pub(super) fn gone(&mut self, socket: SocketId, user: Arc<str>, cause: Departure) {
        self.owners.remove(&socket);
        self.commands.push_back(PeerCommand::Gone { socket, user, cause });
    }

    /// What became of a socket that was gone with its peer's silence. Nothing is said of one that another peer has
    /// announced since.
    pub(super) fn still_gone(&mut self, socket: SocketId, user: Arc<str>, cause: Departure) {
        if !self.owners.contains_key(&socket) {
            self.commands.push_back(PeerCommand::Gone { socket, user, cause });
        }
    }
}
