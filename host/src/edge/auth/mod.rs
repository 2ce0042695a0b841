//! Who a token speaks for.
//!
//! A key has exactly one algorithm, given by its kind: a shared secret HS256, an RSA key RS256, an Ed25519 key EdDSA.
//! A token is tried only against keys of the algorithm that it claims, so a public key is never taken for a shared
//! secret, and `none` is no algorithm at all.

use std::collections::HashSet;
use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;

use crate::config::AuthConfig;

mod keys;
#[cfg(test)]
mod tests;
pub mod token;

pub use keys::AuthConfigError;
use keys::Key;

/// The longest user id, in bytes.
pub const SUB_BYTES_MAX: usize = 256;

/// The longest token, in bytes; a longer one is refused before it is read.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// How far the clocks of the issuer and of this replica may be apart when `exp` and `nbf` are checked, in seconds.
const CLOCK_SKEW_S: u64 = 30;

/// The keys of this host.
pub struct Verifier {
    keys: Vec<Key>,
    issuer: Option<String>,
}

/// The `scope` of tokens that this host makes for devices: they prove no user.
pub const DEVICE_SCOPE: &str = "device";

/// What a proven token says. Claims of a wrong type, or longer than [`SUB_BYTES_MAX`] bytes, count as missing, but for `sub`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The user, or the device: not empty, at most [`SUB_BYTES_MAX`] bytes.
    pub sub: Arc<str>,
    /// What the token is for, if it says so.
    pub scope: Option<Arc<str>>,
    /// The organisation of the user or device.
    pub org: Option<Arc<str>>,
    /// The user that a device belongs to.
    pub user: Option<Arc<str>>,
    /// Of a device that was not paired yet: by which it is.
    pub pairing_code: Option<Arc<str>>,
}

/// Why a token proves nothing. It never holds what the token says, and may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Longer than [`TOKEN_BYTES_MAX`].
    #[error("the token is too long")]
    TooLong,
    /// Not a JWT, or of an algorithm that no host knows.
    #[error("the token is not a JWT")]
    Malformed,
    /// No key of the token's algorithm and key id.
    #[error("no key has the token's algorithm and key id")]
    NoKey,
    /// None of the keys made the signature.
    #[error("the signature is wrong")]
    Signature,
    /// Past its `exp`.
    #[error("the token has expired")]
    Expired,
    /// Before its `nbf`.
    #[error("the token is not valid yet")]
    NotYet,
    /// Not from `auth.issuer`.
    #[error("the issuer is wrong")]
    Issuer,
    /// It is a device's, and a user was to be proven.
    #[error("the token is a device's")]
    Scope,
    /// A claim is missing or of a wrong type.
    #[error("a claim is missing or malformed")]
    Claim,
    /// `sub` is missing, not text, empty or too long.
    #[error("the token names no user")]
    Subject,
}

impl Verifier {
    /// Reads the keys.
    ///
    /// # Errors
    /// When no key is set, or one that is set cannot be used.
    pub fn from_config(config: &AuthConfig) -> Result<Self, AuthConfigError> {
        Ok(Self { keys: keys::load(config)?, issuer: config.issuer.clone() })
    }

    /// What the token says, once a key has proven it. `exp` and `nbf` hold where they are present, within 30 s; the
    /// audience is the application's and not looked at.
    ///
    /// # Errors
    /// The first reason found.
    pub fn verify(&self, token: &str) -> Result<Claims, AuthError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AuthError::TooLong);
        }
        let header = decode_header(token).map_err(|_| AuthError::Malformed)?;
        let mut refusal = AuthError::NoKey;
        for key in self.keys.iter().filter(|key| key.may_have_signed(header.alg, header.kid.as_deref())) {
            match decode::<Payload>(token, &key.decoding, &self.validation(key)) {
                Ok(proven) => return proven.claims.try_into(),
                Err(error) => refusal = reason(error.kind()),
            }
            // Only a signature can be another key's; whatever else is wrong would be wrong with every key.
            if refusal != AuthError::Signature {
                break;
            }
        }
        Err(refusal)
    }

    /// The same for a token that is to prove a user.
    ///
    /// # Errors
    /// Also when it is a device's.
    pub fn verify_user(&self, token: &str) -> Result<Claims, AuthError> {
        self.verify(token).and_then(|claims| match claims.scope.as_deref() {
            Some(DEVICE_SCOPE) => Err(AuthError::Scope),
            _ => Ok(claims),
        })
    }

    fn validation(&self, key: &Key) -> Validation {
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = CLOCK_SKEW_S;
        validation.validate_nbf = true;
        validation.validate_aud = false;
        validation.required_spec_claims = HashSet::new();
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            // The library checks an issuer only where there is one.
            validation.set_required_spec_claims(&["iss"]);
        }
        validation
    }
}

/// The claims as they came; `sub` of any type, so that a wrong one is told from a malformed token.
#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    sub: serde_json::Value,
    #[serde(default)]
    scope: serde_json::Value,
    #[serde(default)]
    org: serde_json::Value,
    #[serde(default)]
    user: serde_json::Value,
    #[serde(default)]
    pairing_code: serde_json::Value,
}

impl TryFrom<Payload> for Claims {
    type Error = AuthError;

    fn try_from(payload: Payload) -> Result<Self, AuthError> {
        let text = |value: &serde_json::Value| {
            value.as_str().filter(|text| !text.is_empty() && text.len() <= SUB_BYTES_MAX).map(Arc::from)
        };
        Ok(Self {
            sub: text(&payload.sub).ok_or(AuthError::Subject)?,
            scope: text(&payload.scope),
            org: text(&payload.org),
            user: text(&payload.user),
            pairing_code: text(&payload.pairing_code),
        })
    }
}

fn reason(kind: &ErrorKind) -> AuthError {
    match kind {
        ErrorKind::InvalidSignature => AuthError::Signature,
        ErrorKind::ExpiredSignature => AuthError::Expired,
        ErrorKind::ImmatureSignature => AuthError::NotYet,
        ErrorKind::InvalidIssuer => AuthError::Issuer,
        ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => AuthError::Issuer,
        ErrorKind::InvalidClaimFormat(_) | ErrorKind::MissingRequiredClaim(_) => AuthError::Claim,
        _ => AuthError::Malformed,
    }
}
