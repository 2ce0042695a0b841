//! What benches with thousands of real clients share: the host in a process of its own, and the client.

mod client;
mod host;

#[allow(unused_imports, reason = "each bench uses some of them")]
pub(crate) use client::{Client, HEADERS, PING};
#[allow(unused_imports, reason = "each bench uses some of them")]
pub(crate) use host::{Host, SECRET};

/// A part of a whole, or how much each of so many has; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "KiB of one process are exact")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
