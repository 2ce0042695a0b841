//! Decides how long a call waits for a daemon: what slot `grace` is asked and answers, and the native rule.

use super::call::Departure;

/// How long a call waits for a daemon that is not there, in milliseconds. Seed (multi-process):
/// `RPC_RECONNECT_GRACE_MS`, twice the heartbeat of the Node adapter.
pub const GRACE_MS: u32 = 10_000;

/// What is known when nobody has registered a method (`grace.absence`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// Why the last daemon that had the method left.
    pub cause: Departure,
    /// Milliseconds since it left.
    pub gone_ms: u32,
    /// How often a daemon with this method left in the last hour.
    pub departures: u32,
    /// How many milliseconds its last absences lasted, newest first; at most [`super::call::RETURNS_MAX`].
    pub returns_ms: Vec<u32>,
    /// Calls that are being held for the same method already.
    pub waiting: u32,
    /// Milliseconds since the deciding replica began to serve.
    pub replica_age_ms: u32,
}

/// A fixed wait of `grace_ms` ([`GRACE_MS`] unless set otherwise), whatever is known of the absence.
pub fn grace(_absence: &Absence, grace_ms: u32) -> u32 {
    grace_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_is_fixed() {
        let absence = Absence {
            cause: Departure::NeverSeen,
            gone_ms: u32::MAX,
            departures: 9,
            returns_ms: vec![1, 2],
            waiting: 7,
            replica_age_ms: 0,
        };
        assert_eq!(grace(&absence, GRACE_MS), 10_000);
        assert_eq!(grace(&absence, 0), 0);
    }
}
