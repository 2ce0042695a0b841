//! `[admin]`: the listener for operators and the application's backend.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::secret::Secret;
use super::text;

/// The shortest token, in characters, that may guard a listener which others can reach.
pub const TOKEN_CHARS_MIN: usize = 16;

/// The admin listener: health, policies, metrics, emit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdminConfig {
    /// Where it listens.
    #[serde(deserialize_with = "text::socket_addr")]
    pub address: SocketAddr,
    /// The bearer token that a request must carry. A loaded configuration has one of at least [`TOKEN_CHARS_MIN`]
    /// characters whenever the address is not a loopback address; without a token, requests need none.
    pub token: Option<Secret>,
}

impl AdminConfig {
    /// What is wrong between the address and the token, if anything is.
    pub(super) fn exposure(&self) -> Option<String> {
        let chars = self.token.as_ref().map(|token| token.expose().chars().count());
        let loopback = self.address.ip().to_canonical().is_loopback();
        if loopback || chars.is_some_and(|chars| chars >= TOKEN_CHARS_MIN) {
            return None;
        }
        let state = match chars {
            None => "is not set".to_owned(),
            Some(chars) => format!("has only {chars}"),
        };
        Some(format!(
            "must have at least {TOKEN_CHARS_MIN} characters because `admin.address` ({}) is not a loopback address, and it {state}",
            self.address
        ))
    }
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)), token: None }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_reachable_address_needs_a_long_token() {
        let exposed = |address: &str, token: Option<&str>| {
            let address = address.parse().unwrap();
            let token = token.and_then(Secret::new);
            AdminConfig { address, token }.exposure().is_some()
        };
        assert!(exposed("0.0.0.0:9090", None));
        assert!(exposed("0.0.0.0:9090", Some("fifteen-letters")));
        assert!(!exposed("0.0.0.0:9090", Some("sixteen--letters")));
        assert!(exposed("[::]:9090", None));
        for loopback in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!exposed(loopback, None), "{loopback}");
        }
    }
}
