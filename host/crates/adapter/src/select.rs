//! Whom a message is for, in socketioxide's terms and in the wire's.

use std::borrow::Cow;
use std::str::FromStr;

use socketioxide_core::Sid;
use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreLocalAdapter, SocketEmitter};

use crate::follow::FOLLOWERS_ROOM;
use crate::wire::{Flags, Options};

/// The local sockets that another server means. No rooms mean everyone.
pub(crate) fn from_wire<E: SocketEmitter>(local: &CoreLocalAdapter<E>, opts: &Options) -> BroadcastOptions {
    let names = |rooms: &[String]| rooms.iter().cloned().map(Cow::Owned).collect();
    let mut selected = BroadcastOptions::default();
    selected.rooms = names(&opts.rooms);
    selected.except = names(&opts.except);
    if opts.flags.volatile() {
        selected.add_flag(BroadcastFlags::Volatile);
    }
    match opts.rooms.as_slice() {
        [] => selected.add_flag(BroadcastFlags::Broadcast),
        // A socket that did not join the room of its own id is found nevertheless, where it is meant alone.
        [room] if opts.except.is_empty() => {
            if let Ok(sid) = Sid::from_str(room)
                && local.sockets(selected.clone()).is_empty()
            {
                selected.rooms.clear();
                selected.sid = Some(sid);
            }
        }
        _ => {}
    }
    selected
}

/// Leaves out who follows the stream and gets it from there.
pub(crate) fn spare_followers<E: SocketEmitter>(local: &CoreLocalAdapter<E>, selected: &mut BroadcastOptions) {
    selected.except.push(Cow::Borrowed(FOLLOWERS_ROOM));
    // One socket that is meant alone is sent to whatever is excepted.
    let is_alone = selected.rooms.is_empty() && !selected.has_flag(BroadcastFlags::Broadcast);
    if is_alone && selected.sid.is_some_and(|sid| local.socket_rooms(sid).contains(FOLLOWERS_ROOM)) {
        selected.sid = None;
    }
}

/// What other servers are to be told; `None` when nobody is meant. A set of rooms that came out empty is nobody, and must never be
/// told, for on the wire it is everyone.
pub(crate) fn to_wire(selected: &BroadcastOptions) -> Option<Options> {
    let to_all = selected.has_flag(BroadcastFlags::Broadcast);
    let rooms = match (selected.rooms.is_empty(), selected.sid) {
        (false, _) => selected.rooms.iter().map(|room| room.clone().into_owned()).collect(),
        (true, _) if to_all => Vec::new(),
        (true, Some(sid)) => vec![sid.to_string()],
        (true, None) => return None,
    };
    let sender = selected.sid.filter(|_| to_all).map(|sid| sid.to_string());
    let except = selected.except.iter().map(|room| room.clone().into_owned()).chain(sender).collect();
    let volatile = selected.has_flag(BroadcastFlags::Volatile);
    let flags = if volatile { Flags::default().with("volatile", true) } else { Flags::default() };
    Some(Options { rooms, except, flags })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sid() -> Sid {
        Sid::from_str("AAAAAAAAAAAAAAAA").unwrap()
    }

    fn told(selected: BroadcastOptions) -> Option<(Vec<String>, Vec<String>)> {
        to_wire(&selected).map(|opts| (opts.rooms, opts.except))
    }

    #[test]
    fn nobody_is_not_everyone() {
        assert_eq!(told(BroadcastOptions::default()), None);
        let mut everyone = BroadcastOptions::default();
        everyone.add_flag(BroadcastFlags::Broadcast);
        assert_eq!(told(everyone), Some((vec![], vec![])));
    }

    #[test]
    fn a_sender_is_left_out_of_its_own_broadcast() {
        let mut others = BroadcastOptions::new(sid());
        others.rooms.push("r".into());
        assert_eq!(told(others.clone()), Some((vec!["r".into()], vec![])), "within a room it is one of them");
        others.add_flag(BroadcastFlags::Broadcast);
        others.except.push("x".into());
        assert_eq!(told(others), Some((vec!["r".into()], vec!["x".into(), sid().to_string()])));
    }

    #[test]
    fn one_socket_is_the_room_of_its_id() {
        assert_eq!(told(BroadcastOptions::new(sid())), Some((vec![sid().to_string()], vec![])));
        let mut volatile = BroadcastOptions::new(sid());
        volatile.add_flag(BroadcastFlags::Volatile);
        assert!(to_wire(&volatile).unwrap().flags.volatile());
    }
}
