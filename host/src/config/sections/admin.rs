//! `[admin]`: the listener for operators and the application's backend.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::tls::{AdminTlsConfig, MissingKey, missing_of_pair};
use crate::config::values::secret::Secret;
use crate::config::values::section::section;
use crate::config::values::text;

/// The shortest token, in characters, that may guard a listener which others can reach.
pub const TOKEN_CHARS_MIN: usize = 16;

section! {
    /// The admin listener: health, policies, metrics, emit.
    pub struct AdminConfig {
        /// Where it listens.
        #[serde(deserialize_with = "text::socket_addr")]
        pub address: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 9090)),
        /// The bearer token that a request must carry. A loaded configuration has one of at least [`TOKEN_CHARS_MIN`]
        /// characters whenever the address is not a loopback address, unless there is `tls.client_ca`. Requests from loopback need none.
        pub token: Option<Secret> = None,
        /// The certificate of the listener, and the authorities whose clients need no token.
        pub tls: AdminTlsConfig = AdminTlsConfig::default(),
        /// PEM: the authorities that the commands for operators trust. Without it, those of this machine.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub ca: Option<PathBuf> = None,
        /// PEM: the certificate that the commands for operators show. A loaded configuration has both this and
        /// [`client_key`](Self::client_key), or neither.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub client_cert: Option<PathBuf> = None,
        /// PEM: its key.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub client_key: Option<PathBuf> = None,
    }
}

impl AdminConfig {
    /// The problem with the token, if others can reach the address.
    pub(in crate::config) fn token_problem(&self) -> Option<String> {
        let chars = self.token.as_ref().map(|token| token.expose().chars().count());
        let loopback = self.address.ip().to_canonical().is_loopback();
        if loopback || self.tls.client_ca.is_some() || chars.is_some_and(|chars| chars >= TOKEN_CHARS_MIN) {
            return None;
        }
        let state = match chars {
            None => "is not set".to_owned(),
            Some(chars) => format!("has only {chars}"),
        };
        Some(format!(
            "must have at least {TOKEN_CHARS_MIN} characters because `admin.address` ({}) is not a loopback address and there is no `admin.tls.client_ca`, and it {state}",
            self.address
        ))
    }

    /// Whether a token may cross the network unencrypted.
    #[must_use]
    pub fn is_plain_beyond_loopback(&self) -> bool {
        self.tls.cert.is_none() && !self.address.ip().to_canonical().is_loopback()
    }

    /// The key that is missing, if any.
    pub(in crate::config) fn missing_key(&self) -> Option<MissingKey> {
        let names = ("client_cert", "client_key");
        self.tls.missing_key().or(missing_of_pair(self.client_cert.as_ref(), self.client_key.as_ref(), names))
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
            AdminConfig { address, token, ..AdminConfig::default() }.token_problem().is_some()
        };
        assert!(exposed("0.0.0.0:9090", None));
        assert!(exposed("0.0.0.0:9090", Some("fifteen-letters")));
        assert!(!exposed("0.0.0.0:9090", Some("sixteen--letters")));
        assert!(exposed("[::]:9090", None));
        for loopback in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(!exposed(loopback, None), "{loopback}");
        }
    }

    #[test]
    fn client_certificates_replace_the_token() {
        let mut admin = AdminConfig { address: "0.0.0.0:9090".parse().unwrap(), ..AdminConfig::default() };
        assert!(admin.token_problem().is_some() && admin.is_plain_beyond_loopback());
        admin.tls.client_ca = Some("ca.pem".into());
        assert!(admin.token_problem().is_none());
        assert_eq!(admin.missing_key(), Some(("tls.cert", "tls.client_ca")));
        admin.tls.cert = Some("cert.pem".into());
        assert_eq!(admin.missing_key(), Some(("tls.key", "tls.cert")));
        admin.tls.key = Some("key.pem".into());
        assert!(admin.missing_key().is_none() && !admin.is_plain_beyond_loopback());
        admin.client_key = Some("key.pem".into());
        assert_eq!(admin.missing_key(), Some(("client_cert", "client_key")));
    }
}
