//! Converts the recipients of a message between socketioxide and the wire.

use std::borrow::Cow;
use std::str::FromStr;

use socketioxide_core::Sid;
use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreLocalAdapter, SocketEmitter};

use crate::wire::{Flags, Options};

/// The room of sockets that follow the stream. A socket joins it before any other room, in the namespace's middleware. Broadcasts
/// from the stream then reach it only through its [`Following`](crate::Following).
pub const FOLLOWERS_ROOM: &str = "#followers#";

/// Converts the recipients that another server selected. An empty list of rooms selects every socket.
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
        // A socket that is addressed alone is found even if it did not join the room of its own id.
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

/// Excludes sockets that follow the stream, because they get the broadcast from there.
pub(crate) fn exclude_followers<E: SocketEmitter>(local: &CoreLocalAdapter<E>, selected: &mut BroadcastOptions) {
    selected.except.push(Cow::Borrowed(FOLLOWERS_ROOM));
    // Socketioxide ignores `except` for a socket that is addressed alone.
    let is_alone = selected.rooms.is_empty() && !selected.has_flag(BroadcastFlags::Broadcast);
    if is_alone && selected.sid.is_some_and(|sid| local.socket_rooms(sid).contains(FOLLOWERS_ROOM)) {
        selected.sid = None;
    }
}

/// Converts recipients to the wire. `None` if there are none: an empty list of rooms must never be sent, because other servers
/// read it as "every socket".
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
mod tests;
