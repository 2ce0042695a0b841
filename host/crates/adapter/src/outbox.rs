//! Sends this replica's messages to Redis, in order and without blocking their senders.

mod peer_batch;
mod publisher;
mod queue;
mod writer;

pub(crate) use self::peer_batch::unpack;
pub(crate) use self::publisher::Publisher;
pub(crate) use self::queue::OnLost;
pub(crate) use self::writer::Writer;
