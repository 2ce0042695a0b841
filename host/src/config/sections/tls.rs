//! `[listen.tls]` and `[admin.tls]`: certificates of the listeners.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::values::bounded::Bounded;
use crate::config::values::text;

/// The certificate of a listener; without one it speaks plain HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM: the listener's certificate and those that lead to its root. A loaded configuration has both this and
    /// [`key`](Self::key), or neither.
    #[serde(default, deserialize_with = "text::non_empty")]
    pub cert: Option<PathBuf>,
    /// PEM: the private key (PKCS#8, PKCS#1 or SEC1).
    #[serde(default, deserialize_with = "text::non_empty")]
    pub key: Option<PathBuf>,
    /// How often it is looked whether the files have changed, in milliseconds. What changed is loaded once it was the same
    /// at two looks.
    pub reload_ms: ReloadMs,
}

/// Between two looks at certificate files.
pub type ReloadMs = Bounded<10, 3_600_000>;

impl Default for TlsConfig {
    fn default() -> Self {
        Self { cert: None, key: None, reload_ms: ReloadMs::literal::<5_000>() }
    }
}

/// The certificate of the admin listener, and whose clients need no token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdminTlsConfig {
    /// See [`TlsConfig::cert`].
    #[serde(default, deserialize_with = "text::non_empty")]
    pub cert: Option<PathBuf>,
    /// See [`TlsConfig::key`].
    #[serde(default, deserialize_with = "text::non_empty")]
    pub key: Option<PathBuf>,
    /// PEM: who vouches for clients. One that shows a certificate of theirs needs no token; one that shows none is asked for it.
    #[serde(default, deserialize_with = "text::non_empty")]
    pub client_ca: Option<PathBuf>,
    /// See [`TlsConfig::reload_ms`].
    pub reload_ms: ReloadMs,
}

impl Default for AdminTlsConfig {
    fn default() -> Self {
        Self { cert: None, key: None, client_ca: None, reload_ms: ReloadMs::literal::<5_000>() }
    }
}

/// The key of a section that has to be set because another one is, and that other one.
pub(in crate::config) type Lack = (&'static str, &'static str);

/// A certificate is of no use without its key, nor a key without its certificate.
pub(in crate::config) fn lack(cert: Option<&PathBuf>, key: Option<&PathBuf>, names: Lack) -> Option<Lack> {
    match (cert, key) {
        (Some(_), None) => Some((names.1, names.0)),
        (None, Some(_)) => Some(names),
        _ => None,
    }
}

impl TlsConfig {
    /// What lacks, if anything does.
    pub(in crate::config) fn lack(&self) -> Option<Lack> {
        lack(self.cert.as_ref(), self.key.as_ref(), ("tls.cert", "tls.key"))
    }
}

impl AdminTlsConfig {
    /// What lacks, if anything does.
    pub(in crate::config) fn lack(&self) -> Option<Lack> {
        let lack = lack(self.cert.as_ref(), self.key.as_ref(), ("tls.cert", "tls.key"));
        let without = self.client_ca.is_some() && self.cert.is_none();
        lack.or(without.then_some(("tls.cert", "tls.client_ca")))
    }
}
