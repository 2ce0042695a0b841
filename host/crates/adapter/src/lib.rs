//! A Redis Streams adapter for socketioxide, on the wire of Node's `@socket.io/redis-streams-adapter` 0.3.x.
//!
//! Rust and Node replicas behind one Redis act as one Socket.IO server, so a running Node deployment can be moved over
//! replica by replica. Versions 0.2.x of the Node package put requests and answers elsewhere and cannot share them.
//!
//! ```no_run
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use socketioxide_redis_streams::{Cluster, Settings, transport::redis::{Redis, RedisOptions}};
//!
//! let redis = Redis::start("redis://127.0.0.1", RedisOptions::default())?;
//! let cluster = Cluster::new(Arc::new(redis), Settings::default());
//! cluster.start();
//! // let (layer, io) = SocketIo::builder().with_adapter::<RedisStreamsAdapter<_>>(cluster).build_layer();
//! # Ok(()) }
//! ```
//!
//! - [`RedisStreamsAdapter`] is socketioxide's adapter, and [`Cluster`] what a replica's namespaces share: its tasks, its peers, its
//!   link to Redis. [`Namespace`] asks other servers what socketioxide's API has no words for.
//! - [`Listener`] follows the cluster: which replicas of this kind live, what they note to each other.
//! - [`Namespace::follow`]: a socket gets each broadcast with its offset, and what it missed while it was away.
//! - [`transport`]: what is needed of Redis, by fred or in memory.
//! - [`wire`]: the messages, their encoding, and the names of streams and channels. Pure: no I/O, no clock, no randomness.
//!
//! # Where messages go
//! | what | medium | reaches |
//! |---|---|---|
//! | broadcasts, joins, leaves, disconnects | stream | every server |
//! | fetches, broadcasts with acks, server-side events | public channel of the namespace | every server |
//! | answers; a request to one socket | private channel of the namespace | one server |
//! | heartbeats (100), farewells (101), what became of requests (102, 103, 105), broken subscriptions (104), notes (110 and up) | channels `<prefix>#peers#` and `<prefix>#peers#<uid>#` | replicas of this kind |
//!
//! # What is lost and what is not
//! Broadcasts survive a Redis that is away for less than it takes to trim the stream, as far as they got into it; what was trimmed
//! or emptied before it was read is counted and told to the [`Listener`]. What goes by PUB/SUB is lost with the link: open requests
//! are told so. Local sockets get everything in any case.
//!
//! # Sockets that follow
//! A socket whose client keeps the offset of what it saw last is followed for, as an application of the [`Follower`] sees fit. Broadcasts
//! come to it from the stream alone, also those of its own replica, in the stream's order, so that its last offset says all. When its
//! client comes back, to whichever replica, it gets what its rooms missed, once and in order, or is told that this cannot be had
//! ([`Gap`]). Each replica remembers the stream's last entries from its first follower on, and reads older ones once for all that wait.
//! A replica that is alone gives offsets of its own and remembers as much.
//!
//! A broadcast that does not get into the stream is known to its own replica alone: its followers there get it without an offset, and a
//! gap. Nobody else hears of it.

#![forbid(unsafe_code)]

mod adapter;
mod broadcasts;
mod cluster;
mod error;
mod membership;
mod outbox;
mod requests;
mod settings;
mod sockets;
pub mod transport;
pub mod wire;

pub use adapter::RedisStreamsAdapter;
pub use broadcasts::{Follower, Gap};
pub use cluster::{Cluster, Following, Namespace, Standing};
pub use error::{ClusterError, OutboxError};
pub use membership::{Listener, Loss, PeerEvent};
pub use requests::{AckStream, Answers, RequestFailed, SocketRequest};
pub use settings::Settings;
pub use sockets::{AnswerEvent, Args, Describe, Description, FOLLOWERS_ROOM, RequestEnd, TraceRequest};
pub use wire::NOTE_MIN;
