//! Collects the parts of a peer's snapshot until the last one arrives.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::announcement::AnnouncedSocket;
use super::ownership::Ownership;
use crate::ids::SocketId;
use crate::time::{Origin, Time};

/// The parts of a snapshot that are there.
#[derive(Debug)]
pub(super) struct PartialSnapshot {
    pub(super) seq: u64,
    pub(super) next: u32,
    pub(super) sockets: BTreeMap<SocketId, ArrivedSocket>,
}

#[derive(Debug)]
pub(super) struct ArrivedSocket {
    pub(super) user: Arc<str>,
    pub(super) resumable: bool,
    pub(super) methods: BTreeMap<Arc<str>, Origin>,
}

impl PartialSnapshot {
    pub(super) fn new(seq: u64) -> PartialSnapshot {
        PartialSnapshot { seq, next: 0, sockets: BTreeMap::new() }
    }

    /// Takes in what a part says of a socket, within the bounds. A part before may have begun it.
    pub(super) fn take<P>(&mut self, announced: AnnouncedSocket, ledger: &mut Ownership<P>, now: Time) {
        let settings = ledger.settings;
        for (method, age) in announced.methods {
            let begun = self.sockets.get(&announced.socket).map_or(0, |arrived| arrived.methods.len());
            if !settings.takes(&announced.user, &method)
                || begun >= settings.methods_per_socket_max
                || begun == 0 && self.sockets.len() >= settings.sockets_per_peer_max
            {
                ledger.refused += 1;
                continue;
            }
            let arrived = self.sockets.entry(announced.socket).or_insert_with(|| ArrivedSocket {
                user: announced.user.clone(),
                resumable: announced.resumable,
                methods: BTreeMap::new(),
            });
            arrived.methods.insert(method, Origin::before(now, age));
        }
    }
}
