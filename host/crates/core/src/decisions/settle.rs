//! Decides which of two sockets holds a device's session: what slot `settle` is asked and answers, and the native rule.

/// Session events in one `settle` decision at most.
pub const HISTORY_MAX: usize = 16;
/// How long after it was accepted an incumbent is held, in milliseconds. Seed (eviction-storm): `SESSION_SETTLE_MS`,
/// "2–3 s".
pub const SETTLE_MS: u32 = 2_500;

/// What the host knows of an incumbent's connection (`settle.liveness`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Liveness {
    /// In the namespace, and its replica is alive.
    Alive,
    /// Its replica is not heard from.
    Doubtful,
    /// Proven gone; the newcomer is accepted whatever a policy says.
    Gone,
}

/// The socket that holds a device's session (`settle.incumbent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Incumbent {
    /// What is known of its connection.
    pub liveness: Liveness,
    /// Milliseconds since it was accepted.
    pub age_ms: u32,
    /// Milliseconds since its last packet of any kind, engine pings included.
    pub idle_ms: u32,
    /// Milliseconds since its last `device:heartbeat`.
    pub heartbeat_ms: u32,
    /// Held by the deciding replica.
    pub local: bool,
}

/// The socket that wants a device's session (`settle.newcomer`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Newcomer {
    /// It proved a device token.
    pub paired: bool,
    /// Its fingerprint is the incumbent's.
    pub same_fingerprint: bool,
    /// It comes from the incumbent's network address.
    pub same_address: bool,
    /// It is connected by HTTP long polling.
    pub polling: bool,
}

/// What can happen to a device's session (`settle.happening`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    /// A socket got the session.
    Accepted,
    /// A socket was told to try again later.
    Refused,
    /// The holder was closed in favour of another socket.
    Evicted,
    /// The holder's connection broke.
    Lost,
    /// The holder closed its connection on purpose.
    Closed,
    /// The holder registered again on the same socket.
    Refreshed,
}

/// Something that happened to a device's session (`settle.event`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event {
    /// Milliseconds ago.
    pub ago_ms: u32,
    /// What it was.
    pub what: Happening,
}

/// The answer of `settle.decide`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettleVerdict {
    /// The newcomer holds the session, the incumbent is evicted.
    Accept,
    /// The incumbent stays; the newcomer is told to try again in so many milliseconds.
    Refuse(u32),
    /// The newcomer holds the session; the incumbent is closed after so many milliseconds.
    Beside(u32),
}

/// Holds an incumbent that is alive and was accepted less than `window_ms` ([`SETTLE_MS`] unless set otherwise) ago;
/// the newcomer is told to come back when the window has passed. Seed (eviction-storm): hold-incumbent with the
/// liveness safeguard, which never strands a device on a dead socket.
pub fn settle(window_ms: u32, incumbent: &Incumbent) -> SettleVerdict {
    match window_ms.checked_sub(incumbent.age_ms) {
        Some(left_ms) if left_ms > 0 && incumbent.liveness == Liveness::Alive => SettleVerdict::Refuse(left_ms),
        _ => SettleVerdict::Accept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settle_holds_a_live_incumbent_within_its_window() {
        let incumbent = |liveness, age_ms| Incumbent { liveness, age_ms, idle_ms: 0, heartbeat_ms: 0, local: true };
        let decide = |liveness, age_ms| settle(SETTLE_MS, &incumbent(liveness, age_ms));
        assert_eq!(decide(Liveness::Alive, 0), SettleVerdict::Refuse(2_500));
        assert_eq!(decide(Liveness::Alive, 2_499), SettleVerdict::Refuse(1));
        assert_eq!(decide(Liveness::Alive, 2_500), SettleVerdict::Accept);
        assert_eq!(decide(Liveness::Alive, u32::MAX), SettleVerdict::Accept);
        assert_eq!(decide(Liveness::Doubtful, 0), SettleVerdict::Accept);
        assert_eq!(decide(Liveness::Gone, 0), SettleVerdict::Accept);
        assert_eq!(settle(0, &incumbent(Liveness::Alive, 0)), SettleVerdict::Accept);
    }
}
