//! `[drain]`: how a replica leaves when it is asked to stop. With the defaults all of it takes less than the 30 s that Kubernetes gives, while
//! Redis answers; what waits for it when it hangs makes it 36 s.

use std::time::Duration;

use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;

/// An hour, in milliseconds.
const HOUR: u32 = 3_600_000;

section! {
    /// The spans of a leave, which follow each other.
    pub struct DrainConfig {
        /// How long everything goes on as before, but for the probe: until the load balancer has noticed and sends nobody here any more, in
        /// milliseconds. A replica that is alone has nowhere to send anybody and skips it.
        pub settle_ms: Bounded<0, HOUR> = Bounded::literal::<5_000>(),
        /// How long calls may then take to end, in milliseconds: those to this replica's daemons and those of its callers, waiting ones
        /// too. The sockets of the others are closed meanwhile.
        pub deadline_ms: Bounded<0, HOUR> = Bounded::literal::<12_000>(),
        /// Over how long at the most the sockets are closed, in milliseconds: once for those that no call needs, and once more for those whose
        /// calls are broken off at the deadline.
        pub close_ms: Bounded<0, HOUR> = Bounded::literal::<5_000>(),
    }
}

impl DrainConfig {
    /// [`settle_ms`](Self::settle_ms).
    #[must_use]
    pub const fn settle(&self) -> Duration {
        self.settle_ms.as_millis()
    }

    /// [`deadline_ms`](Self::deadline_ms).
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline_ms.as_millis()
    }

    /// [`close_ms`](Self::close_ms).
    #[must_use]
    pub const fn close(&self) -> Duration {
        self.close_ms.as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RpcConfig;

    #[test]
    fn calls_may_wait_for_their_grace_and_all_is_over_before_kubernetes_kills() {
        let drain = DrainConfig::default();
        assert!(drain.deadline() > RpcConfig::default().grace_ms.as_millis());
        // What comes after the sockets (devices' records, listeners, what waits for Redis) has bounds of its own.
        let rest = Duration::from_secs(6);
        assert!(drain.settle() + drain.deadline() + drain.close() + rest < Duration::from_secs(30));
    }
}
