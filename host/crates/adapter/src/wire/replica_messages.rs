//! The messages that only replicas of this kind exchange. Node's servers ignore them.

/// The namespace of these messages. No client can name it, because it does not start with a slash.
pub(crate) const REPLICAS_NSP: &str = "peers";

/// A heartbeat: `{revision, interruptions, hello, parcels}`. See [`Heartbeat`](crate::membership::Heartbeat).
pub(crate) const HEARTBEAT: u32 = 100;
/// The sender shuts down.
pub(crate) const FAREWELL: u32 = 101;
/// Asks a replica which of these requests it is not serving: a list of request ids.
pub(crate) const STATUS_REQUEST: u32 = 102;
/// The answer to [`STATUS_REQUEST`]: the ids of the requests that the sender is not serving.
pub(crate) const NOT_SERVED: u32 = 103;
/// The sender's subscription is interrupted, but the sender is alive.
pub(crate) const INTERRUPTED: u32 = 104;
/// No socket will acknowledge these requests: a list of request ids.
pub(crate) const UNANSWERED: u32 = 105;
/// On the stream: broadcasts of the sender before this entry never got into the stream.
pub(crate) const BROADCASTS_LOST: u32 = 106;
/// Several messages to one replica: a list of binary, each as it would have been published alone.
pub(crate) const BATCH: u32 = 107;

/// The lowest type number that an application may give to its notes. This crate uses the numbers from 100 up to it.
pub const NOTE_MIN: u32 = 110;
