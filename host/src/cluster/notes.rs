//! What replicas note to each other, in msgpack: lists without keys, since only replicas of this kind read them.
//!
//! | note | data |
//! |---|---|
//! | [`CHANGE`] | `[seq, 0, socket, user, method, resumable]` joined, `[seq, 1, socket, method]` left, `[seq, 2, socket, cause]` gone |
//! | [`ASK`] | nil: the peer's snapshot is wanted |
//! | [`PART`] | `[seq, index, last, [[socket, user, resumable, [[method, age in ms], …]], …]]` |
//! | [`ENDED`] | `[[user, session, time in ms since 1970], …]`: sessions that ended |
//! | [`RESUMED`] | `[user, old socket, new socket, client, [[replica, [call, …]], …]]`: a daemon is back, and has these requests |
//! | [`POLICY`] | nil: what replicas share of policies has changed, or what the sender reports of them |
//! | [`EXPERIMENTS`] | nil: they were changed |
//! | [`LEAVING`], [`NOTED`] | nil: no more calls, please; and the answer: there will be none |
//!
//! A socket is its 16 bytes. What a later version adds at the end of a list is not read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use pointwork_core::{
    CallId, SocketId, UserSession,
    cluster::{AnnouncedSocket, NumberedChange, SnapshotPart, SocketChange},
    decisions::Departure,
};
use rmpv::Value;
use socketioxide_redis_streams::NOTE_MIN;

/// A daemon is back on another socket, and says which requests of its former one it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resumed {
    pub(crate) user: Arc<str>,
    pub(crate) old: SocketId,
    pub(crate) new: SocketId,
    /// What the client is, within its user.
    pub(crate) client: u64,
    /// By the replica of their callers.
    pub(crate) has: BTreeMap<String, BTreeSet<CallId>>,
}

/// A numbered change.
pub(super) const CHANGE: u32 = NOTE_MIN;
/// The receiver is asked for its snapshot.
pub(super) const ASK: u32 = NOTE_MIN + 1;
/// A part of a snapshot.
pub(super) const PART: u32 = NOTE_MIN + 2;

/// The sender shuts down in order and wants no more calls.
pub(super) const LEAVING: u32 = NOTE_MIN + 3;

/// The receiver's wish is known: whatever the sender sent it before came first.
pub(super) const NOTED: u32 = NOTE_MIN + 4;

/// Sessions ended: what they said before says nothing any more.
pub(super) const ENDED: u32 = NOTE_MIN + 5;

/// A daemon is back on another socket.
pub(super) const RESUMED: u32 = NOTE_MIN + 6;

/// There is news of policies in Redis.
pub(super) const POLICY: u32 = NOTE_MIN + 7;

/// Experiments were changed: whoever hears it looks at the store.
pub(super) const EXPERIMENTS: u32 = NOTE_MIN + 8;

const JOINED: u64 = 0;
const LEFT: u64 = 1;
const GONE: u64 = 2;

/// How a socket can have gone, each by its number.
const CAUSES: [Departure; 8] = [
    Departure::NeverSeen,
    Departure::Closed,
    Departure::Unregistered,
    Departure::TransportLost,
    Departure::ReplicaLost,
    Departure::ReplicaSilent,
    Departure::Drained,
    Departure::Evicted,
];

pub(super) fn from_ends<'a>(ends: impl Iterator<Item = (&'a UserSession, u64)>) -> Value {
    let end = |(session, time_ms): (&UserSession, u64)| {
        Value::Array(vec![(*session.user).into(), (*session.id).into(), time_ms.into()])
    };
    Value::Array(ends.map(end).collect())
}

pub(super) fn to_ends(value: Value) -> Option<Vec<(UserSession, u64)>> {
    let end = |value| {
        let mut fields = List::of(value)?;
        Some((UserSession { user: fields.text()?, id: fields.text()? }, fields.number()?))
    };
    List::of(value)?.0.map(end).collect()
}

