//! The event `rpc-waiting`, which tells a caller that its call waits for a daemon.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use crate::edge::{send::emit, socketio::SocketRef};

/// The name of the event.
const RPC_WAITING: &str = "rpc-waiting";

/// The payload of the event.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingPayload<'a> {
    /// The method as the caller sent it.
    method: &'a str,
    /// How long the call has been without its daemon, in milliseconds.
    since_ms: u64,
    /// How long it waits at most, in milliseconds. 0 means that it no longer waits.
    deadline_ms: u64,
}

/// An event for the caller of a call that waits for a daemon, or no longer waits.
pub(in crate::calls) struct WaitingEvent {
    pub(super) caller: SocketRef,
    pub(super) method: Arc<str>,
    /// How long the call has been without its daemon.
    pub(super) since: Duration,
    /// How long it waits at most from now on.
    pub(super) left: Duration,
}

impl WaitingEvent {
    /// `rpc-waiting {method, sinceMs, deadlineMs}`.
    pub(in crate::calls) fn send(self) {
        let payload =
            WaitingPayload { method: &self.method, since_ms: millis_up(self.since), deadline_ms: millis_up(self.left) };
        emit(&self.caller, RPC_WAITING, &payload);
    }
}

/// Whole milliseconds, rounded up, so that 0 means that no time is left.
fn millis_up(span: Duration) -> u64 {
    u64::try_from(span.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
