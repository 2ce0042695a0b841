//! The reconnect throttle: it limits how often a device that proved its identity may reconnect.
//!
//! Only what passed is counted: a device that comes too often is told to wait, longer each time, and whatever it does
//! meanwhile it passes again when its window has room and its wait is over.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::settings::ThrottleSettings;
use super::window::Window;
use crate::time::{Time, millis};

/// How loaded the replica is: how much longer those that are throttled wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LoadBand {
    /// Once the backoff.
    #[default]
    Calm,
    /// Twice.
    Busy,
    /// Four times.
    Strained,
}

impl LoadBand {
    /// The band of a runtime whose lag (99th percentile) is so many milliseconds: from 100 on busy, from 250 on strained.
    pub const fn of_lag_ms(lag_p99_ms: u32) -> LoadBand {
        match lag_p99_ms {
            0..100 => LoadBand::Calm,
            100..250 => LoadBand::Busy,
            _ => LoadBand::Strained,
        }
    }

    const fn factor(self) -> u32 {
        match self {
            LoadBand::Calm => 1,
            LoadBand::Busy => 2,
            LoadBand::Strained => 4,
        }
    }
}

/// The throttle of one replica. When [`ThrottleSettings::devices_max`] devices are known, the one that would be
/// forgotten first makes room: to forget is to be lenient.
#[derive(Debug)]
pub struct Throttle {
    settings: ThrottleSettings,
    entries: HashMap<Arc<str>, DeviceCounts>,
    /// Each device with when it is forgotten.
    order: BTreeSet<(Time, Arc<str>)>,
}

#[derive(Debug, Default)]
struct DeviceCounts {
    passed: Window,
    level: u32,
    /// Since when it was not refused, and did not fall by a level.
    quiet_since: Time,
    refused_until: Time,
    forgotten_at: Time,
}

impl Throttle {
    /// A throttle that has seen nobody.
    pub fn new(settings: ThrottleSettings) -> Throttle {
        Throttle { settings, entries: HashMap::new(), order: BTreeSet::new() }
    }

    /// A device reconnects. If it does so too often it is to come back after the span that is given.
    pub fn admit(&mut self, device: &Arc<str>, band: LoadBand, now: Time) -> Result<(), Duration> {
        self.forget_old(now);
        if !self.entries.contains_key(device)
            && self.entries.len() >= self.settings.devices_max
            && let Some((_, first)) = self.order.pop_first()
        {
            self.entries.remove(&first);
        }
        let settings = self.settings;
        let entry = self.entries.entry(device.clone()).or_default();
        let verdict = entry.admit(&settings, band, now);
        self.order.remove(&(entry.forgotten_at, device.clone()));
        let kept = millis(settings.window_ms) + millis(settings.release_ms) * entry.level;
        entry.forgotten_at = entry.refused_until.max(now) + kept;
        self.order.insert((entry.forgotten_at, device.clone()));
        verdict
    }

    /// How many devices are remembered.
    pub fn devices(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the devices that nothing is held against any more.
    pub fn forget_old(&mut self, now: Time) {
        while self.next_expiry().is_some_and(|at| at <= now)
            && let Some((_, device)) = self.order.pop_first()
        {
            self.entries.remove(&device);
        }
    }

    /// When the next device is forgotten.
    pub fn next_expiry(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }
}

impl DeviceCounts {
    fn admit(&mut self, settings: &ThrottleSettings, band: LoadBand, now: Time) -> Result<(), Duration> {
        self.fall(settings, now);
        let window = millis(settings.window_ms);
        let passed = self.passed.count(window, now);
        if passed >= settings.hard_ceiling as usize {
            self.quiet_since = now;
            return Err(self.passed.frees_in(window, now));
        }
        if now >= Time::from_millis(u64::from(settings.warmup_ms)) {
            if self.refused_until > now {
                self.quiet_since = now;
                return Err(self.refused_until.saturating_since(now));
            }
            if passed >= settings.base_max as usize {
                let backoff = self.backoff(settings, band);
                self.level = (self.level + 1).min(settings.level_max);
                (self.quiet_since, self.refused_until) = (now, now + backoff);
                return Err(backoff);
            }
        }
        self.passed.push(now);
        Ok(())
    }

    fn fall(&mut self, settings: &ThrottleSettings, now: Time) {
        let release = millis(settings.release_ms);
        while self.level > 0 && now.saturating_since(self.quiet_since) >= release {
            self.level -= 1;
            self.quiet_since = self.quiet_since + release;
        }
    }

