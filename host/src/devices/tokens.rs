//! The tokens of devices: JWTs whose `sub` is the device, with the keys of the host.
//!
//! Those that the host makes have the claim `scope: "device"`, and prove no user. A token of another issuer may have no scope.

use std::sync::Arc;

use pointwork_core::devices::Proof;

use crate::{
    config::AuthConfig,
    driver::clock::unix_ms,
    edge::auth::{
        AuthError, DEVICE_SCOPE, TokenClaims, Verifier,
        token::{TokenError, TokenRequest, mint},
    },
};

/// Checks and makes them.
pub(super) struct Tokens {
    verifier: Arc<Verifier>,
    config: AuthConfig,
}

impl Tokens {
    pub(super) fn new(verifier: Arc<Verifier>, config: AuthConfig) -> Self {
        Self { verifier, config }
    }

    /// Whose token this is, if it is a user's.
    pub(super) fn user(&self, token: &str) -> Result<TokenClaims, AuthError> {
        self.verifier.verify_user(token)
    }

    /// Whether the host can make tokens, and so pair devices.
    pub(super) fn can_mint(&self) -> bool {
        self.config.hs256_secret.is_some()
    }

    /// What a token proves; nothing if it is for another device than the one that was claimed.
    pub(super) fn check(&self, token: Option<&str>, claimed: Option<&str>) -> Proof {
        let Some(Ok(claims)) = token.map(|token| self.verifier.verify(token)) else { return Proof::Bad };
        // A token of another issuer may be a user's: it is taken for the device that it names only if that says its own name.
        let is_of_device = claims.scope.as_deref().map_or(claimed.is_some(), |scope| scope == DEVICE_SCOPE);
        if !is_of_device || claimed.is_some_and(|claimed| *claimed != *claims.sub) {
            return Proof::Bad;
        }
        let owner = owner("org", claims.org.as_deref()).or_else(|| owner("user", claims.user.as_deref()));
        Proof::Good { device: claims.sub, owner, pairing_code: claims.pairing_code }
    }

    /// A token for a device, of an owner as [`owner`] writes it.
    pub(super) fn mint(&self, device: &str, owner: Option<&str>, code: Option<&str>) -> Result<String, TokenError> {
        let text = |name: &str, value: &str| format!("{name}={}", serde_json::Value::from(value));
        let mut claims = vec![text("scope", DEVICE_SCOPE)];
        claims.extend(code.map(|code| text("pairing_code", code)));
        claims.extend(owner.and_then(|owner| owner.split_once(':')).map(|(kind, id)| text(kind, id)));
        mint(&self.config, &TokenRequest { sub: device.to_owned(), ttl_s: None, claims }, unix_ms() / 1_000)
    }
}

/// An owner: `user:ID` or `org:ID`, so that no user is taken for an organisation.
pub(super) fn owner(kind: &str, id: Option<&str>) -> Option<Arc<str>> {
    id.map(|id| format!("{kind}:{id}").into())
}
