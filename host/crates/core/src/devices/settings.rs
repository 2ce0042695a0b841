//! The settings of device sessions. The defaults are those of the seed (eviction-storm); bounds that the seed lacked
//! are added.

use crate::decisions::rules::SETTLE_MS;

/// The settings of [`crate::devices::DeviceSessions`]. Spans are milliseconds. Zero is a bound like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceSettings {
    /// The flap limiter.
    pub limiter: LimiterSettings,
    /// The reconnect throttle.
    pub throttle: ThrottleSettings,
    /// The settle window that a policy is told. Default 2,500 (`SESSION_SETTLE_MS`).
    pub settle_ms: u32,
    /// How long a socket may stay without registering, and a register wait for its turn. Default 10,000.
    pub register_timeout_ms: u32,
    /// How long after its holder went a device is not said to be offline. Default 5,000 (`OFFLINE_DEBOUNCE_MS`).
    pub offline_debounce_ms: u32,
    /// How long a holder may be without a heartbeat before its device is said to be offline. Default 45,000
    /// (`HEARTBEAT_TIMEOUT_MS`).
    pub heartbeat_timeout_ms: u32,
    /// How long the answer to one question or store operation is waited for. Default 5,000.
    pub step_timeout_ms: u32,
    /// How soon an eviction that was not confirmed is sent again; twice as long each time, half a
    /// minute at most. Default 500.
    pub evict_retry_ms: u32,
    /// How long the store is left alone after it was away. Default 1,000.
    pub store_retry_ms: u32,
    /// How soon a refresh is written into the record again. Default 5,000.
    pub refresh_write_ms: u32,
    /// Sockets at once. Default 100,000.
    pub sockets_max: usize,
    /// Devices that this replica has to do with at once. Default 100,000.
    pub devices_max: usize,
    /// Registers of one device that wait for their turn. Default 8.
    pub registers_per_device_max: usize,
    /// Evictions at other replicas that are repeated until they are confirmed. Default 10,000.
    pub evictions_max: usize,
    /// Records that are compared with the store at once when it is back. Default 64.
    pub reconciles_max: usize,
}

impl Default for DeviceSettings {
    fn default() -> DeviceSettings {
        DeviceSettings {
            limiter: LimiterSettings::default(),
            throttle: ThrottleSettings::default(),
            settle_ms: SETTLE_MS,
            register_timeout_ms: 10_000,
            offline_debounce_ms: 5_000,
            heartbeat_timeout_ms: 45_000,
            step_timeout_ms: 5_000,
            evict_retry_ms: 500,
            store_retry_ms: 1_000,
            refresh_write_ms: 5_000,
            sockets_max: 100_000,
            devices_max: 100_000,
            registers_per_device_max: 8,
            evictions_max: 10_000,
            reconciles_max: 64,
        }
    }
}

/// The settings of [`crate::devices::Limiter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterSettings {
    /// The span in which registers are counted, in milliseconds. Default 300,000 (`CONNECT_RATE_WINDOW_MS`).
    pub window_ms: u32,
    /// Registers of one key within it. Default 20 (`CONNECT_RATE_MAX`).
    pub rate_max: u32,
    /// Registers of all those that have no key within it. Default 60.
    pub anonymous_max: u32,
    /// How long a key that registered too often is refused, in milliseconds. Default 60,000 (`COOLDOWN_MS`).
    pub cooldown_ms: u32,
    /// After so many cooldowns a key that never proved a token is quarantined. Default 5 (`QUARANTINE_TRIPS`).
    pub quarantine_trips: u32,
    /// For so long, in milliseconds. Default 1,800,000 (`QUARANTINE_MS`).
    pub quarantine_ms: u32,
    /// After so long without a register a key is forgotten, in milliseconds. Default 600,000 (`IDLE_MS`).
    pub idle_ms: u32,
    /// Keys that are remembered. Default 100,000.
    pub keys_max: usize,
}

impl Default for LimiterSettings {
    fn default() -> LimiterSettings {
        LimiterSettings {
            window_ms: 300_000,
            rate_max: 20,
            anonymous_max: 60,
            cooldown_ms: 60_000,
            quarantine_trips: 5,
            quarantine_ms: 1_800_000,
            idle_ms: 600_000,
            keys_max: 100_000,
        }
    }
}

/// The settings of [`crate::devices::Throttle`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleSettings {
    /// The span in which reconnects are counted, in milliseconds. Default 10,000 (`RECONNECT_WINDOW_MS`).
    pub window_ms: u32,
    /// Reconnects of one device within it. Default 5 (`RECONNECT_BASE_MAX`).
    pub base_max: u32,
    /// Reconnects of one device within it during the warm-up, too. Default 20 (`RECONNECT_HARD_CEILING`).
    pub hard_ceiling: u32,
    /// How long after the replica began to serve only the ceiling counts, in milliseconds. Default 30,000
    /// (`RECONNECT_WARMUP_MS`).
    pub warmup_ms: u32,
    /// The first backoff, in milliseconds; it doubles with each level. Default 1,000 (`RECONNECT_BASE_BACKOFF_MS`).
    pub base_backoff_ms: u32,
    /// The highest level. Default 10 (`MAX_LEVEL`).
    pub level_max: u32,
    /// The longest backoff, in milliseconds. Default 60,000 (`MAX_BACKOFF_MS`).
    pub backoff_max_ms: u32,
    /// After so long without a refusal a device falls by one level, in milliseconds. Default 30,000 (`RELEASE_MS`).
    pub release_ms: u32,
    /// Devices that are remembered. Default 100,000.
    pub devices_max: usize,
}

impl Default for ThrottleSettings {
    fn default() -> ThrottleSettings {
        ThrottleSettings {
            window_ms: 10_000,
            base_max: 5,
            hard_ceiling: 20,
            warmup_ms: 30_000,
            base_backoff_ms: 1_000,
            level_max: 10,
            backoff_max_ms: 60_000,
            release_ms: 30_000,
            devices_max: 100_000,
        }
    }
}
