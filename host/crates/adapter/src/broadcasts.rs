//! Broadcasts on the stream: reads them, and delivers them to sockets that must not miss any.
//!
//! A client that names the last offset it saw gets everything that its rooms got since, on any replica. Each replica keeps the last
//! entries of the stream. Older entries are read from Redis, in one sweep for all sockets that wait for them.

mod catch_up;
mod cursor;
mod event;
mod follow;
mod followed_stream;
mod follower;
mod followers;
mod live;
mod log;
mod offsets;
mod reader;
mod recovery;
mod source;

pub(crate) use self::catch_up::UnsentBroadcast;
pub(crate) use self::event::{encode_event, is_followed_event};
pub(crate) use self::followed_stream::FollowedStream;
pub use self::follower::{Follower, Gap};
pub(crate) use self::followers::FollowerKey;
pub(crate) use self::reader::StreamReader;
pub(crate) use self::recovery::recover;
pub(crate) use self::source::StreamSource;
