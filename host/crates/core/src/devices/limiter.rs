//! The flap limiter: it limits how often somebody may try to register, before anything else is checked.
//!
//! It counts by what a register says of itself, which anybody can say. So there are two counts for each key. Registers that
//! prove a token fill the one: a device that flaps gets a cooldown, whatever it brings. All others fill the other: too
//! many of them lock the key, for a cooldown and at last for a quarantine, but only against those who prove nothing.
//! Whoever proves a token passes, and the lock is gone: nobody can lock a device out by using its name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::settings::LimiterSettings;
use super::window::Window;
use crate::time::{Time, millis};

/// By what a register is counted. Never by its network address: fleets sit behind one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimiterKey {
    /// The device id that it claims.
    Device(Arc<str>),
    /// Hash of the fingerprint that it gives.
    Fingerprint(u64),
    /// Hash of the token that it brings.
    Token(u64),
    /// Nothing: all of these share one count.
    Anonymous,
}

impl LimiterKey {
    /// The key of a register that claims this device id, has this hash of a fingerprint and of a token: the first there is.
    pub fn of(device: Option<Arc<str>>, fingerprint: Option<u64>, token: Option<u64>) -> LimiterKey {
        let weaker = || {
            fingerprint.map(LimiterKey::Fingerprint).or(token.map(LimiterKey::Token)).unwrap_or(LimiterKey::Anonymous)
        };
        device.map(LimiterKey::Device).unwrap_or_else(weaker)
    }
}

/// Whether a register may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Pass,
    /// It may if it proves a token; else it is to come back after this span.
    OnProof {
        /// Until the key is open again.
        retry_after: Duration,
        /// A quarantine, rather than a cooldown.
        is_quarantine: bool,
    },
    /// It is to come back after this span, whatever it brings.
    Refuse(Duration),
}

/// The limiter of one replica. A key is forgotten after [`LimiterSettings::idle_ms`] without a register, but not before
/// it is open again.
///
/// When [`LimiterSettings::keys_max`] keys are known, the one that never proved a token and would be forgotten first makes
/// room. If all have proved one, a new key passes uncounted: nobody is refused for want of room.
#[derive(Debug)]
pub struct Limiter {
    settings: LimiterSettings,
    entries: HashMap<LimiterKey, KeyCounts>,
    /// Each key with whether it proved a token and when it is forgotten.
    order: BTreeSet<(bool, Time, LimiterKey)>,
}

#[derive(Debug, Default)]
struct KeyCounts {
    unproven: Window,
    proven: Window,
    /// Refused until then, whatever it brings.
    cooling_until: Time,
    /// Refused until then, unless it proves a token.
    locked_until: Time,
    is_quarantined: bool,
    trips: u32,
    has_proved: bool,
    forgotten_at: Time,
}

impl Limiter {
    /// A limiter that has seen nobody.
    pub fn new(settings: LimiterSettings) -> Limiter {
        Limiter { settings, entries: HashMap::new(), order: BTreeSet::new() }
    }

    /// Somebody wants to register.
    pub fn admit(&mut self, key: &LimiterKey, now: Time) -> Admission {
        self.forget_old(now);
        if !self.entries.contains_key(key) && !self.make_room() {
            return Admission::Pass;
        }
        let settings = self.settings;
        let entry = self.entries.entry(key.clone()).or_default();
        let admission = entry.admit(&settings, *key == LimiterKey::Anonymous, now);
        self.order.remove(&(entry.has_proved, entry.forgotten_at, key.clone()));
        entry.forgotten_at = (now + millis(settings.idle_ms)).max(entry.locked_until).max(entry.cooling_until);
        self.order.insert((entry.has_proved, entry.forgotten_at, key.clone()));
        admission
    }

