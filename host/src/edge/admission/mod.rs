//! Limits on connections: in all, from one address, of one user.
//!
//! Each admitted connection holds a guard and is counted until the guard is dropped, however the connection ends.

mod connections;
mod counts;
mod forwarded;
mod open_files;
mod users;

pub(crate) use self::{
    connections::{ConnectionLimits, ConnectionPermit, NetworkGuard},
    counts::{KeyedCounts, LimitReached},
    users::{UserLimits, UserSocketGuard},
};
