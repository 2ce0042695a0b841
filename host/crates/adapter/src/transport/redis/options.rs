//! The options of the connections.

use std::time::Duration;

/// The options of [`Redis`](super::Redis). Zero means the smallest possible value, never "no limit".
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Uses sharded channels: SSUBSCRIBE, SPUBLISH and SHARDNUMSUB (Redis 7). All servers of a cluster must use the same value, also
    /// those on Node (`useShardedPubSub`).
    pub sharded: bool,
    /// How long a command waits for its answer. A blocking read waits so long after its block.
    pub command_timeout: Duration,
    /// How long connecting may take, with TLS. The login may take one `command_timeout` more.
    pub connect_timeout: Duration,
    /// The pause between two attempts to connect. Up to a quarter is added at random, so that replicas do not connect all at once.
    pub reconnect_delay: Duration,
    /// A connection that was silent for so long is given up, and a new one is made. It must be longer than the hangs that should be
    /// waited out.
    pub silence_max: Duration,
    /// How many messages wait for [`receive`](crate::transport::Transport::receive) before the oldest are dropped. Each takes about 700
    /// bytes of memory, used or not.
    pub subscription_messages_max: usize,
    /// How many commands wait to be written to a connection. More fail with [`Timeout`].
    ///
    /// [`Timeout`]: crate::transport::TransportError::Timeout
    pub commands_max: usize,
}

impl Default for RedisOptions {
    fn default() -> Self {
        RedisOptions {
            sharded: false,
            command_timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(2),
            reconnect_delay: Duration::from_millis(100),
            silence_max: Duration::from_secs(3),
            subscription_messages_max: 16_384,
            commands_max: 16_384,
        }
    }
}
