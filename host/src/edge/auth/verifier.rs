//! Verifies tokens.
//!
//! The kind of a key determines its only algorithm: HS256 for a shared secret, RS256 for an RSA key, EdDSA for an Ed25519 key. A token is
//! tried only with keys of the algorithm that it states. So a public key is never used as a shared secret, and `none` is no algorithm.

use std::collections::HashSet;
use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;

use super::keys::{self, AuthConfigError, TokenKey};
use crate::config::AuthConfig;

/// The longest user id, in bytes.
pub const SUB_BYTES_MAX: usize = 256;

/// The longest token, in bytes. A longer one is refused before it is parsed.
pub const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// How far the clocks of the issuer and of this replica may differ for `exp` and `nbf`, in seconds.
const CLOCK_SKEW_S: u64 = 30;

/// The keys of this host.
pub struct Verifier {
    keys: Vec<TokenKey>,
    issuer: Option<String>,
}

/// The `scope` of tokens that this host issues to devices. They prove no user.
pub const DEVICE_SCOPE: &str = "device";

/// The claims of a verified token. Except for `sub`, a claim of a wrong type or of more than [`SUB_BYTES_MAX`] bytes counts as missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenClaims {
    /// The user or the device, in 1 to [`SUB_BYTES_MAX`] bytes.
    pub sub: Arc<str>,
    /// The purpose of the token.
    pub scope: Option<Arc<str>>,
    /// The organisation of the user or device.
    pub org: Option<Arc<str>>,
    /// The user that a device belongs to.
    pub user: Option<Arc<str>>,
    /// The code to pair a device with that is not paired yet.
    pub pairing_code: Option<Arc<str>>,
}

/// Why a token is invalid. It never contains parts of the token, so it may be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Longer than [`TOKEN_BYTES_MAX`].
    #[error("the token is too long")]
    TooLong,
    /// Not a JWT, or of an unknown algorithm.
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
    /// The token of a device where a user is needed.
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

    /// Verifies a token and returns its claims. `exp` and `nbf` are checked if present, with a tolerance of 30 s. The audience is not
    /// checked.
    ///
    /// # Errors
    /// The first reason found.
    pub fn verify(&self, token: &str) -> Result<TokenClaims, AuthError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AuthError::TooLong);
        }
        let header = decode_header(token).map_err(|_| AuthError::Malformed)?;
        let mut refusal = AuthError::NoKey;
        for key in self.keys.iter().filter(|key| key.may_have_signed(header.alg, header.kid.as_deref())) {
            match decode::<RawClaims>(token, &key.decoding, &self.validation(key)) {
                Ok(proven) => return proven.claims.try_into(),
                Err(error) => refusal = reason(error.kind()),
            }
            // Another key may have made the signature. Any other error would occur with every key.
            if refusal != AuthError::Signature {
                break;
            }
        }
        Err(refusal)
    }

    /// Verifies a token that must prove a user.
    ///
    /// # Errors
    /// Those of [`verify`](Self::verify), and for the token of a device.
    pub fn verify_user(&self, token: &str) -> Result<TokenClaims, AuthError> {
        self.verify(token).and_then(|claims| match claims.scope.as_deref() {
            Some(DEVICE_SCOPE) => Err(AuthError::Scope),
            _ => Ok(claims),
        })
    }

    fn validation(&self, key: &TokenKey) -> Validation {
        let mut validation = Validation::new(key.algorithm);
        validation.leeway = CLOCK_SKEW_S;
        validation.validate_nbf = true;
        validation.validate_aud = false;
        validation.required_spec_claims = HashSet::new();
        if let Some(issuer) = &self.issuer {
            validation.set_issuer(&[issuer]);
            // Without this the library accepts a token without issuer.
            validation.set_required_spec_claims(&["iss"]);
        }
        validation
    }
}

/// The claims as received, of any type: a wrong type must not look like a malformed token.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawClaims {
    sub: serde_json::Value,
    scope: serde_json::Value,
    org: serde_json::Value,
    user: serde_json::Value,
    pairing_code: serde_json::Value,
}

impl TryFrom<RawClaims> for TokenClaims {
    type Error = AuthError;

    fn try_from(payload: RawClaims) -> Result<Self, AuthError> {
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