    /// What was admitted last proved a token: the key is open, and its trips are forgotten.
    pub fn prove(&mut self, key: &LimiterKey, now: Time) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        self.order.remove(&(entry.has_proved, entry.forgotten_at, key.clone()));
        // Those that were admitted before its proof came may be more than the rate.
        if entry.proven.count(millis(self.settings.window_ms), now) < self.settings.rate_max as usize {
            entry.proven.push(now);
        }
        entry.unproven.clear();
        (entry.locked_until, entry.is_quarantined) = (Time::ZERO, false);
        (entry.trips, entry.has_proved) = (0, true);
        self.order.insert((true, entry.forgotten_at, key.clone()));
    }

    /// Whether a key is quarantined.
    pub fn is_quarantined(&self, key: &LimiterKey, now: Time) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.is_quarantined && entry.locked_until > now)
    }

    /// How many keys are remembered.
    pub fn keys(&self) -> usize {
        self.entries.len()
    }

    /// Forgets the keys whose time has come.
    pub fn forget_old(&mut self, now: Time) {
        while let Some((at, key)) = self.next_forgotten()
            && at <= now
        {
            self.forget(&key);
        }
    }

    /// When the next key is forgotten.
    pub fn next_expiry(&self) -> Option<Time> {
        self.next_forgotten().map(|(at, _)| at)
    }

    fn next_forgotten(&self) -> Option<(Time, LimiterKey)> {
        let first_key = LimiterKey::Device("".into());
        let unproven = self.order.first();
        let proven = self.order.range((true, Time::ZERO, first_key)..).next();
        let first = unproven.into_iter().chain(proven).min_by_key(|(_, at, _)| *at);
        first.map(|(_, at, key)| (*at, key.clone()))
    }

    fn make_room(&mut self) -> bool {
        if self.entries.len() < self.settings.keys_max {
            return true;
        }
        match self.order.first() {
            Some((false, _, key)) => {
                let key = key.clone();
                self.forget(&key);
                true
            }
            _ => false,
        }
    }

    fn forget(&mut self, key: &LimiterKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.order.remove(&(entry.has_proved, entry.forgotten_at, key.clone()));
        }
    }
}

