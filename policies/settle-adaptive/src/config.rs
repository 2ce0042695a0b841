//! What an operator may set.

use serde::Deserialize;

/// The settings; each has a default.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How far the settle window grows at most, in milliseconds: the longest that a real move can be held up after the
    /// last duplicate.
    pub window_max_ms: u32,
    /// How far back a refusal or an eviction counts as a duplicate, in milliseconds.
    pub recent_ms: u32,
    /// An incumbent without a packet for longer than this, in milliseconds, is taken over at once. Even a device with
    /// nothing to say answers each engine ping, so 1.5 ping intervals without a packet mean a half-open connection. So long
    /// may a device be held on one; to find it earlier, lower the host's `listen.ping_interval_ms`, and this with it.
    pub idle_ms: u32,
    /// An incumbent whose last heartbeat is longer ago than this, in milliseconds, is taken over at once: its connection
    /// lives, but nobody uses it. One that has never sent a heartbeat is not judged by it.
    pub heartbeat_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { window_max_ms: 60_000, recent_ms: 120_000, idle_ms: 37_500, heartbeat_ms: 90_000 }
    }
}
