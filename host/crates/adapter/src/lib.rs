//! A Redis Streams adapter for socketioxide, on the wire of Node's `@socket.io/redis-streams-adapter` 0.3.x.
//!
//! Rust and Node replicas behind one Redis act as one Socket.IO server, so a running Node deployment can be moved over
//! replica by replica. Versions 0.2.x of the Node package put requests and answers elsewhere and cannot share them.
//!
//! - [`wire`]: the messages, their encoding, and the names of streams and channels. Pure: no I/O, no clock, no randomness.

#![forbid(unsafe_code)]

pub mod wire;