impl KeyCounts {
    fn admit(&mut self, settings: &LimiterSettings, is_anonymous: bool, now: Time) -> Admission {
        let (window, cooldown) = (millis(settings.window_ms), millis(settings.cooldown_ms));
        let rate_max = if is_anonymous { settings.anonymous_max } else { settings.rate_max } as usize;
        if self.cooling_until > now {
            return Admission::Refuse(self.cooling_until.saturating_since(now));
        }
        if self.has_proved && self.proven.count(window, now) >= rate_max {
            // Counted anew afterwards, or the window would prolong the cooldown.
            self.proven.clear();
            self.cooling_until = now + cooldown;
            return Admission::Refuse(cooldown);
        }
        if self.locked_until <= now && self.unproven.count(window, now) >= rate_max {
            self.unproven.clear();
            self.trips += 1;
            self.is_quarantined = self.trips >= settings.quarantine_trips && !self.has_proved;
            let lock = if self.is_quarantined { millis(settings.quarantine_ms) } else { cooldown };
            self.locked_until = now + lock;
        }
        if self.locked_until > now {
            let retry_after = self.locked_until.saturating_since(now);
            return Admission::OnProof { retry_after, is_quarantine: self.is_quarantined };
        }
        self.unproven.push(now);
        Admission::Pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn key() -> LimiterKey {
        LimiterKey::Device("d".into())
    }

    fn limiter() -> Limiter {
        Limiter::new(LimiterSettings::default())
    }

    /// Registers until the key is closed; how many passed.
    fn fill(limiter: &mut Limiter, key: &LimiterKey, now: Time) -> usize {
        (0..1_000).take_while(|_| limiter.admit(key, now) == Admission::Pass).count()
    }

    #[test]
    fn the_first_name_there_is_counts() {
        assert_eq!(LimiterKey::of(Some("d".into()), Some(1), Some(2)), key());
        assert_eq!(LimiterKey::of(None, Some(1), Some(2)), LimiterKey::Fingerprint(1));
        assert_eq!(LimiterKey::of(None, None, Some(2)), LimiterKey::Token(2));
        assert_eq!(LimiterKey::of(None, None, None), LimiterKey::Anonymous);
    }

    #[test]
    fn too_many_are_cooled_down_and_then_counted_anew() {
        let mut limiter = limiter();
        assert_eq!(fill(&mut limiter, &key(), Time::ZERO), 20);
        let half = Time::from_millis(30_000);
        let expected = Admission::OnProof { retry_after: 30 * SECOND, is_quarantine: false };
        assert_eq!(limiter.admit(&key(), half), expected);
        assert_eq!(fill(&mut limiter, &key(), Time::from_millis(60_000)), 20);
        assert_eq!(fill(&mut limiter, &LimiterKey::Anonymous, Time::ZERO), 60);
        assert_eq!(fill(&mut limiter, &LimiterKey::Fingerprint(1), Time::ZERO), 20);
    }

    #[test]
    fn the_window_slides() {
        let mut limiter = limiter();
        for second in 0..100 {
            // 20 in 300 s are one in 15 s.
            assert_eq!(limiter.admit(&key(), Time::from_millis(second * 15_000)), Admission::Pass, "{second}");
        }
    }

    #[test]
    fn a_quarantine_comes_with_the_fifth_trip_and_goes_with_a_proof() {
        let mut limiter = limiter();
        let mut now = Time::ZERO;
        for trip in 1..=5 {
            assert_eq!(fill(&mut limiter, &key(), now), 20);
            assert_eq!(limiter.is_quarantined(&key(), now), trip == 5);
            now = now + 60 * SECOND;
        }
        assert!(matches!(limiter.admit(&key(), now), Admission::OnProof { is_quarantine: true, .. }));
        // Longer than a key is kept otherwise.
        let late = now + 1_200 * SECOND;
        limiter.forget_old(late);
        assert!(limiter.is_quarantined(&key(), late));
        limiter.prove(&key(), late);
        assert!(!limiter.is_quarantined(&key(), late));
        assert_eq!(limiter.admit(&key(), late), Admission::Pass);
    }

    #[test]
    fn cools_down_a_key_that_proves_a_token_but_never_quarantines_it() {
        let mut limiter = limiter();
        let mut now = Time::ZERO;
        for _ in 0..10 {
            for _ in 0..20 {
                assert_eq!(limiter.admit(&key(), now), Admission::Pass);
                limiter.prove(&key(), now);
            }
            assert_eq!(limiter.admit(&key(), now), Admission::Refuse(60 * SECOND));
            assert!(!limiter.is_quarantined(&key(), now));
            now = now + 60 * SECOND;
        }
        // Nor by others who use its name, and it passes whatever they do.
        for _ in 0..10 {
            fill(&mut limiter, &key(), now);
            assert!(!limiter.is_quarantined(&key(), now));
            now = now + 59 * SECOND;
            assert!(matches!(limiter.admit(&key(), now), Admission::OnProof { is_quarantine: false, .. }));
            limiter.prove(&key(), now);
            assert_eq!(limiter.admit(&key(), now), Admission::Pass);
            now = now + 300 * SECOND;
        }
    }

    #[test]
    fn keys_are_forgotten() {
        let mut limiter = limiter();
        limiter.admit(&key(), Time::ZERO);
        limiter.admit(&LimiterKey::Token(1), Time::from_millis(1));
        limiter.prove(&LimiterKey::Token(1), Time::from_millis(1));
        assert_eq!((limiter.keys(), limiter.next_expiry()), (2, Some(Time::from_millis(600_000))));
        limiter.forget_old(Time::from_millis(600_000));
        assert_eq!((limiter.keys(), limiter.next_expiry()), (1, Some(Time::from_millis(600_001))));
        limiter.forget_old(Time::from_millis(600_001));
        assert_eq!((limiter.keys(), limiter.order.len(), limiter.next_expiry()), (0, 0, None));
    }

    #[test]
    fn forgets_keys_first_that_proved_nothing() {
        let mut limiter = Limiter::new(LimiterSettings { keys_max: 2, ..LimiterSettings::default() });
        limiter.admit(&key(), Time::ZERO);
        limiter.prove(&key(), Time::ZERO);
        for token in 0..10 {
            assert_eq!(limiter.admit(&LimiterKey::Token(token), Time::from_millis(token)), Admission::Pass);
            assert_eq!((limiter.keys(), limiter.order.len()), (2, 2));
        }
        assert!(limiter.entries.contains_key(&key()));
        limiter.prove(&LimiterKey::Token(9), Time::from_millis(9));
        assert_eq!(
            fill(&mut limiter, &LimiterKey::Token(10), Time::from_millis(10)),
            1_000,
            "no room: it passes uncounted"
        );
        assert_eq!(limiter.keys(), 2);
    }
}
