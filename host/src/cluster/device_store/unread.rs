//! Why a record was not read.

use pointwork_core::devices::StoreAway;

/// Why a record was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The store could not be reached, or did not answer in time.
    Away,
    /// There is one, of a later version or damaged. It is the trouble of its device alone.
    Unreadable,
}

impl From<StoreAway> for Unread {
    fn from(_: StoreAway) -> Self {
        Self::Away
    }
}
