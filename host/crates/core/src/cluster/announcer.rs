//! Tracks what this replica's own sockets registered, and numbers the changes for the other replicas.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::announcement::{AnnouncedSocket, NumberedChange, Snapshot, SocketChange};
use crate::decisions::Departure;
use crate::ids::SocketId;
use crate::time::Time;

/// The announced sockets of this replica. A socket is announced as long as it has methods.
///
/// Each change that is to be announced is given once, with its number; they are to be sent in that order, and snapshots
/// and the number in heartbeats in the same order as they were taken.
#[derive(Debug, Default)]
pub struct Announcer {
    seq: u64,
    /// None without methods.
    sockets: BTreeMap<SocketId, OwnSocket>,
}

#[derive(Debug)]
struct OwnSocket {
    user: Arc<str>,
    resumable: bool,
    /// Each method with the moment of its registration.
    methods: BTreeMap<Arc<str>, Time>,
}

impl Announcer {
    /// A announcer without sockets.
    pub fn new() -> Announcer {
        Announcer::default()
    }

    /// A socket registered a method; `None` if it has it already. A socket that comes as another user has none of the
    /// methods it had.
    pub fn join(
        &mut self,
        socket: SocketId,
        user: Arc<str>,
        resumable: bool,
        method: Arc<str>,
        now: Time,
    ) -> Option<NumberedChange> {
        if self.sockets.get(&socket).is_some_and(|entry| entry.user != user) {
            self.sockets.remove(&socket);
        }
        let entry = self.sockets.entry(socket).or_insert_with(|| OwnSocket {
            user: user.clone(),
            resumable,
            methods: BTreeMap::new(),
        });
        if entry.methods.contains_key(&method) {
            return None;
        }
        entry.methods.insert(method.clone(), now);
        let resumable = entry.resumable;
        Some(self.number(SocketChange::Joined { socket, user, resumable, method }))
    }

    /// A socket took a method back; `None` if it did not have it.
    pub fn leave(&mut self, socket: SocketId, method: &Arc<str>) -> Option<NumberedChange> {
        let entry = self.sockets.get_mut(&socket)?;
        entry.methods.remove(method)?;
        if entry.methods.is_empty() {
            self.sockets.remove(&socket);
        }
        Some(self.number(SocketChange::Left { socket, method: method.clone() }))
    }

    /// A socket left; `None` if it has no methods, and so is not announced.
    pub fn gone(&mut self, socket: SocketId, cause: Departure) -> Option<NumberedChange> {
        self.sockets.remove(&socket)?;
        Some(self.number(SocketChange::Gone { socket, cause }))
    }

    /// The number of the last change; 0 if there was none yet.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// How many sockets are announced.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Everything, as of now.
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let announced = |(socket, entry): (&SocketId, &OwnSocket)| AnnouncedSocket {
            socket: *socket,
            user: entry.user.clone(),
            resumable: entry.resumable,
            methods: entry.methods.iter().map(|(method, at)| (method.clone(), now.saturating_since(*at))).collect(),
        };
        Snapshot { seq: self.seq, sockets: self.sockets.iter().map(announced).collect() }
    }

    fn number(&mut self, change: SocketChange) -> NumberedChange {
        self.seq += 1;
        NumberedChange { seq: self.seq, change }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ONE: SocketId = SocketId(1);

    fn join(announcer: &mut Announcer, user: &str, method: &str, millis: u64) -> Option<NumberedChange> {
        announcer.join(ONE, user.into(), true, method.into(), Time::from_millis(millis))
    }

    #[test]
    fn changes_are_numbered_without_holes() {
        let mut announcer = Announcer::new();
        assert_eq!((announcer.seq(), announcer.gone(ONE, Departure::Closed)), (0, None));
        let joined = |method: &str| SocketChange::Joined {
            socket: ONE,
            user: "u".into(),
            resumable: true,
            method: method.into(),
        };
        assert_eq!(join(&mut announcer, "u", "a", 1), Some(NumberedChange { seq: 1, change: joined("a") }));
        assert_eq!(join(&mut announcer, "u", "a", 2), None);
        assert_eq!(join(&mut announcer, "u", "b", 3), Some(NumberedChange { seq: 2, change: joined("b") }));
        assert_eq!(announcer.leave(ONE, &"c".into()), None);
        let left = SocketChange::Left { socket: ONE, method: "a".into() };
        assert_eq!(announcer.leave(ONE, &"a".into()), Some(NumberedChange { seq: 3, change: left }));
        let gone = SocketChange::Gone { socket: ONE, cause: Departure::Closed };
        assert_eq!(announcer.gone(ONE, Departure::Closed), Some(NumberedChange { seq: 4, change: gone }));
        assert_eq!((announcer.seq(), announcer.sockets(), announcer.gone(ONE, Departure::Closed)), (4, 0, None));
    }

    #[test]
    fn a_socket_without_methods_is_not_announced() {
        let mut announcer = Announcer::new();
        join(&mut announcer, "u", "a", 1);
        assert!(announcer.leave(ONE, &"a".into()).is_some());
        assert_eq!(announcer.snapshot(Time::ZERO), Snapshot { seq: 2, sockets: Vec::new() });
        assert_eq!((announcer.leave(ONE, &"a".into()), announcer.gone(ONE, Departure::Closed)), (None, None));
    }

    #[test]
    fn a_snapshot_tells_ages() {
        let mut announcer = Announcer::new();
        join(&mut announcer, "u", "b", 100);
        join(&mut announcer, "u", "a", 400);
        join(&mut announcer, "u", "b", 500);
        let methods = vec![("a".into(), Duration::from_millis(600)), ("b".into(), Duration::from_millis(900))];
        let announced = AnnouncedSocket { socket: ONE, user: "u".into(), resumable: true, methods };
        let snapshot = announcer.snapshot(Time::from_millis(1_000));
        assert_eq!(snapshot, Snapshot { seq: 2, sockets: vec![announced] });
    }

    #[test]
    fn another_user_begins_anew() {
        let mut announcer = Announcer::new();
        join(&mut announcer, "u", "a", 1);
        assert!(join(&mut announcer, "v", "a", 2).is_some());
        let sockets = announcer.snapshot(Time::from_millis(2)).sockets;
        assert_eq!((sockets.len(), &*sockets[0].user, sockets[0].methods.len()), (1, "v", 1));
    }
}
