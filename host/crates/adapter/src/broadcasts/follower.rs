//! The callbacks of a socket that follows the stream.

use crate::transport::EntryId;

/// The application's side of a socket that follows the stream. All calls except [`overrun`](Self::overrun) happen under the lock of the
/// log, so they come at the right place between the broadcasts. They must be quick, must not block, and must neither broadcast nor
/// follow.
pub trait Follower: Send + Sync + 'static {
    /// The socket named no offset. It misses nothing from `at` on.
    fn began(&self, at: EntryId);

    /// The socket got the broadcasts that it missed after `from`, up to `to`. New broadcasts come next.
    fn recovered(&self, from: EntryId, to: EntryId);

    /// The socket missed broadcasts that it cannot get. It continues after `to`, or with the next broadcast if that is `None`. This is
    /// called instead of `recovered`, and later whenever this replica itself missed entries.
    ///
    /// [`Gap::Unreachable`] with `None` is called for a broadcast that did not get into the stream as far as its sender knows, after the
    /// socket got it without an offset. If the broadcast did get into the stream, it comes again with an offset.
    fn gap(&self, gap: Gap, to: Option<EntryId>);

    /// The socket could not take a packet. It gets nothing more, and must be disconnected, so that its client comes back and recovers.
    fn overrun(&self);
}

/// Why a socket cannot get broadcasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gap {
    /// The stream does not reach back that far any more.
    Trimmed,
    /// The stream does not have the entry that the client named: it was emptied, or is another stream.
    Unknown,
    /// The socket missed more than is sent at once.
    TooMany,
    /// Redis cannot be read or written.
    Unreachable,
}

impl Gap {
    /// The name: `trimmed`, `unknown`, `too-many` or `unreachable`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Gap::Trimmed => "trimmed",
            Gap::Unknown => "unknown",
            Gap::TooMany => "too-many",
            Gap::Unreachable => "unreachable",
        }
    }
}
