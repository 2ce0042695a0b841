//! `[listen]`: where and how Socket.IO clients connect.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use axum::http::HeaderValue;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};

use super::tls::TlsConfig;
use crate::config::values::bounded::Bounded;
use crate::config::values::networks::Networks;
use crate::config::values::section::section;
use crate::config::values::text;

section! {
    /// The Socket.IO listener and its engine.
    pub struct ListenConfig {
        /// Where clients connect.
        #[serde(deserialize_with = "text::socket_addr")]
        pub address: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 3000)),
        /// The HTTP path of the engine.
        pub path: EnginePath = EnginePath("/socket.io".to_owned()),
        /// Between two pings to a client, in milliseconds.
        pub ping_interval_ms: Bounded<1, 3_600_000> = Bounded::literal::<15_000>(),
        /// How long a ping may stay unanswered before the connection counts as broken, in milliseconds.
        pub ping_timeout_ms: Bounded<1, 3_600_000> = Bounded::literal::<45_000>(),
        /// How long an engine connection may stay without a namespace, in milliseconds.
        pub connect_timeout_ms: Bounded<1, 3_600_000> = Bounded::literal::<20_000>(),
        /// The largest message that a client may send, in bytes.
        pub max_payload_bytes: Bounded<1_024, 1_073_741_824> = Bounded::literal::<1_000_000>(),
        /// How many packets may wait for a client that reads too slowly before it is disconnected. Above
        /// `rpc.calls_per_user_max`: so many requests may be on their way to one daemon that reads as fast as it can.
        pub max_buffer_packets: Bounded<1, 1_048_576> = Bounded::literal::<8_192>(),
        /// Which web origins may connect with credentials.
        pub cors_origins: CorsOrigins = CorsOrigins::Any,
        /// How long a connection may take for its TLS handshake and the head of its first request, in milliseconds. Later heads may take
        /// as long as a client may be silent.
        pub head_timeout_ms: Bounded<10, 3_600_000> = Bounded::literal::<10_000>(),
        /// The most connections; a further one is closed. 0 means as many as the limit of open files allows.
        pub connections_max: Bounded<0, 10_000_000> = Bounded::literal::<0>(),
        /// The most connections from one IPv4 address or one IPv6 /64 network. 0 means no limit.
        pub connections_per_ip_max: Bounded<0, 10_000_000> = Bounded::literal::<0>(),
        /// The most sockets of one user in the root namespace of this replica. 0 means no limit. The connection of a further socket is ended, so
        /// that the client tries again: broken connections count until they are detected, and a CONNECT_ERROR would keep the client away.
        pub connections_per_user_max: Bounded<0, 10_000_000> = Bounded::literal::<0>(),
        /// Proxies whose `X-Forwarded-For` names the client. Their own addresses have no limit.
        pub trusted_proxies: Networks = Networks::default(),
        /// The certificate of the listener.
        pub tls: TlsConfig = TlsConfig::default(),
    }
}

/// An absolute HTTP path without a trailing slash, below the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct EnginePath(String);

impl EnginePath {
    /// The path, such as `/socket.io`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnginePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for EnginePath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        // Clients write the path with or without a trailing slash, and the library's own server accepts both.
        let path = text.trim_end_matches('/');
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '?' | '#');
        if path.len() > 1 && path.starts_with('/') && path.chars().all(is_plain) {
            Ok(Self(path.to_owned()))
        } else {
            Err(format!("must be an absolute path below the root, such as /socket.io, not `{text}`"))
        }
    }
}

/// Which web origins may connect. Clients that are not browsers send no origin and are not concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Every origin (`["*"]`); the answer names the asking one, as credentials demand.
    Any,
    /// These origins only, each `scheme://host` or `scheme://host:port`; an empty list allows none.
    Listed(Vec<HeaderValue>),
}

impl Serialize for CorsOrigins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => serializer.collect_seq(["*"]),
            Self::Listed(origins) => serializer.collect_seq(origins.iter().filter_map(|origin| origin.to_str().ok())),
        }
    }
}

impl<'de> Deserialize<'de> for CorsOrigins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = text::list(deserializer, "origins")?.into_vec();
        if given == ["*"] {
            return Ok(Self::Any);
        }
        given.iter().map(|text| origin(text)).collect::<Result<_, _>>().map(Self::Listed).map_err(D::Error::custom)
    }
}

/// A browser sends exactly `scheme://host[:port]`, so any other text would never match.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let authority = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '[' | ']' | '_');
    let whole = |part: &str, allowed: &dyn Fn(char) -> bool| !part.is_empty() && part.chars().all(allowed);
    let parts = text.split_once("://");
    parts
        .filter(|(scheme, host)| whole(scheme, &name) && whole(host, &authority))
        .and_then(|_| HeaderValue::from_str(text).ok())
        .ok_or_else(|| {
            format!(
                "must be `*` alone or origins such as https://app.example.com (no path, no last slash), not `{text}`"
            )
        })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn removes_the_last_slash_of_a_path_and_rejects_relative_paths() {
        let path = |text: &str| serde_json::from_value::<EnginePath>(text.into());
        assert_eq!(path("/v1/updates/").unwrap().as_str(), "/v1/updates");
        for wrong in ["", "/", "socket.io", "/a b", "/a?b", "/a#b"] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn origins_are_any_or_a_list_in_either_form() {
        let origins = |json: &str| serde_json::from_str::<CorsOrigins>(json);
        let listed =
            CorsOrigins::Listed(["https://a.example", "http://[::1]:80"].map(HeaderValue::from_static).to_vec());
        assert_eq!(origins(r#"["*"]"#).unwrap(), CorsOrigins::Any);
        assert_eq!(origins(r#""*""#).unwrap(), CorsOrigins::Any);
        assert_eq!(origins(r#"["https://a.example","http://[::1]:80"]"#).unwrap(), listed);
        assert_eq!(origins(r#""https://a.example, http://[::1]:80""#).unwrap(), listed);
        assert_eq!(origins("[]").unwrap(), CorsOrigins::Listed(vec![]));
        for wrong in [r#""""#, r#"["*","https://a"]"#, r#"["a.example"]"#, r#"["https://a/"]"#, "3"] {
            assert!(origins(wrong).is_err(), "{wrong}");
        }
    }
}