pub(super) fn from_resumed(resumed: &Resumed) -> Value {
    let calls = |(owner, calls): (&String, &BTreeSet<CallId>)| {
        let calls = calls.iter().map(|call| call.0.into()).collect();
        Value::Array(vec![owner.as_str().into(), Value::Array(calls)])
    };
    let has = resumed.has.iter().map(calls).collect();
    let (old, new) = (from_socket(resumed.old), from_socket(resumed.new));
    Value::Array(vec![(*resumed.user).into(), old, new, resumed.client.into(), Value::Array(has)])
}

pub(super) fn to_resumed(value: Value) -> Option<Resumed> {
    let mut fields = List::of(value)?;
    let (user, old, new, client) = (fields.text()?, fields.socket()?, fields.socket()?, fields.number()?);
    let calls = |value| {
        let mut fields = List::of(value)?;
        let owner = fields.text()?.to_string();
        let calls = List::of(fields.value()?)?.0.map(|call| call.as_u64().map(CallId));
        Some((owner, calls.collect::<Option<_>>()?))
    };
    let has = List::of(fields.value()?)?.0.map(calls).collect::<Option<_>>()?;
    Some(Resumed { user, old, new, client, has })
}

pub(super) fn from_change(numbered: &NumberedChange) -> Value {
    let fields = match &numbered.change {
        SocketChange::Joined { socket, user, resumable, method } => {
            vec![JOINED.into(), from_socket(*socket), (**user).into(), (**method).into(), (*resumable).into()]
        }
        SocketChange::Left { socket, method } => vec![LEFT.into(), from_socket(*socket), (**method).into()],
        SocketChange::Gone { socket, cause } => vec![GONE.into(), from_socket(*socket), from_cause(*cause)],
    };
    Value::Array(std::iter::once(numbered.seq.into()).chain(fields).collect())
}

pub(super) fn to_change(value: Value) -> Option<NumberedChange> {
    let mut fields = List::of(value)?;
    let seq = fields.number()?;
    let kind = fields.number()?;
    let socket = fields.socket()?;
    let change = match kind {
        JOINED => {
            let (user, method) = (fields.text()?, fields.text()?);
            SocketChange::Joined { socket, user, method, resumable: fields.boolean()? }
        }
        LEFT => SocketChange::Left { socket, method: fields.text()? },
        GONE => SocketChange::Gone { socket, cause: *CAUSES.get(usize::try_from(fields.number()?).ok()?)? },
        _ => return None,
    };
    Some(NumberedChange { seq, change })
}

pub(super) fn from_part(part: &SnapshotPart) -> Value {
    let method = |(method, age): &(Arc<str>, Duration)| {
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Value::Array(vec![(**method).into(), age_ms.into()])
    };
    let socket = |announced: &AnnouncedSocket| {
        let methods = announced.methods.iter().map(method).collect();
        let user = Value::from(&*announced.user);
        Value::Array(vec![from_socket(announced.socket), user, announced.resumable.into(), Value::Array(methods)])
    };
    let sockets = part.sockets.iter().map(socket).collect();
    Value::Array(vec![part.seq.into(), part.index.into(), part.last.into(), Value::Array(sockets)])
}

pub(super) fn to_part(value: Value) -> Option<SnapshotPart> {
    let mut fields = List::of(value)?;
    let (seq, index) = (fields.number()?, u32::try_from(fields.number()?).ok()?);
    let last = fields.boolean()?;
    let sockets = List::of(fields.value()?)?.0.map(to_announced).collect::<Option<_>>()?;
    Some(SnapshotPart { seq, index, last, sockets })
}

fn to_announced(value: Value) -> Option<AnnouncedSocket> {
    let mut fields = List::of(value)?;
    let (socket, user, resumable) = (fields.socket()?, fields.text()?, fields.boolean()?);
    let method = |value| {
        let mut fields = List::of(value)?;
        Some((fields.text()?, Duration::from_millis(fields.number()?)))
    };
    let methods = List::of(fields.value()?)?.0.map(method).collect::<Option<_>>()?;
    Some(AnnouncedSocket { socket, user, resumable, methods })
}

