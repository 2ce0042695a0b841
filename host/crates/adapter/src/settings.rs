//! The settings of a replica. The replicas of one cluster must use the same names.

use std::time::Duration;

use crate::wire::{CHANNEL_PREFIX, Limits, STREAM_LEN_MAX, STREAM_NAME};

/// The settings of a [`Cluster`](crate::Cluster).
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the stream; Node's `streamName`.
    pub stream_name: String,
    /// The prefix of all channels; Node's `channelPrefix`.
    pub channel_prefix: String,
    /// About how many entries the stream keeps; Node's `maxLen`.
    pub stream_len_max: u64,
    /// How many entries are read at once; Node's `readCount`.
    pub read_count: u64,
    /// How long one read waits for an entry. An idle stream is checked for lost entries after each such time.
    pub read_block: Duration,
    /// The time between two heartbeats.
    pub heartbeat: Duration,
    /// A peer without a heartbeat for so long is silent.
    pub lost_after: Duration,
    /// The time between two checks whether the peers are still subscribed. It decides how soon a killed peer is found.
    pub probe: Duration,
    /// How long a request to all servers waits for their answers unless the caller says otherwise; Node's
    /// `requestsTimeout`.
    pub request_timeout: Duration,
    /// How many messages may wait to be sent.
    pub outbox_messages_max: usize,
    /// How many bytes they may have together.
    pub outbox_bytes_max: usize,
    /// How many requests may be open at once.
    pub requests_max: usize,
    /// How many of the stream's last entries are kept for sockets that follow it. Twice as many are kept while older entries are read for
    /// clients that were away longer.
    pub log_entries_max: usize,
    /// How many bytes the broadcasts among them may have together, as they are sent to clients.
    pub log_bytes_max: usize,
    /// How many missed broadcasts a socket gets at most. Its buffer must have room for them.
    pub recover_events_max: usize,
    /// How many bytes they may have together. They are copied into the socket's buffer at once.
    pub recover_bytes_max: usize,
    /// The limits of messages.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            stream_name: STREAM_NAME.to_owned(),
            channel_prefix: CHANNEL_PREFIX.to_owned(),
            stream_len_max: STREAM_LEN_MAX,
            read_count: 100,
            read_block: Duration::from_secs(1),
            heartbeat: Duration::from_millis(500),
            lost_after: Duration::from_secs(3),
            probe: Duration::from_millis(50),
            request_timeout: Duration::from_secs(5),
            outbox_messages_max: 65_536,
            outbox_bytes_max: 64 << 20,
            requests_max: 65_536,
            log_entries_max: 50_000,
            log_bytes_max: 64 << 20,
            recover_events_max: 4_000,
            recover_bytes_max: 8 << 20,
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// After so long neither subscribed nor heard from, while the link is up, a peer is gone.
    pub(crate) fn gone_after(&self) -> Duration {
        (self.heartbeat * 2).max(Duration::from_millis(500))
    }

    /// After so long without the own heartbeat the link is down, because other messages do not arrive either.
    pub(crate) fn link_lost_after(&self) -> Duration {
        (self.heartbeat * 3).max(Duration::from_millis(300))
    }
}
