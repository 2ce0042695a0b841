//! The pure machines of Pointwork: they decide what happens to calls, devices, rollouts and experiments.
//!
//! Nothing here waits, reads a clock, draws a random number or does I/O. A machine takes an event and its moment (`handle_*`),
//! gives the commands that follow (`next_command`), and says when it wants to be woken (`poll_timeout`). The host feeds it
//! from sockets and timers. A simulation feeds the same machine from a seed.
//!
//! - [`calls`]: every rpc-call of a shard of users, from its arrival to its one answer.
//! - [`cluster`]: what the replicas tell each other of their sockets.
//! - [`devices`]: which socket of a device holds its session.
//! - [`decisions`]: the four questions that policies answer, and the native rules.
//! - [`experiments`]: two rules at once in one slot, which unit gets which, and what came of it.
//! - [`rollout`]: how the replicas of a cluster come to serve one policy.
//! - [`ended_sessions`]: which sessions of users ended, so that late signs of life do not count.
//! - [`ids`], [`room`], [`time`]: names of sockets and calls, names of Socket.IO rooms, and moments.

#![forbid(unsafe_code)]
#![deny(clippy::iter_over_hash_type)]

pub mod calls;
pub mod cluster;
pub mod decisions;
pub mod devices;
pub mod ended_sessions;
pub mod experiments;
pub mod ids;
pub mod rollout;
pub mod room;
pub mod time;

pub use calls::{
    Answer, CallCommand, CallLoad, CallMachine, CallRefused, CallSettings, Directory, Reach, RegisterError,
};
pub use cluster::{
    AnnouncedSocket, Announcer, NumberedChange, PeerCommand, PeerDirectory, PeerSettings, Snapshot, SnapshotPart,
    SocketChange,
};
pub use devices::{DeviceCommand, DeviceSessions, DeviceSettings};
pub use ended_sessions::{EndedSessions, UserSession};
pub use ids::{AskId, CallId, SocketId};
pub use room::RpcRoom;
pub use time::Time;
