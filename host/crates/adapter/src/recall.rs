//! What became of open requests when messages were lost: their servers are asked.
//!
//! A message that was lost by PUB/SUB leaves a request open that nobody will answer. Its server knows: a request that it is not
//! serving has either never come, or its answer was sent and is lost, or the answer is on its way and comes before this one's. So a
//! request that is still being served goes on, however long it takes, and any other fails at once.
//!
//! It is asked when this replica's subscription was interrupted or overrun, and when a peer's was, which its heartbeats tell. Servers
//! of another kind cannot be asked, and requests to them fail.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rmpv::Value;

use crate::cluster::{Inner, Shared};
use crate::lock::lock;

/// Asks a peer which of these requests it is not serving.
pub(crate) const RECALL: u32 = 102;
/// The answer: those that it is not serving.
pub(crate) const UNSERVED: u32 = 103;
/// A server tells that these requests will not be answered: their sockets are gone or do not take them, or have let their time
/// pass.
pub(crate) const UNANSWERED: u32 = 105;
/// How many requests are asked about in one message.
const IDS_MAX: usize = 4_096;

/// The requests of other servers whose acks are awaited here, each with the rooms that it is for.
#[derive(Debug, Default)]
pub(crate) struct Served {
    open: Arc<Mutex<HashMap<String, Vec<String>>>>,
    begun: AtomicU64,
}

/// A request that is being served, until this is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    id: String,
    open: Arc<Mutex<HashMap<String, Vec<String>>>>,
}

impl Served {
    pub(crate) fn begin(&self, id: &str, rooms: Vec<String>) -> Serving {
        self.begun.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(id.to_owned(), rooms);
        Serving { id: id.to_owned(), open: self.open.clone() }
    }

    pub(crate) fn count(&self) -> usize {
        lock(&self.open).len()
    }

    /// How many there were ever.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) fn rooms(&self) -> HashSet<String> {
        lock(&self.open).values().flatten().cloned().collect()
    }

    fn has(&self, id: &str) -> bool {
        lock(&self.open).contains_key(id)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.id);
    }
}

/// Messages to this replica may have been lost: each peer is asked about the requests to it, and the others' fail.
pub(crate) fn recall_all(inner: &Inner, shared: &Shared) {
    let peers: Vec<String> = inner.step(|peers, _| peers.uids().cloned().collect()).unwrap_or_default();
    shared.requests.fail_those(|server| server.is_none_or(|server| !peers.iter().any(|peer| peer == server)));
    peers.iter().for_each(|peer| recall(inner, shared, peer));
}

/// Messages to a peer may have been lost: it is asked about the requests to it.
pub(crate) fn recall(inner: &Inner, shared: &Shared, peer: &str) {
    for ids in shared.requests.to(peer).chunks(IDS_MAX) {
        let asked = ids.iter().map(|id| Value::from(id.as_str())).collect();
        if let Err(error) = inner.tell_peers(Some(peer), RECALL, Value::Array(asked)) {
            tracing::debug!(%error, peer, "a peer could not be asked about requests");
            ids.iter().for_each(|id| shared.requests.fail(id));
        }
    }
}

/// A peer asks about its requests to this replica.
pub(crate) fn answer(inner: &Inner, shared: &Shared, peer: &str, asked: &Value) {
    let ids = asked.as_array().map(Vec::as_slice).unwrap_or_default();
    let unserved = ids.iter().filter(|id| id.as_str().is_none_or(|id| !shared.served.has(id))).cloned().collect();
    if let Err(error) = inner.tell_peers(Some(peer), UNSERVED, Value::Array(unserved)) {
        tracing::debug!(%error, peer, "a peer was not told about its requests");
    }
}

/// No socket has acknowledged a request, and none will. Servers of another kind do not hear this.
pub(crate) fn tell_unanswered(inner: &Inner, peer: &str, id: &str) {
    if let Err(error) = inner.tell_peers(Some(peer), UNANSWERED, Value::Array(vec![id.into()])) {
        tracing::debug!(%error, peer, "a peer was not told that its request will not be answered");
    }
}

/// A peer told that these requests will not be answered.
pub(crate) fn unanswered(shared: &Shared, ids: &Value) {
    for id in ids.as_array().map(Vec::as_slice).unwrap_or_default() {
        if let Some(id) = id.as_str() {
            shared.requests.give_up(id);
        }
    }
}

/// A peer answered: these requests are lost.
pub(crate) fn unserved(shared: &Shared, ids: &Value) {
    for id in ids.as_array().map(Vec::as_slice).unwrap_or_default() {
        if let Some(id) = id.as_str() {
            metrics::counter!("adapter_requests_lost_total").increment(1);
            shared.requests.fail(id);
        }
    }
}
