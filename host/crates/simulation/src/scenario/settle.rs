//! `[settle]`: worlds of devices.

use serde::Deserialize;

use super::bounds::{ScenarioError, bounded};
use super::span::{Span, number, span};

/// Worlds of devices and of the replicas that they connect to. What is left out is as said at its field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettleScenario {
    /// Devices in each world, 1 to 100.
    pub devices: u64,
    /// How long a world lasts, in seconds, 1 to 3,600. Afterwards nothing goes wrong any more and nobody begins
    /// anything; what holds then is checked, and not measured.
    pub duration_s: u64,
    /// The operator's settle window, in milliseconds, 0 to 60,000. Default 2,500.
    #[serde(default = "number::<2_500>")]
    pub settle_ms: u64,
    /// Whether the flap limiter and the reconnect throttle do their work beside the policy, as in a host. Default true.
    #[serde(default = "yes")]
    pub limiters: bool,
    /// What devices do.
    pub clients: Clients,
    /// Between them and the replicas, and between these.
    #[serde(default)]
    pub network: Network,
    /// The replicas.
    #[serde(default)]
    pub replicas: Replicas,
    /// Trouble of the store that the replicas share.
    #[serde(default)]
    pub store: StoreTrouble,
}

/// `[settle.clients]`: what a device does. It opens its sockets in bursts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// When it opens its first socket, in milliseconds since the replicas began, within `duration_s`. Their warm-up
    /// lasts 30,000.
    pub first_open_ms: Span,
    /// How many bursts it makes, 1 to 100. Default 1.
    #[serde(default = "span::<1, 1>")]
    pub bursts: Span,
    /// From the beginning of one burst to the next, in milliseconds, 1 to 3,600,000. Default 60,000.
    #[serde(default = "span::<60_000, 60_000>")]
    pub burst_every_ms: Span,
    /// How many sockets it opens in a burst, 1 to 1,000. Default 1.
    #[serde(default = "span::<1, 1>")]
    pub opens: Span,
    /// From one of them to the next, in milliseconds, 0 to 600,000. Default 1,000.
    #[serde(default = "span::<1_000, 1_000>")]
    pub spacing_ms: Span,
    /// A client that opens a socket leaves its earlier ones open, and each goes on by itself: the bug that makes
    /// storms. Otherwise it closes them as it opens the next. Default false.
    #[serde(default)]
    pub duplicates_stay: bool,
    /// What a connection does that was refused. Default obeys.
    #[serde(default = "obeys")]
    pub when_refused: When,
    /// What a connection does that was evicted. Default gives-up, as Socket.IO's clients do; `obeys` is as `insists`
    /// here.
    #[serde(default = "gives_up")]
    pub when_evicted: When,
    /// After how long it opens again by itself, in milliseconds, 1 to 600,000. Default 500 to 1,500.
    #[serde(default = "span::<500, 1_500>")]
    pub reopen_ms: Span,
    /// How often each socket that has the session gives a heartbeat, in milliseconds, 1,000 to 600,000, or 0: never.
    /// Default 15,000.
    #[serde(default = "span::<15_000, 15_000>")]
    pub heartbeat_ms: Span,
}

/// What a connection does that the host has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// It comes back when it was told to (`retry_after_ms`).
    Obeys,
    /// It comes back after `reopen_ms`, whatever it was told.
    Insists,
    /// It does not come back.
    GivesUp,
}

/// `[settle.network]`. Between devices and replicas a connection may break; between replicas a message may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// One way between a device and a replica, in milliseconds, 0 to 10,000. Default 2 to 40.
    pub latency_ms: Span,
    /// One way between replicas, in milliseconds, 0 to 1,000. Default 0 to 2.
    pub peer_ms: Span,
    /// How many messages between replicas in a hundred are lost, 0 to 90. Default 0.
    pub lost_percent: u64,
    /// How often a device's network breaks and all its sockets with it, an hour, 0 to 3,600. Default 0.
    pub drops_per_hour: u64,
    /// How many of these breaks in a hundred leave half-open connections: the replica does not notice. Default 0.
    pub half_open_percent: u64,
    /// After how long it does, in milliseconds, 0 to 120,000. Default 45,000 to 60,000: the ping timeout.
    pub unnoticed_ms: Span,
    /// After how long the device opens a socket by its new network, in milliseconds, 0 to 600,000. Default 200 to
    /// 3,000.
    pub away_ms: Span,
    /// How often a device moves to another network address with its connections whole, an hour, 0 to 3,600. Default 0.
    pub moves_per_hour: u64,
    /// How long after it opened a socket there it closes the old ones, in milliseconds, 0 to 60,000. Default 0 to 300.
    pub overlap_ms: Span,
    /// How many moves in a hundred leave the old sockets half-open instead. Default 0.
    pub lingers_percent: u64,
}

