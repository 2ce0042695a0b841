//! The sockets of this replica, as other servers' messages address them.

mod args;
mod local_sockets;
mod namespace;
mod packet;
mod recipients;

pub use self::args::Args;
pub(crate) use self::local_sockets::{Acks, LocalSockets};
pub use self::namespace::{AnswerEvent, Describe, Description, RequestEnd, TraceRequest};
pub(crate) use self::namespace::{LocalNamespace, LocalNamespaces};
pub(crate) use self::packet::{ack, encode};
pub use self::recipients::FOLLOWERS_ROOM;
pub(crate) use self::recipients::{exclude_followers, to_wire};
