//! `[auth]`: the keys that tokens are verified with.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::values::secret::Secret;
use crate::config::values::text;

/// Where the keys are. Several may be set at once: a token is good when any of them proves it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// The shared secret of HS256 tokens, as it stands (not base64).
    pub hs256_secret: Option<Secret>,
    /// A PEM file with one public key: RSA for RS256, Ed25519 for EdDSA.
    #[serde(default, deserialize_with = "text::non_empty")]
    pub public_key_file: Option<PathBuf>,
    /// A JSON Web Key Set file.
    #[serde(default, deserialize_with = "text::non_empty")]
    pub jwks_file: Option<PathBuf>,
    /// The `iss` that every token must have; not checked when it is not set.
    #[serde(default, deserialize_with = "text::non_empty")]
    pub issuer: Option<String>,
}