    fn backoff(&self, settings: &ThrottleSettings, band: LoadBand) -> Duration {
        let doubled = 2_u32.saturating_pow(self.level);
        let backoff_ms = settings.base_backoff_ms.saturating_mul(doubled).saturating_mul(band.factor());
        millis(backoff_ms.min(settings.backoff_max_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After the warm-up.
    const WARM_MS: u64 = 30_000;

    fn throttle() -> Throttle {
        Throttle::new(ThrottleSettings::default())
    }

    fn at(throttle: &mut Throttle, ms: u64) -> Result<(), u64> {
        let verdict = throttle.admit(&"d".into(), LoadBand::Calm, Time::from_millis(ms));
        verdict.map_err(|retry_after| retry_after.as_millis() as u64)
    }

    #[test]
    fn backs_off_longer_each_time_until_the_window_has_room() {
        let mut throttle = throttle();
        for _ in 0..5 {
            assert_eq!(at(&mut throttle, WARM_MS), Ok(()));
        }
        assert_eq!(at(&mut throttle, WARM_MS), Err(1_000));
        assert_eq!(at(&mut throttle, WARM_MS + 600), Err(400));
        assert_eq!(at(&mut throttle, WARM_MS + 1_000), Err(2_000));
        assert_eq!(at(&mut throttle, WARM_MS + 3_000), Err(4_000));
        assert_eq!(at(&mut throttle, WARM_MS + 7_000), Err(8_000));
        assert_eq!(at(&mut throttle, WARM_MS + 15_000), Ok(()));
    }

    #[test]
    fn in_the_warm_up_only_the_ceiling_counts() {
        let mut throttle = throttle();
        for _ in 0..20 {
            assert_eq!(at(&mut throttle, 1_000), Ok(()));
        }
        assert_eq!(at(&mut throttle, 4_000), Err(7_000));
        assert_eq!(at(&mut throttle, 11_000), Ok(()));
    }

    #[test]
    fn load_prolongs_and_the_longest_is_the_longest() {
        let mut throttle = throttle();
        let mut refused = |device: &str, band, ms: u64| {
            let device = device.into();
            (0..6).find_map(|_| throttle.admit(&device, band, Time::from_millis(ms)).err())
        };
        assert_eq!(refused("a", LoadBand::of_lag_ms(99), WARM_MS), Some(Duration::from_secs(1)));
        assert_eq!(refused("b", LoadBand::of_lag_ms(100), WARM_MS), Some(Duration::from_secs(2)));
        assert_eq!(refused("c", LoadBand::of_lag_ms(250), WARM_MS), Some(Duration::from_secs(4)));
        let mut ms = WARM_MS;
        for _ in 0..12 {
            // Always as soon as it may, and then too often.
            let wait = refused("d", LoadBand::Strained, ms).unwrap_or_default();
            assert!(wait <= Duration::from_secs(60));
            ms += wait.as_millis() as u64;
        }
    }

    #[test]
    fn levels_fall_and_devices_are_forgotten() {
        let mut throttle = throttle();
        for _ in 0..6 {
            _ = at(&mut throttle, WARM_MS);
        }
        assert_eq!(at(&mut throttle, WARM_MS + 1_000), Err(2_000));
        // Two levels fall in a minute.
        let ms = WARM_MS + 61_000;
        for _ in 0..5 {
            assert_eq!(at(&mut throttle, ms), Ok(()));
        }
        assert_eq!(at(&mut throttle, ms), Err(1_000));
        assert_eq!(throttle.next_expiry(), Some(Time::from_millis(ms + 1_000 + 10_000 + 30_000)));
        throttle.forget_old(Time::from_millis(ms + 41_000));
        assert_eq!((throttle.devices(), throttle.order.len()), (0, 0));
    }

    #[test]
    fn forgets_the_first_device_when_there_are_too_many() {
        let mut throttle = Throttle::new(ThrottleSettings { devices_max: 2, ..ThrottleSettings::default() });
        for device in ["a", "b", "c"] {
            assert_eq!(throttle.admit(&device.into(), LoadBand::Calm, Time::ZERO), Ok(()));
        }
        assert_eq!((throttle.devices(), throttle.order.len()), (2, 2));
        assert!(!throttle.entries.contains_key("a"));
    }
}
