//! `[listen.tls]` and `[admin.tls]`: certificates of the listeners.

use std::path::PathBuf;

use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;
use crate::config::values::text;

/// The default interval of looks whether certificate files have changed, in milliseconds.
const RELOAD_MS: u32 = 5_000;

section! {
    /// The certificate of a listener. Without one it serves plain HTTP.
    pub struct TlsConfig {
        /// PEM: the listener's certificate and those that lead to its root. A loaded configuration has both this and
        /// [`key`](Self::key), or neither.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub cert: Option<PathBuf> = None,
        /// PEM: the private key (PKCS#8, PKCS#1 or SEC1).
        #[serde(default, deserialize_with = "text::non_empty")]
        pub key: Option<PathBuf> = None,
        /// The interval of looks whether the files have changed, in milliseconds. A change is loaded after two equal looks.
        pub reload_ms: ReloadMs = ReloadMs::literal::<RELOAD_MS>(),
    }
}

/// The interval of looks at certificate files, in milliseconds.
pub type ReloadMs = Bounded<10, 3_600_000>;

section! {
    /// The certificate of the admin listener, and the authorities whose clients need no token.
    pub struct AdminTlsConfig {
        /// See [`TlsConfig::cert`].
        #[serde(default, deserialize_with = "text::non_empty")]
        pub cert: Option<PathBuf> = None,
        /// See [`TlsConfig::key`].
        #[serde(default, deserialize_with = "text::non_empty")]
        pub key: Option<PathBuf> = None,
        /// PEM: the authorities of client certificates. A client with such a certificate needs no token.
        #[serde(default, deserialize_with = "text::non_empty")]
        pub client_ca: Option<PathBuf> = None,
        /// See [`TlsConfig::reload_ms`].
        pub reload_ms: ReloadMs = ReloadMs::literal::<RELOAD_MS>(),
    }
}

/// A key that must be set because another one is, and that other key.
pub(in crate::config) type MissingKey = (&'static str, &'static str);

/// The missing one of a certificate and its key, if only one of them is set.
pub(in crate::config) fn missing_of_pair(
    cert: Option<&PathBuf>,
    key: Option<&PathBuf>,
    (cert_name, key_name): MissingKey,
) -> Option<MissingKey> {
    match (cert, key) {
        (Some(_), None) => Some((key_name, cert_name)),
        (None, Some(_)) => Some((cert_name, key_name)),
        _ => None,
    }
}

impl TlsConfig {
    /// The key that is missing, if any.
    pub(in crate::config) fn missing_key(&self) -> Option<MissingKey> {
        missing_of_pair(self.cert.as_ref(), self.key.as_ref(), ("tls.cert", "tls.key"))
    }
}

impl AdminTlsConfig {
    /// The key that is missing, if any.
    pub(in crate::config) fn missing_key(&self) -> Option<MissingKey> {
        let missing_cert = self.client_ca.is_some() && self.cert.is_none();
        missing_of_pair(self.cert.as_ref(), self.key.as_ref(), ("tls.cert", "tls.key"))
            .or(missing_cert.then_some(("tls.cert", "tls.client_ca")))
    }
}
