//! A Redis Streams adapter for socketioxide, on the wire of Node's `@socket.io/redis-streams-adapter` 0.3.x.
//!
//! Rust and Node replicas that share one Redis act as one Socket.IO server. So a running Node deployment can be moved to Rust replica by
//! replica. Versions 0.2.x of the Node package use other channels for requests and answers, and cannot share a cluster with this crate.
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
//! - [`Cluster`] is a replica's part in a cluster: its tasks, its peers, and its connection to Redis.
//! - [`RedisStreamsAdapter`] is socketioxide's adapter. The adapters of all namespaces share one [`Cluster`].
//! - [`Namespace`] sends requests to other servers that socketioxide's API does not offer.
//! - [`Listener`] receives the events of other replicas of this kind, and their notes.
//! - [`Follower`] receives the events of a socket that must not miss broadcasts ([`Namespace::follow`]).
//! - [`transport`] is the connection to Redis: a real one by fred, or one in memory.
//! - [`wire`] encodes and decodes messages. It does no I/O and uses neither clock nor randomness.
//!
//! # Channels and encoding
//! | medium | name | reaches | encoding |
//! |---|---|---|---|
//! | stream | `socket.io` ([`Settings::stream_name`]) | every server | text fields `uid`, `nsp`, `type`, `data`; `data` is JSON, or base64 of msgpack if it holds binary |
//! | public channel | `socket.io#<nsp>#` ([`Settings::channel_prefix`]) | every server | one msgpack map `{type, data, uid, nsp}` |
//! | private channel | `socket.io#<nsp>#<uid>#` | one server | the same |
//! | channels of replicas of this kind | `socket.io#peers#`, `socket.io#peers#<uid>#` | all of them, or one | the same |
//!
//! # Messages
//! [`wire`] lists the fields of the types 1 to 13, which are those of Node. Node ignores the types from 100 on.
//!
//! | type | message | medium |
//! |---|---|---|
//! | 3 | broadcast | stream |
//! | 3 | broadcast with acknowledgements | public channel; private channel for a request to one socket |
//! | 4, 5, 6 | sockets join rooms, leave rooms, are disconnected | stream |
//! | 7 | fetch sockets | public or private channel |
//! | 9 | event for the servers themselves (`serverSideEmit`) | public or private channel |
//! | 8, 10, 11, 12 | answers to 7, 9 and 3 | private channel of the server that asked |
//! | 100 | heartbeat `{revision, interruptions, hello, parcels}` | channels of replicas of this kind |
//! | 101 | the sender shuts down | the same |
//! | 102, 103 | asks which requests a replica is not serving, and the answer: lists of request ids | the same, private |
//! | 104 | the sender's subscription is interrupted, but the sender is alive | the same |
//! | 105 | no socket will acknowledge these requests: a list of request ids | the same, private |
//! | 106 | broadcasts of the sender before this entry never got into the stream | stream |
//! | 107 | a batch: several messages to one replica, as a list of binary | private channel of any namespace |
//! | 110 and up | notes of the application ([`Cluster::note`]) | channels of replicas of this kind |
//!
//! # What is lost and what is not
//! Broadcasts in the stream survive an absence of Redis that is shorter than the stream's trimming. Entries that were trimmed or emptied
//! before they were read are counted and reported to the [`Listener`]. Messages by PUB/SUB are lost with the connection. The open requests
//! among them fail. Local sockets get everything in any case.
//!
//! # Sockets that must not miss broadcasts
//! An application can follow the stream for a socket whose client keeps the offset of the last broadcast that it saw. The socket then gets
//! broadcasts only from the stream, also those of its own replica, in the order of the stream. So its last offset says everything. When the
//! client comes back, to any replica, it gets what its rooms missed, once and in order, or learns of a [`Gap`].
//!
//! Each replica keeps the last entries of the stream from its first follower on. It reads older entries from Redis, in one sweep for all
//! sockets that wait. A replica that shares no cluster makes its own offsets and keeps as much.
//!
//! A broadcast that does not get into the stream is known only to its own replica. The followers there get it without an offset, and a gap.
//! Other replicas' followers do not get it.

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
