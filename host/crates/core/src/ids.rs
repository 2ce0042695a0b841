//! Names sockets, calls and the questions that policies are asked about calls.

/// A Socket.IO socket: the 16 bytes of its Engine.IO session id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u128);

/// A call: its number in its call machine, growing from 1 and never used twice there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A question to a policy: its number within its call. An answer that names an older one is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u32);
