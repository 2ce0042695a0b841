//! The connection to Redis as one small trait, so that the client library can be exchanged and a cluster can run in one process.
//!
//! - [`redis`]: a real Redis by the client library fred. One connection writes, one blocks in XREAD, one is subscribed.
//! - [`memory`]: a Redis inside the process, for clusters inside one test. Its time is simulated if the runtime's clock is paused.

mod failure_log;
pub mod memory;
#[cfg(feature = "fred")]
pub mod redis;
mod types;

pub(crate) use self::failure_log::FailureLog;
pub use self::types::{EntryId, Extent, Outgoing, Received, StreamEntry, Transport, TransportError};
