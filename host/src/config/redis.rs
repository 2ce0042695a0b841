//! `[redis]`: what replicas share.

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use super::secret::Secret;

/// The Redis server, if there is one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// `redis://`, `rediss://` (TLS) or `unix://`; a secret, because it may carry a password.
    #[serde(default, deserialize_with = "redis_url")]
    pub url: Option<Secret>,
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
