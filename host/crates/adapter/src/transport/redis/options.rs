//! How the connections behave.

use std::time::Duration;

/// How [`Redis`](super::Redis) behaves. A zero means the least that there is, never "without a bound".
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Channels are sharded ones: SSUBSCRIBE, SPUBLISH and SHARDNUMSUB (Redis 7). All replicas of a cluster must agree,
    /// Node's among them (`useShardedPubSub`).
    pub sharded: bool,
    /// How long a command waits for its answer. A blocking read waits for so long after its block.
    pub command_timeout: Duration,
    /// How long a connection may take to be made, TLS included. Logging in has a `command_timeout` more.
    pub connect_timeout: Duration,
    /// The pause between two attempts to connect. Up to a quarter is added by chance, so that replicas spread.
    pub reconnect_delay: Duration,
    /// A connection on which nothing was answered for so long is given up, and a new one is made. Longer than the hangs
    /// that are to be waited out.
    pub silence_max: Duration,
    /// How many messages wait for [`receive`](crate::transport::Transport::receive) before the oldest are dropped. Some
    /// 700 bytes of memory each, used or not.
    pub subscription_messages_max: usize,
    /// How many commands wait to be written to a connection. More are refused as [`Timeout`].
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
