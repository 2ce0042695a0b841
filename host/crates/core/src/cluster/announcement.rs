//! What replicas tell each other of their own sockets: numbered changes, and snapshots in parts.

use std::sync::Arc;
use std::time::Duration;

use crate::decisions::Departure;
use crate::ids::SocketId;

/// The size of a socket in a part without its names, in bytes: an estimate.
const SOCKET_BYTES: usize = 64;
/// The size of a method in a part without its name, in bytes: an estimate.
const METHOD_BYTES: usize = 16;

/// A change with its number. A replica's changes are numbered from 1 without holes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedChange {
    /// The number.
    pub seq: u64,
    /// The change.
    pub change: SocketChange,
}

/// A change of what a replica's own sockets have registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketChange {
    /// A socket registered a method, just now. By its first one the socket becomes known.
    Joined {
        /// The socket.
        socket: SocketId,
        /// Its user.
        user: Arc<str>,
        /// It can hand in a result after a reconnect. What a socket's first method says of it stands.
        resumable: bool,
        /// The method.
        method: Arc<str>,
    },
    /// A socket took a method back. With its last one it is not announced any more.
    Left {
        /// The socket.
        socket: SocketId,
        /// The method.
        method: Arc<str>,
    },
    /// A socket left with all its methods.
    Gone {
        /// The socket.
        socket: SocketId,
        /// Why.
        cause: Departure,
    },
}

/// A socket with all it has registered, at the moment of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedSocket {
    /// The socket.
    pub socket: SocketId,
    /// Its user.
    pub user: Arc<str>,
    /// It can hand in a result after a reconnect.
    pub resumable: bool,
    /// Its methods, and how long ago it registered each.
    pub methods: Vec<(Arc<str>, Duration)>,
}

/// All that a replica's own sockets have registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The number of the last change that is in it; 0 if there was none yet.
    pub seq: u64,
    /// The sockets that have methods, in the order of their ids.
    pub sockets: Vec<AnnouncedSocket>,
}

/// A part of a snapshot. All parts of one are sent at once, in order; those of one `seq` are always cut alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotPart {
    /// The snapshot's number.
    pub seq: u64,
    /// Which part it is, from 0.
    pub index: u32,
    /// Whether it is the last one.
    pub last: bool,
    /// What is in it. A socket with many methods may go on in the next part.
    pub sockets: Vec<AnnouncedSocket>,
}

impl Snapshot {
    /// Cuts it into parts, at least one, of about `part_bytes` each: none is larger by more than one method and one
    /// user's name.
    pub fn into_parts(self, part_bytes: usize) -> Vec<SnapshotPart> {
        let mut parts: Vec<Vec<AnnouncedSocket>> = vec![Vec::new()];
        let mut weight = 0;
        for announced in self.sockets {
            let mut is_begun = false;
            for (method, age) in announced.methods {
                if weight > 0 && weight >= part_bytes {
                    parts.push(Vec::new());
                    (weight, is_begun) = (0, false);
                }
                let Some(part) = parts.last_mut() else { continue };
                if !is_begun {
                    let (user, resumable) = (announced.user.clone(), announced.resumable);
                    weight += SOCKET_BYTES + user.len();
                    part.push(AnnouncedSocket { socket: announced.socket, user, resumable, methods: Vec::new() });
                    is_begun = true;
                }
                if let Some(begun) = part.last_mut() {
                    weight += METHOD_BYTES + method.len();
                    begun.methods.push((method, age));
                }
            }
        }
        let count = parts.len();
        let numbered = (0..).zip(parts);
        numbered
            .map(|(index, sockets)| SnapshotPart { seq: self.seq, index, last: index as usize + 1 == count, sockets })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(socket: u128, methods: &[&str]) -> AnnouncedSocket {
        let methods = methods.iter().map(|method| ((*method).into(), Duration::from_millis(7))).collect();
        AnnouncedSocket { socket: SocketId(socket), user: "u".into(), resumable: true, methods }
    }

    #[test]
    fn a_snapshot_of_nothing_is_one_part() {
        let parts = Snapshot { seq: 3, sockets: Vec::new() }.into_parts(1_000);
        assert_eq!(parts, [SnapshotPart { seq: 3, index: 0, last: true, sockets: Vec::new() }]);
    }

    #[test]
    fn what_fits_is_one_part() {
        let sockets = vec![announced(1, &["a", "b"]), announced(2, &["a"])];
        let parts = Snapshot { seq: 3, sockets: sockets.clone() }.into_parts(1_000);
        assert_eq!(parts, [SnapshotPart { seq: 3, index: 0, last: true, sockets }]);
    }

    #[test]
    fn a_socket_may_go_on_in_the_next_part() {
        let sockets = vec![announced(1, &["a", "b", "c"]), announced(2, &["a"])];
        // A socket with one method weighs 64 + 1 + 16 + 1, one more method 17.
        let parts = Snapshot { seq: 3, sockets }.into_parts(83);
        let part =
            |index, last, sockets: &[AnnouncedSocket]| SnapshotPart { seq: 3, index, last, sockets: sockets.to_vec() };
        let expected = [
            part(0, false, &[announced(1, &["a", "b"])]),
            part(1, false, &[announced(1, &["c"]), announced(2, &["a"])]),
        ];
        assert_eq!(parts[0], expected[0]);
        assert_eq!(parts[1].sockets, expected[1].sockets);
        assert!(parts[1].last && parts.len() == 2);
    }

    #[test]
    fn the_smallest_parts_hold_a_method_each() {
        let sockets = vec![announced(1, &["a", "b"]), announced(2, &["a"])];
        let parts = Snapshot { seq: 3, sockets }.into_parts(0);
        let methods: Vec<usize> = parts.iter().map(|part| part.sockets.len()).collect();
        assert_eq!(methods, [1, 1, 1]);
    }
}
