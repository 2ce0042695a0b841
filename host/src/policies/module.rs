//! Holds a policy's module together with its configuration.

use bytes::Bytes;
use pointwork_policy::Digest;
use socketioxide_redis_streams::transport::redis::ScriptReply;

use crate::cluster::scripts::{FromReply, UnexpectedReply};

/// A module with its configuration.
#[derive(Clone, PartialEq, Eq)]
pub struct PolicyModule {
    /// The WebAssembly component.
    pub wasm: Bytes,
    /// A JSON object on one line.
    pub config: String,
}

impl PolicyModule {
    /// The digest of the generation that this module and configuration make.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of_generation(&self.wasm, &self.config)
    }
}

impl FromReply for PolicyModule {
    fn from_reply(reply: ScriptReply) -> Result<Self, UnexpectedReply> {
        let (wasm, config) = FromReply::from_reply(reply)?;
        Ok(Self { wasm, config })
    }
}
