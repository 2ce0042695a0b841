//! Who the clients are: users with tokens that both kinds of server take.

use std::time::SystemTime;

use anyhow::{Context, Result};
use pointwork::{
    config::{AuthConfig, Secret},
    edge::auth::token,
};

use crate::common::SECRET;

/// A user with a token of the usual length.
pub(crate) struct User {
    pub(crate) id: String,
    token: String,
}

impl User {
    /// The one with such a number.
    pub(crate) fn new(index: usize) -> Result<Self> {
        let id = format!("9f6d3c1e-58a2-4b07-8c44-{index:012}");
        let auth = AuthConfig { hs256_secret: Secret::new(SECRET), ..AuthConfig::default() };
        let claims = vec![format!("session=\"4e0c7d52-91bb-4f3a-a6de-{index:012}\"")];
        let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
        let token = token::mint(&auth, &token::TokenRequest { sub: id.clone(), ttl_s: None, claims }, now_s)?;
        Ok(Self { id, token })
    }

    /// So many of them.
    pub(crate) fn some(count: usize) -> Result<Vec<Self>> {
        (0..count).map(Self::new).collect()
    }

    /// The auth of an app.
    pub(crate) fn app(&self) -> String {
        format!(r#"{{"token":"{}","clientType":"user-scoped"}}"#, self.token)
    }

    /// The auth of the machine that its daemon runs on.
    pub(crate) fn machine(&self) -> String {
        format!(r#"{{"token":"{}","clientType":"machine-scoped","machineId":"machine-1"}}"#, self.token)
    }
}
