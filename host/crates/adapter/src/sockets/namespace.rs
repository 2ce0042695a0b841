//! The namespaces of this replica: their sockets, and the application's callbacks that answer other servers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use rmpv::Value;
use socketioxide_core::Sid;

use super::local_sockets::LocalSockets;
use crate::wire::{Channels, Flags, TRACEPARENT};

/// Describes a socket to other servers.
pub type Describe = dyn Fn(Sid) -> Description + Send + Sync;

/// Answers a `serverSideEmit`. Takes the event's name and its arguments, and returns the first argument of the acknowledgement.
pub type AnswerEvent = dyn Fn(&str, Vec<Value>) -> Value + Send + Sync;

/// Continues the trace of a request. Takes its `traceparent`, and returns the callback for the end of the request.
pub type TraceRequest = dyn Fn(&str) -> Option<RequestEnd> + Send + Sync;

/// Is called at the end of a request, with whether a socket acknowledged it.
pub type RequestEnd = Box<dyn FnOnce(bool) + Send>;

/// What other servers get to know about a socket, besides its id and its rooms.
#[derive(Debug, Clone)]
pub struct Description {
    /// A map with any of the keys of [`RemoteSocket::handshake`](crate::wire::RemoteSocket::handshake). The adapter adds the missing
    /// keys, because callers on Node read them without checking that they exist.
    pub handshake: Vec<(Value, Value)>,
    /// What the application attached to the socket. Nil is sent as an empty map.
    pub data: Value,
}

impl Default for Description {
    fn default() -> Self {
        Description { handshake: Vec::new(), data: Value::Nil }
    }
}

/// All namespaces of this replica, by path.
#[derive(Default)]
pub(crate) struct LocalNamespaces(RwLock<HashMap<String, Arc<LocalNamespace>>>);

impl LocalNamespaces {
    pub(crate) fn get(&self, path: &str) -> Option<Arc<LocalNamespace>> {
        self.0.read().get(path).cloned()
    }

    /// The namespace with this path. It is added if it does not exist yet.
    pub(crate) fn get_or_add(&self, path: &str, channel_prefix: &str, uid: &str) -> Arc<LocalNamespace> {
        let mut namespaces = self.0.write();
        let number = namespaces.len() as u64;
        let added = || Arc::new(LocalNamespace::new(path, number, Channels::new(channel_prefix, path, uid)));
        namespaces.entry(path.to_owned()).or_insert_with(added).clone()
    }
}

/// A namespace of this replica.
pub(crate) struct LocalNamespace {
    pub(crate) path: String,
    /// Identifies the namespace within this replica.
    pub(crate) number: u64,
    pub(crate) channels: Channels,
    sockets: RwLock<Option<Arc<dyn LocalSockets>>>,
    pub(crate) describe: OnceLock<Box<Describe>>,
    pub(crate) answer: OnceLock<Box<AnswerEvent>>,
    pub(crate) trace: OnceLock<Box<TraceRequest>>,
}

impl LocalNamespace {
    fn new(path: &str, number: u64, channels: Channels) -> Self {
        LocalNamespace {
            path: path.to_owned(),
            number,
            channels,
            sockets: RwLock::new(None),
            describe: OnceLock::new(),
            answer: OnceLock::new(),
            trace: OnceLock::new(),
        }
    }

    /// `None` while socketioxide does not have the namespace: before it is created, and after it is removed.
    pub(crate) fn sockets(&self) -> Option<Arc<dyn LocalSockets>> {
        self.sockets.read().clone()
    }

    pub(crate) fn set_sockets(&self, sockets: Option<Arc<dyn LocalSockets>>) {
        *self.sockets.write() = sockets;
    }

    pub(crate) fn description(&self, socket: Sid) -> Description {
        self.describe.get().map(|describe| describe(socket)).unwrap_or_default()
    }

    /// Answers a `serverSideEmit`; nil if the application set no callback.
    pub(crate) fn answer_event(&self, event: &str, args: Vec<Value>) -> Value {
        self.answer.get().map_or(Value::Nil, |answer| answer(event, args))
    }

    /// Continues the trace of a request, if it is part of one.
    pub(crate) fn trace_request(&self, flags: &Flags) -> Option<RequestEnd> {
        let trace = self.trace.get()?;
        trace(flags.get(TRACEPARENT)?.as_str()?)
    }
}