fn from_socket(socket: SocketId) -> Value {
    Value::Binary(socket.0.to_be_bytes().to_vec())
}

fn from_cause(cause: Departure) -> Value {
    CAUSES.iter().position(|known| *known == cause).unwrap_or(0).into()
}

/// The fields of a list, in order.
struct List(std::vec::IntoIter<Value>);

impl List {
    fn of(value: Value) -> Option<Self> {
        match value {
            Value::Array(fields) => Some(Self(fields.into_iter())),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.0.next()
    }

    fn number(&mut self) -> Option<u64> {
        self.value()?.as_u64()
    }

    fn boolean(&mut self) -> Option<bool> {
        self.value()?.as_bool()
    }

    fn text(&mut self) -> Option<Arc<str>> {
        self.value()?.as_str().map(Arc::from)
    }

    fn socket(&mut self) -> Option<SocketId> {
        let bytes: [u8; 16] = self.value()?.as_slice()?.try_into().ok()?;
        Some(SocketId(u128::from_be_bytes(bytes)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn socket() -> SocketId {
        SocketId(u128::from_be_bytes(*b"AAAAAAAAAAAAAAAB"))
    }

    fn read(value: &Value) -> Value {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        rmpv::decode::read_value(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn changes_are_read_as_they_were_written() {
        let joined =
            SocketChange::Joined { socket: socket(), user: "ü:1".into(), method: "m".into(), resumable: true };
        let left = SocketChange::Left { socket: socket(), method: "m".into() };
        let gone = CAUSES.map(|cause| SocketChange::Gone { socket: socket(), cause });
        for change in [joined, left].into_iter().chain(gone) {
            let numbered = NumberedChange { seq: u64::MAX, change };
            assert_eq!(to_change(read(&from_change(&numbered))), Some(numbered));
        }
    }

    #[test]
    fn parts_are_read_as_they_were_written() {
        let methods = vec![("a".into(), Duration::ZERO), ("b".into(), Duration::from_millis(3_600_000))];
        let announced = AnnouncedSocket { socket: socket(), user: "u".into(), resumable: false, methods };
        let part = SnapshotPart { seq: 7, index: 2, last: true, sockets: vec![announced] };
        assert_eq!(to_part(read(&from_part(&part))), Some(part));
    }

    #[test]
    fn ends_are_read_as_they_were_written() {
        let ends = vec![(UserSession { user: "ü:1".into(), id: "s".into() }, u64::MAX)];
        let written = from_ends(ends.iter().map(|(session, time_ms)| (session, *time_ms)));
        assert_eq!(to_ends(read(&written)), Some(ends));
        assert_eq!((to_ends(Value::Array(vec![Value::Nil])), to_ends(Value::Nil)), (None, None));
    }

    #[test]
    fn what_a_daemon_resumes_is_read_as_it_was_written() {
        let has = [("a".to_owned(), BTreeSet::from([CallId(1), CallId(u64::MAX)])), ("b".to_owned(), BTreeSet::new())];
        let resumed = Resumed { user: "ü:1".into(), old: socket(), new: SocketId(7), client: 9, has: has.into() };
        assert_eq!(to_resumed(read(&from_resumed(&resumed))), Some(resumed));
        assert_eq!(to_resumed(Value::Nil), None);
    }

    #[test]
    fn what_is_none_is_refused() {
        let whole = from_change(&NumberedChange {
            seq: 1,
            change: SocketChange::Left { socket: socket(), method: "m".into() },
        });
        let Value::Array(fields) = whole else { unreachable!() };
        for count in 0..fields.len() {
            assert_eq!(to_change(Value::Array(fields[..count].to_vec())), None);
        }
        for at in 0..fields.len() {
            let mut wrong = fields.clone();
            wrong[at] = Value::Nil;
            assert_eq!(to_change(Value::Array(wrong)), None);
        }
        assert_eq!((to_change(Value::Nil), to_part(Value::Nil)), (None, None));
    }
}
