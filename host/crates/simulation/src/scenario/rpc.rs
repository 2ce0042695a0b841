//! `[rpc]`: worlds of callers and daemons.

use serde::Deserialize;

use super::bounds::{ScenarioError, bounded};
use super::span::{Span, number, span};

/// Worlds of callers and daemons and of the replicas that they connect to. There are two users with four methods each;
/// one in four clients is the second one's, and each daemon has some of its user's methods.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpcScenario {
    /// How many steps there are until everything heals and comes to its end, 1 to 10,000. A step is something that a
    /// client does, or that goes wrong.
    pub steps: u64,
    /// From one step to the next, in milliseconds, 0 to 60,000. Default 0 to 400.
    #[serde(default = "span::<0, 400>")]
    pub pause_ms: Span,
    /// Replicas at once, 1 to 8. Default 2 to 3.
    #[serde(default = "span::<2, 3>")]
    pub replicas: Span,
    /// Daemons, 1 to 16. Default 3 to 6.
    #[serde(default = "span::<3, 6>")]
    pub daemons: Span,
    /// Clients that only call, 1 to 8. Default 1 to 4.
    #[serde(default = "span::<1, 4>")]
    pub callers: Span,
    /// How many daemons in a hundred can hand in a result after a reconnect. Default 50.
    #[serde(default = "number::<50>")]
    pub resumable_percent: u64,
    /// The timeout of a call, in milliseconds, 1 to 600,000. Default 30,000.
    #[serde(default = "span::<30_000, 30_000>")]
    pub timeout_ms: Span,
    /// How long a daemon works on a call, in milliseconds, 0 to 600,000. Default 5 to 2,000.
    #[serde(default = "span::<5, 2_000>")]
    pub work_ms: Span,
    /// Daemons are unequal: each takes from once to so many times as long, 1 to 100. Default 1.
    #[serde(default = "number::<1>")]
    pub slowest_times: u64,
    /// A daemon does one thing after the other, rather than all at once. Default false.
    #[serde(default)]
    pub one_at_a_time: bool,
    /// How many calls in a hundred a daemon never answers. Default 0.
    #[serde(default)]
    pub never_percent: u64,
    /// After how long a client is back whose connection has ended, in milliseconds, 0 to 600,000. Default 100 to 3,000.
    #[serde(default = "span::<100, 3_000>")]
    pub return_ms: Span,
    /// What clients do.
    #[serde(default)]
    pub clients: Steps,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Faults,
}

/// `[rpc.clients]`: how often clients do what, by weights from 0 to 1,000.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Steps {
    /// One to four calls of one method at once. Default 80.
    pub call: u64,
    /// A daemon registers a method. Default 5.
    pub register: u64,
    /// A daemon takes a method back. Default 0.
    pub unregister: u64,
    /// A connection breaks; most often a daemon's. Default 10.
    pub lose: u64,
    /// A client closes its connection, and comes back. Default 0.
    pub close: u64,
}

/// `[rpc.faults]`: how many steps in a hundred are faults, and by weights from 0 to 1,000 which.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// How many, 0 to 50. Default 0.
    pub percent: u64,
    /// Packets between a replica and Redis vanish for a while, and neither knows. Default 0.
    pub stall: u64,
    /// A replica's link to Redis breaks. Default 0.
    pub link: u64,
    /// A replica takes messages too slowly, and some are lost. Default 0.
    pub overrun: u64,
    /// A replica hangs for up to 25 seconds. Default 0.
    pub hang: u64,
    /// A replica is killed, and another one takes its place. Default 0.
    pub kill: u64,
    /// A replica's machine is gone, and nobody sees it at once. Default 0.
    pub vanish: u64,
    /// A replica shuts down in order, and another one takes its place. Default 0.
    pub drain: u64,
    /// Redis restarts empty. Default 0.
    pub redis: u64,
}

impl Default for Steps {
    fn default() -> Steps {
        Steps { call: 80, register: 5, unregister: 0, lose: 10, close: 0 }
    }
}

impl RpcScenario {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let one = |key, number, min, max| bounded(key, Span::one(number), min, max);
        one("rpc.steps", self.steps, 1, 10_000)?;
        bounded("rpc.pause_ms", self.pause_ms, 0, 60_000)?;
        bounded("rpc.replicas", self.replicas, 1, 8)?;
        bounded("rpc.daemons", self.daemons, 1, 16)?;
        bounded("rpc.callers", self.callers, 1, 8)?;
        one("rpc.resumable_percent", self.resumable_percent, 0, 100)?;
        bounded("rpc.timeout_ms", self.timeout_ms, 1, 600_000)?;
        bounded("rpc.work_ms", self.work_ms, 0, 600_000)?;
        one("rpc.slowest_times", self.slowest_times, 1, 100)?;
        one("rpc.never_percent", self.never_percent, 0, 100)?;
        bounded("rpc.return_ms", self.return_ms, 0, 600_000)?;
        let Steps { call, register, unregister, lose, close } = self.clients;
        for weight in [call, register, unregister, lose, close] {
            one("rpc.clients: each weight", weight, 0, 1_000)?;
        }
        if call == 0 {
            return Err(ScenarioError::Contradiction("rpc.clients.call: without calls there is nothing to measure"));
        }
        let Faults { percent, stall, link, overrun, hang, kill, vanish, drain, redis } = self.faults;
        one("rpc.faults.percent", percent, 0, 50)?;
        let weights = [stall, link, overrun, hang, kill, vanish, drain, redis];
        for weight in weights {
            one("rpc.faults: each weight", weight, 0, 1_000)?;
        }
        if (percent > 0) != (weights.iter().sum::<u64>() > 0) {
            return Err(ScenarioError::Contradiction("rpc.faults: percent and weights go together"));
        }
        Ok(())
    }
}
