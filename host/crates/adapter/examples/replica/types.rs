//! The types that all parts of the replica share.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use serde_json::{Value as Json, json};
use socketioxide::adapter::Emitter;
use socketioxide_redis_streams::RedisStreamsAdapter;
use socketioxide_redis_streams::wire::Value;

/// The adapter with socketioxide's own sockets.
pub(crate) type Adapter = RedisStreamsAdapter<Emitter>;

/// What a client gave as `auth`.
#[derive(Clone)]
pub(crate) struct Auth(pub(crate) Value);

/// Why a command failed, as text: some errors of socketioxide cannot be sent between threads.
pub(crate) struct Failed(pub(crate) String);

impl<E: Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Failed(error.to_string())
    }
}

/// A command that was begun: what it publishes is in the outbox.
pub(crate) type BegunCommand = Pin<Box<dyn Future<Output = Result<Json, Failed>> + Send>>;

/// An error as an answer shows it.
pub(crate) fn failed(error: &dyn Error) -> Json {
    json!({ "error": error.to_string() })
}
