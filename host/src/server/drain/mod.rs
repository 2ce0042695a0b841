//! Drains a replica that was asked to stop, without breaking off calls and without a stampede on the other replicas.
//!
//! The probe reports it at once. For `drain.settle_ms` nothing else happens: clients that the load balancer still sends are let in,
//! and daemons get their calls. Then the other replicas hear that no more calls are wanted here, and from then on calls wait for
//! these daemons. So daemons close first, each when it has no call in flight, and are back elsewhere within the grace period.
//! Callers follow when their calls have ended. Calls that are still open at `drain.deadline_ms` are broken off.

mod closing;
mod pace;
mod parts;
mod steps;

pub(super) use self::parts::{Drain, Drained};
