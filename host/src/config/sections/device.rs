//! `[device]`: sessions of devices. Defaults are those of the field's deployments.

use pointwork_core::devices::{DeviceSettings, LimiterSettings, ThrottleSettings};

use crate::config::values::bounded::Bounded;
use crate::config::values::section::section;

/// An hour, in milliseconds.
const HOUR: u32 = 3_600_000;
/// A day, in milliseconds.
const DAY: u32 = 24 * HOUR;

section! {
    /// How devices register, and how a device's session settles on one socket. Spans are in milliseconds.
    pub struct DeviceConfig {
        /// How long a session that was just accepted is held against newcomers; 0 holds none.
        pub settle_ms: Bounded<0, HOUR> = Bounded::literal::<2_500>(),
        /// How long a socket may stay without registering.
        pub register_timeout_ms: Bounded<10, HOUR> = Bounded::literal::<10_000>(),
        /// How long a device's socket may be gone before the device is said to be offline.
        pub offline_debounce_ms: Bounded<0, HOUR> = Bounded::literal::<5_000>(),
        /// How long a device may be without a heartbeat before it is said to be offline.
        pub heartbeat_timeout_ms: Bounded<10, DAY> = Bounded::literal::<45_000>(),
        /// The span in which registers are counted.
        pub connect_rate_window_ms: Bounded<1, DAY> = Bounded::literal::<300_000>(),
        /// Registers of one device within it.
        pub connect_rate_max: Bounded<1, 1_000_000> = Bounded::literal::<20>(),
        /// Registrations within it by all devices without a name.
        pub anonymous_rate_max: Bounded<1, 1_000_000> = Bounded::literal::<60>(),
        /// How long a device that registers too often is refused.
        pub cooldown_ms: Bounded<1, DAY> = Bounded::literal::<60_000>(),
        /// A device that does not register for this long is forgotten.
        pub idle_ms: Bounded<1, DAY> = Bounded::literal::<600_000>(),
        /// After this many cooldowns, a device that never proved a token is in quarantine.
        pub quarantine_trips: Bounded<1, 1_000_000> = Bounded::literal::<5>(),
        /// How long a quarantine lasts.
        pub quarantine_ms: Bounded<1, DAY> = Bounded::literal::<1_800_000>(),
        /// The span in which reconnects are counted.
        pub reconnect_window_ms: Bounded<1, HOUR> = Bounded::literal::<10_000>(),
        /// Reconnects of one device within it.
        pub reconnect_base_max: Bounded<1, 1_000_000> = Bounded::literal::<5>(),
        /// The same during the warm-up.
        pub reconnect_hard_ceiling: Bounded<1, 1_000_000> = Bounded::literal::<20>(),
        /// The warm-up after the start, in which only the ceiling applies.
        pub reconnect_warmup_ms: Bounded<0, HOUR> = Bounded::literal::<30_000>(),
        /// The first backoff; it doubles with each level, and more under load.
        pub reconnect_base_backoff_ms: Bounded<1, HOUR> = Bounded::literal::<1_000>(),
        /// The highest level.
        pub max_level: Bounded<0, 30> = Bounded::literal::<10>(),
        /// The longest backoff.
        pub max_backoff_ms: Bounded<1, HOUR> = Bounded::literal::<60_000>(),
        /// After this time without a refusal a device drops by one level.
        pub release_ms: Bounded<1, HOUR> = Bounded::literal::<30_000>(),
    }
}

impl DeviceConfig {
    /// As the machine takes them.
    #[must_use]
    pub fn settings(&self) -> DeviceSettings {
        DeviceSettings {
            limiter: LimiterSettings {
                window_ms: self.connect_rate_window_ms.get(),
                rate_max: self.connect_rate_max.get(),
                anonymous_max: self.anonymous_rate_max.get(),
                cooldown_ms: self.cooldown_ms.get(),
                quarantine_trips: self.quarantine_trips.get(),
                quarantine_ms: self.quarantine_ms.get(),
                idle_ms: self.idle_ms.get(),
                ..LimiterSettings::default()
            },
            throttle: ThrottleSettings {
                window_ms: self.reconnect_window_ms.get(),
                base_max: self.reconnect_base_max.get(),
                hard_ceiling: self.reconnect_hard_ceiling.get(),
                warmup_ms: self.reconnect_warmup_ms.get(),
                base_backoff_ms: self.reconnect_base_backoff_ms.get(),
                level_max: self.max_level.get(),
                backoff_max_ms: self.max_backoff_ms.get(),
                release_ms: self.release_ms.get(),
                ..ThrottleSettings::default()
            },
            settle_ms: self.settle_ms.get(),
            register_timeout_ms: self.register_timeout_ms.get(),
            offline_debounce_ms: self.offline_debounce_ms.get(),
            heartbeat_timeout_ms: self.heartbeat_timeout_ms.get(),
            ..DeviceSettings::default()
        }
    }
}