/// `[settle.replicas]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Replicas {
    /// How many there are at once, 1 to 8. Default 2.
    pub count: u64,
    /// How many are killed, each at any time, 0 to 20. Default 0.
    pub kills: Span,
    /// A kill takes all at once, as a deployment does that does not drain. Default false.
    pub all_at_once: bool,
    /// After how long a new one is in its place, in milliseconds, 1 to 600,000. Default 500 to 5,000.
    pub back_ms: Span,
    /// After how long the others know that one is dead, in milliseconds, 1 to 60,000. Default 20 to 400.
    pub noticed_ms: Span,
}

/// `[settle.store]`: trouble of the store.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreTrouble {
    /// An operation, one way, in milliseconds, 0 to 2,000. Default 0 to 2.
    pub latency_ms: Span,
    /// How often it cannot be reached, each time at any moment, 0 to 20. Default 0.
    pub away: Span,
    /// For how long, in milliseconds, 1 to 600,000. Default 1,000 to 10,000.
    pub away_ms: Span,
    /// How many times in a hundred it comes back empty. Default 0.
    pub empty_percent: u64,
}

fn yes() -> bool {
    true
}
fn obeys() -> When {
    When::Obeys
}
fn gives_up() -> When {
    When::GivesUp
}

impl Default for Network {
    fn default() -> Network {
        Network {
            latency_ms: Span { min: 2, max: 40 },
            peer_ms: Span { min: 0, max: 2 },
            lost_percent: 0,
            drops_per_hour: 0,
            half_open_percent: 0,
            unnoticed_ms: Span { min: 45_000, max: 60_000 },
            away_ms: Span { min: 200, max: 3_000 },
            moves_per_hour: 0,
            overlap_ms: Span { min: 0, max: 300 },
            lingers_percent: 0,
        }
    }
}

impl Default for Replicas {
    fn default() -> Replicas {
        Replicas {
            count: 2,
            kills: Span::one(0),
            all_at_once: false,
            back_ms: Span { min: 500, max: 5_000 },
            noticed_ms: Span { min: 20, max: 400 },
        }
    }
}

impl Default for StoreTrouble {
    fn default() -> StoreTrouble {
        StoreTrouble {
            latency_ms: Span { min: 0, max: 2 },
            away: Span::one(0),
            away_ms: Span { min: 1_000, max: 10_000 },
            empty_percent: 0,
        }
    }
}

impl SettleScenario {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let SettleScenario { clients, network, replicas, store, .. } = self;
        let one = |key, number, min, max| bounded(key, Span::one(number), min, max);
        one("settle.devices", self.devices, 1, 100)?;
        one("settle.duration_s", self.duration_s, 1, 3_600)?;
        one("settle.settle_ms", self.settle_ms, 0, 60_000)?;
        bounded("settle.clients.first_open_ms", clients.first_open_ms, 0, self.duration_s * 1_000 - 1)?;
        bounded("settle.clients.bursts", clients.bursts, 1, 100)?;
        bounded("settle.clients.burst_every_ms", clients.burst_every_ms, 1, 3_600_000)?;
        bounded("settle.clients.opens", clients.opens, 1, 1_000)?;
        bounded("settle.clients.spacing_ms", clients.spacing_ms, 0, 600_000)?;
        bounded("settle.clients.reopen_ms", clients.reopen_ms, 1, 600_000)?;
        if clients.heartbeat_ms != Span::one(0) {
            bounded("settle.clients.heartbeat_ms", clients.heartbeat_ms, 1_000, 600_000)?;
        }
        bounded("settle.network.latency_ms", network.latency_ms, 0, 10_000)?;
        bounded("settle.network.peer_ms", network.peer_ms, 0, 1_000)?;
        one("settle.network.lost_percent", network.lost_percent, 0, 90)?;
        one("settle.network.drops_per_hour", network.drops_per_hour, 0, 3_600)?;
        one("settle.network.half_open_percent", network.half_open_percent, 0, 100)?;
        bounded("settle.network.unnoticed_ms", network.unnoticed_ms, 0, 120_000)?;
        bounded("settle.network.away_ms", network.away_ms, 0, 600_000)?;
        one("settle.network.moves_per_hour", network.moves_per_hour, 0, 3_600)?;
        bounded("settle.network.overlap_ms", network.overlap_ms, 0, 60_000)?;
        one("settle.network.lingers_percent", network.lingers_percent, 0, 100)?;
        one("settle.replicas.count", replicas.count, 1, 8)?;
        bounded("settle.replicas.kills", replicas.kills, 0, 20)?;
        bounded("settle.replicas.back_ms", replicas.back_ms, 1, 600_000)?;
        bounded("settle.replicas.noticed_ms", replicas.noticed_ms, 1, 60_000)?;
        bounded("settle.store.latency_ms", store.latency_ms, 0, 2_000)?;
        bounded("settle.store.away", store.away, 0, 20)?;
        bounded("settle.store.away_ms", store.away_ms, 1, 600_000)?;
        one("settle.store.empty_percent", store.empty_percent, 0, 100)
    }
}
