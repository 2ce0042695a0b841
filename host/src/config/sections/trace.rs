//! `[trace]`: spans of calls, for a collector.

use axum::http::Uri;
use serde::{Deserialize, Serialize};

use super::records::Share;
use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;
use crate::config::values::text;

section! {
    /// Where spans go, and how many.
    pub struct TraceConfig {
        /// The collector's endpoint for OTLP over HTTP (protobuf); without it there are no spans.
        #[serde(default)]
        pub otlp_endpoint: Option<OtlpEndpoint> = None,
        /// The share of calls that are traced.
        pub sample: Share = Share::ALL,
        /// The name of this service among others.
        #[serde(deserialize_with = "text::name")]
        pub service_name: String = "pointwork".to_owned(),
        /// How long the collector may take for a request, in milliseconds.
        pub timeout_ms: Bounded<1, 60_000> = Bounded::literal::<2_000>(),
        /// How many spans may wait to be sent; more are dropped.
        pub queue_spans_max: Bounded<1, 1_000_000> = Bounded::literal::<8_192>(),
    }
}

/// A URL such as `http://127.0.0.1:4318`; `/v1/traces` follows where it names no path. Plain HTTP: a collector on the same machine
/// or pod speaks TLS to wherever spans go from there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct OtlpEndpoint(String);

impl OtlpEndpoint {
    /// The whole URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for OtlpEndpoint {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_plain = |url: &Uri| {
            let authority = url.authority().filter(|authority| !authority.host().is_empty());
            url.scheme_str() == Some("http") && authority.is_some_and(|authority| !authority.as_str().contains('@'))
        };
        match text.parse::<Uri>().ok().filter(is_plain) {
            Some(url) if url.path() == "/" && url.query().is_none() => {
                Ok(Self(format!("{}/v1/traces", text.trim_end_matches('/'))))
            }
            Some(_) => Ok(Self(text)),
            // The error does not quote the text, because it may hold a secret.
            None => Err("must be an http:// URL without user and password, such as http://127.0.0.1:4318"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_http_url_and_gets_the_default_path() {
        let of = |text: &str| serde_json::from_value::<OtlpEndpoint>(text.into());
        for (given, want) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector:4318/", "http://collector:4318/v1/traces"),
            ("http://collector/otlp/v1/traces", "http://collector/otlp/v1/traces"),
        ] {
            assert_eq!(of(given).unwrap().as_str(), want);
        }
        for wrong in
            ["", "collector:4318", "https://collector:4318", "http://", "http://user:word@collector", "/v1/traces"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
