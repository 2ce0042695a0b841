//! `[drain]`: how a replica shuts down. With the defaults a drain takes less than the 30 s that Kubernetes allows. If Redis hangs, it takes
//! 36 s.

use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;

/// An hour, in milliseconds.
const HOUR: u32 = 3_600_000;

section! {
    /// The steps of a drain, which follow each other.
    pub struct DrainConfig {
        /// How long the replica serves as before and only its readiness probe fails, in milliseconds. Meanwhile the load balancer stops sending
        /// clients. A replica without peers skips this step.
        pub settle_ms: Bounded<0, HOUR> = Bounded::literal::<5_000>(),
        /// How long open calls of this replica's daemons and callers may then take to end, in milliseconds. Sockets without open calls are
        /// closed meanwhile.
        pub deadline_ms: Bounded<0, HOUR> = Bounded::literal::<12_000>(),
        /// The time over which sockets are closed, in milliseconds: once for those without open calls, and once more for the others after the
        /// deadline.
        pub close_ms: Bounded<0, HOUR> = Bounded::literal::<5_000>(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::RpcConfig;

    #[test]
    fn a_drain_is_longer_than_the_grace_period_and_shorter_than_kubernetes_allows() {
        let drain = DrainConfig::default();
        assert!(drain.deadline_ms.as_millis() > RpcConfig::default().grace_ms.as_millis());
        // What comes after the sockets (devices' records, listeners, what waits for Redis) has bounds of its own.
        let rest = Duration::from_secs(6);
        assert!(
            drain.settle_ms.as_millis() + drain.deadline_ms.as_millis() + drain.close_ms.as_millis() + rest
                < Duration::from_secs(30)
        );
    }
}
