//! After messages may have been lost, asks each peer which of our open requests it is still serving, and fails the others.
//!
//! If a message by PUB/SUB is lost, a request can stay open although nobody will answer it. The peer knows: if it is not serving a
//! request, either the request never arrived, or its answer was lost, or its answer arrives before the peer's reply to this question.
//! So a request that is still served stays open, and any other fails at once.
//!
//! This replica asks when its own subscription was interrupted or overrun, and when a peer's was, which the peer's heartbeats say.
//! Servers of another kind cannot be asked, so requests to them fail.

use std::sync::Arc;

use rmpv::Value;

use super::open_requests::OpenRequests;
use super::served_requests::ServedRequests;
use crate::outbox::Publisher;
use crate::wire::{NOT_SERVED, STATUS_REQUEST};

/// How many requests one message asks about.
const IDS_MAX: usize = 4_096;

/// Asks about open requests, and answers the same question of peers.
pub(crate) struct LostRequests {
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) open: OpenRequests,
    pub(crate) served: Arc<ServedRequests>,
}

impl LostRequests {
    /// Messages to this replica may have been lost: asks every peer about the requests to it, and fails all other requests.
    pub(crate) fn ask_all(&self, peers: &[String]) {
        self.open.fail_those(|server| server.is_none_or(|server| !peers.iter().any(|peer| peer == server)));
        peers.iter().for_each(|peer| self.ask(peer));
    }

    /// Messages to a peer may have been lost: asks it about the requests to it.
    pub(crate) fn ask(&self, peer: &str) {
        for ids in self.open.to(peer).chunks(IDS_MAX) {
            let data = ids.iter().map(|id| Value::from(id.as_str())).collect();
            if let Err(error) = self.publisher.publish_to_replicas(Some(peer), STATUS_REQUEST, Value::Array(data)) {
                tracing::debug!(%error, peer, "could not ask a peer about open requests");
                ids.iter().for_each(|id| self.open.fail(id));
            }
        }
    }

    /// A peer asks about its requests to this replica.
    pub(crate) fn handle_status_request(&self, peer: &str, ids: &Value) {
        let is_served = |id: &&Value| id.as_str().is_some_and(|id| self.served.contains(id));
        let not_served = list(ids).iter().filter(|id| !is_served(id)).cloned().collect();
        if let Err(error) = self.publisher.publish_to_replicas(Some(peer), NOT_SERVED, Value::Array(not_served)) {
            tracing::debug!(%error, peer, "could not answer a peer about its requests");
        }
    }

    /// A peer answered that it is not serving these requests.
    pub(crate) fn handle_not_served(&self, ids: &Value) {
        for id in list(ids).iter().filter_map(Value::as_str) {
            metrics::counter!("adapter_requests_lost_total").increment(1);
            self.open.fail(id);
        }
    }

    /// A peer said that no socket will acknowledge these requests.
    pub(crate) fn handle_unanswered(&self, ids: &Value) {
        list(ids).iter().filter_map(Value::as_str).for_each(|id| self.open.give_up(id));
    }
}

fn list(ids: &Value) -> &[Value] {
    ids.as_array().map(Vec::as_slice).unwrap_or_default()
}
