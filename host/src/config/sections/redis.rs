//! `[redis]`: what replicas share.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use socketioxide_redis_streams::{Settings, wire};

use super::listen::ListenConfig;
use crate::config::values::section::section;
use crate::config::values::{bounded::Bounded, secret::Secret, text};

section! {
    /// The Redis server, if there is one, and how replicas speak through it. Those of one cluster must agree on the names; so must
    /// Node's servers among them.
    pub struct RedisConfig {
        /// `redis://`, `rediss://` (TLS) or `unix://`; a secret, because it may carry a password. Without it the replica is alone.
        #[serde(default, deserialize_with = "redis_url")]
        pub url: Option<Secret> = None,
        /// The stream; Node's `streamName`.
        #[serde(deserialize_with = "text::name")]
        pub stream_name: String = wire::STREAM_NAME.to_owned(),
        /// How channels begin; Node's `channelPrefix`.
        #[serde(deserialize_with = "text::name")]
        pub channel_prefix: String = wire::CHANNEL_PREFIX.to_owned(),
        /// About how many entries the stream keeps; Node's `maxLen`.
        pub stream_len_max: Bounded<1, 1_000_000_000> = Bounded::literal::<50_000>(),
        /// SPUBLISH and SSUBSCRIBE instead of PUBLISH and SUBSCRIBE; Node's `useShardedPubSub`.
        pub sharded_pubsub: bool = false,
        /// Between two heartbeats, in milliseconds.
        pub heartbeat_ms: Bounded<100, 60_000> = Bounded::literal::<500>(),
        /// A replica that is not heard from for so long is silent, in milliseconds: several heartbeats.
        pub lost_after_ms: Bounded<100, 600_000> = Bounded::literal::<3_000>(),
        /// Between two looks whether the other replicas' processes live, in milliseconds: how soon a killed one is found.
        pub probe_ms: Bounded<10, 60_000> = Bounded::literal::<50>(),
    }
}

impl RedisConfig {
    /// As the adapter takes them. A client that was away is sent no more than half of what may wait for it.
    #[must_use]
    pub fn settings(&self, listen: &ListenConfig) -> Settings {
        Settings {
            log_entries_max: self.stream_len_max.as_usize(),
            recover_events_max: listen.max_buffer_packets.as_usize() / 2,
            stream_name: self.stream_name.clone(),
            channel_prefix: self.channel_prefix.clone(),
            stream_len_max: u64::from(self.stream_len_max.get()),
            heartbeat: self.heartbeat_ms.as_millis(),
            lost_after: self.lost_after_ms.as_millis(),
            probe: self.probe_ms.as_millis(),
            ..Settings::default()
        }
    }
}

fn redis_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    let url = Option::<Secret>::deserialize(deserializer)?;
    let known = |url: &Secret| {
        let schemes = ["redis://", "rediss://", "unix://"];
        schemes.iter().any(|scheme| {
            let rest = url.expose().strip_prefix(scheme);
            rest.is_some_and(|rest| !rest.is_empty())
        })
    };
    match url {
        // The text is not repeated: a mistyped scheme may still be followed by a password.
        Some(url) if !known(&url) => {
            Err(D::Error::custom("must begin with redis://, rediss:// or unix:// and name a server"))
        }
        url => Ok(url),
    }
}
