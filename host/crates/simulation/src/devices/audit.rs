//! Judges what the replicas of a world of devices do: by what the sockets were told, what the store was made to hold,
//! which sockets the replicas take for holders, and what is true of each socket.
//!
//! # Invariants
//!
//! After every event:
//! - **one-holder**: whom a replica surely takes for the holder is named by the record, or was superseded; no two have
//!   one epoch. No socket is evicted while the record names it.
//! - **not-stranded**: no socket is refused in favour of one that was not in place since it registered; the rule is not
//!   asked about a holder that is gone.
//! - **refusal-is-harmless**: a refusal changes nothing of the holder.
//! - **no-false-offline**: a device becomes offline only while nobody holds it, or its holder gives no heartbeat.
//! - **debounced**: and no sooner than the debounce after the last holder went.
//! - **epoch-grows**: every change of a record gives it a greater epoch.
//! - **order-of-gates**: what one gate refuses the next never sees: flap limiter, token, reconnect throttle, settle.
//! - **every-register-answered**: each register gets exactly one answer, unless its socket is gone.
//! - **refused-is-closed**: a socket that was refused is told to close.
//! - **open-is-taken**: a replica takes every socket that opens while nothing is full.
//! - **bounded-history**: a record keeps at most 16 events.
//! - **trial-counts**: the trial of an exposed device counts what is true, and does not change after its horizon.
//!
//! When all has been quiet for long:
//! - **one-holder**, **not-stranded**: a device has one registered socket at most, and no socket that wants the session
//!   while nobody has it.
//! - **status-is-true**: record and dashboards show whether a device is there.
//! - **nothing-left**: when all sockets are gone, only entries of the limiters remain, and then nothing.
//!
//! For some time after the store was in trouble its record may not be the truth: then one-holder and debounced are not
//! asserted.

mod auditor;
mod records;
mod sockets;

#[cfg(test)]
pub(super) use auditor::SocketRecord;
pub(super) use auditor::{Believed, DeviceAuditor};
