//! Many sockets with bounded buffers, which record in order what they get and are told.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::Empty;
use socketioxide_core::adapter::errors::SocketError;
use socketioxide_core::adapter::{AckStreamItem, BroadcastIter, RemoteSocketData, SocketEmitter};
use socketioxide_core::packet::Packet;
use socketioxide_core::parser::Parse;
use socketioxide_core::{Sid, Str, Uid, Value};
use socketioxide_parser_common::CommonParser;
use socketioxide_redis_streams::Gap;
use socketioxide_redis_streams::transport::EntryId;
use tokio::sync::mpsc;

use crate::rig::recording_socket::NotAcknowledged;

const ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A packet or an event of the follower that a client gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delivery {
    /// An event's number, and its offset if it has one.
    Event(u64, Option<EntryId>),
    Began(EntryId),
    Recovered(EntryId, EntryId),
    Gap(Gap, Option<EntryId>),
    Overrun,
}

/// The sockets of a replica. Each has a buffer that is never emptied.
#[derive(Clone)]
pub(crate) struct BufferedSockets {
    sockets: Arc<Mutex<HashMap<Sid, Buffer>>>,
    path: Str,
    server: Uid,
}

/// Records what a socket gets, and how many more packets it takes.
struct Buffer {
    got: mpsc::UnboundedSender<Delivery>,
    room: usize,
}

impl BufferedSockets {
    pub(crate) fn new(path: &'static str) -> Self {
        BufferedSockets { sockets: Arc::default(), path: Str::from(path), server: Uid::new() }
    }

    /// Adds a socket that records what it gets.
    pub(crate) fn add(&self, sid: Sid, got: mpsc::UnboundedSender<Delivery>) {
        self.sockets.lock().unwrap().insert(sid, Buffer { got, room: 100_000 });
    }

    pub(crate) fn remove(&self, sid: Sid) {
        self.sockets.lock().unwrap().remove(&sid);
    }

    /// Sets for how many more packets the buffer of a socket has room.
    pub(crate) fn set_room(&self, sid: Sid, packets: usize) {
        self.sockets.lock().unwrap().get_mut(&sid).unwrap().room = packets;
    }

    fn give(&self, sid: Sid, data: &Value) -> Result<(), SocketError> {
        let Value::Str(text, _) = data else { panic!("the common parser writes text") };
        let mut sockets = self.sockets.lock().unwrap();
        let Some(Buffer { got, room }) = sockets.get_mut(&sid) else { return Ok(()) };
        *room = room.checked_sub(1).ok_or(SocketError::InternalChannelFull)?;
        let _ = got.send(event(text.as_str()));
        Ok(())
    }
}

/// `2["e",1]` or `2["e",1,"1700000000000-0"]`, perhaps with a namespace.
fn event(text: &str) -> Delivery {
    let inside = text.split_once('[').map(|(_, inside)| inside).and_then(|text| text.strip_suffix(']')).expect(text);
    let mut parts = inside.split(',').skip(1);
    let number = parts.next().expect(text).parse().expect(text);
    Delivery::Event(number, parts.next().map(|offset| offset.trim_matches('"').parse().expect(text)))
}

impl SocketEmitter for BufferedSockets {
    type AckError = NotAcknowledged;
    type AckStream = Empty<AckStreamItem<NotAcknowledged>>;

    fn get_all_sids(&self, filter: impl Fn(&Sid) -> bool) -> Vec<Sid> {
        self.sockets.lock().unwrap().keys().filter(|sid| filter(sid)).copied().collect()
    }

    fn get_remote_sockets(&self, sids: BroadcastIter<'_>) -> Vec<RemoteSocketData> {
        sids.map(|id| RemoteSocketData { id, server_id: self.server, ns: self.path.clone() }).collect()
    }

    fn send_many(&self, sids: BroadcastIter<'_>, data: Value) -> Result<(), Vec<SocketError>> {
        let errors: Vec<_> = sids.filter_map(|sid| self.give(sid, &data).err()).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    fn send_many_volatile(&self, sids: BroadcastIter<'_>, data: Value) {
        sids.for_each(|sid| drop(self.give(sid, &data)));
    }

    fn send_many_with_ack(&self, _: BroadcastIter<'_>, _: Packet, _: Option<Duration>) -> (Self::AckStream, u32) {
        (futures_util::stream::empty(), 0)
    }

    fn disconnect_many(&self, _: Vec<Sid>) -> Result<(), Vec<SocketError>> {
        Ok(())
    }

    fn path(&self) -> &Str {
        &self.path
    }

    fn parser(&self) -> impl Parse {
        CommonParser
    }

    fn server_id(&self) -> Uid {
        self.server
    }

    fn ack_timeout(&self) -> Duration {
        ACK_TIMEOUT
    }
}
