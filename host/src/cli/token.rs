//! `pointwork token`: makes a token for development.

use std::time::SystemTime;

use anyhow::Context;
use clap::Args;

use crate::{
    config::AuthConfig,
    edge::auth::token::{TokenRequest, mint},
};

/// What a token should say.
#[derive(Args, Debug, Clone)]
pub(super) struct TokenArgs {
    /// The user
    #[arg(long, value_name = "USER")]
    pub(super) sub: String,
    /// Seconds until it expires; without it, it never does
    #[arg(long, value_name = "SECONDS")]
    pub(super) ttl_s: Option<u64>,
    /// One more claim; a value that is JSON is taken as JSON, any other as text; repeatable
    #[arg(long = "claim", value_name = "NAME=VALUE")]
    pub(super) claims: Vec<String>,
}

impl TokenArgs {
    /// The token, on a line of its own.
    ///
    /// # Errors
    /// When the settings have no secret, or the host would refuse the token.
    pub(super) fn run(self, auth: &AuthConfig) -> anyhow::Result<String> {
        let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
        let Self { sub, ttl_s, claims } = self;
        Ok(format!("{}\n", mint(auth, &TokenRequest { sub, ttl_s, claims }, now_s)?))
    }
}
