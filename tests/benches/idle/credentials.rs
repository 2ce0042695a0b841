//! Who the clients are.

use std::fmt;

use anyhow::{Context, Result};
use pointwork::{config::AuthConfig, edge::auth::token};
use serde_json::{Value, json};

/// What a client says of itself in its CONNECT.
pub(crate) struct Credentials(Value);

impl Credentials {
    /// Of three sockets one is an app, one a machine, one a session, all of one user; the token is of the usual length.
    pub(crate) fn of(index: usize, auth: &AuthConfig) -> Result<Self> {
        let sub = format!("9f6d3c1e-58a2-4b07-8c44-{:012}", index / 3);
        let claims = vec![
            format!("session=\"4e0c7d52-91bb-4f3a-a6de-{index:012}\""),
            format!("extras={{\"device\":\"7b1f2a90-0d3e-4c58-b1f7-{index:012}\"}}"),
        ];
        let request = token::TokenRequest { sub, ttl_s: None, claims };
        let now_s = std::time::SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
        let token = token::mint(auth, &request, now_s)?;
        Ok(Self(match index % 3 {
            0 => json!({ "token": token, "clientType": "user-scoped" }),
            1 => json!({ "token": token, "clientType": "machine-scoped", "machineId": format!("machine-{index}") }),
            _ => json!({ "token": token, "clientType": "session-scoped", "sessionId": format!("session-{index}") }),
        }))
    }
}

impl fmt::Display for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
