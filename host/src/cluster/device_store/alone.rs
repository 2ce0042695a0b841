//! The records of a replica that is alone.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use pointwork_core::Time;
use pointwork_core::devices::DeviceRecord;
use tokio::time::Instant;

use super::place::Place;

/// How many records that expire are kept; the one that was changed longest ago makes room.
const EXPIRING_MAX: usize = 100_000;

/// The records, and the clock by which they expire.
pub struct Alone {
    started: Instant,
    records: Mutex<Records>,
}

impl Default for Alone {
    fn default() -> Self {
        Self { started: Instant::now(), records: Mutex::new(Records::new(EXPIRING_MAX)) }
    }
}

impl Alone {
    pub(super) fn read(&self, device: &str) -> DeviceRecord {
        self.with(|records, _| records.kept.get(device).map(|kept| kept.record.clone()).unwrap_or_default())
    }

    /// Whether it had the expected epoch.
    pub(super) fn swap(&self, device: &str, expected: u64, record: &DeviceRecord) -> bool {
        self.with(|records, now| records.swap(device, expected, record, now))
    }

    pub(super) fn page(&self, after: Option<&str>, count: usize) -> Vec<(String, DeviceRecord)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.with(|records, _| {
            let all = records.kept.range::<str, _>((from, Bound::Unbounded));
            all.take(count).map(|(device, kept)| (device.to_string(), kept.record.clone())).collect()
        })
    }

    pub(super) fn owned(&self, owner: &str, after: Option<&str>, count: usize) -> Vec<(String, DeviceRecord)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.with(|records, _| {
            let its =
                records.owned.get(owner).into_iter().flat_map(|its| its.range::<str, _>((from, Bound::Unbounded)));
            let found = its.filter_map(|device| Some((device.to_string(), records.kept.get(device)?.record.clone())));
            found.take(count).collect()
        })
    }

    pub(super) fn by_pairing_code(&self, code: &str) -> Option<String> {
        self.with(|records, _| records.codes.get(code).map(|device| device.to_string()))
    }

    pub(super) fn of_replica(&self, replica: &str) -> Vec<String> {
        self.with(|records, _| {
            let its = records.kept.iter().filter(|(_, kept)| Place::of(&kept.record).replica == Some(replica));
            its.map(|(device, _)| device.to_string()).collect()
        })
    }

    pub(super) fn replicas(&self) -> Vec<String> {
        self.with(|records, _| {
            let named: BTreeSet<_> = records.kept.values().filter_map(|kept| Place::of(&kept.record).replica).collect();
            named.into_iter().map(str::to_owned).collect()
        })
    }

    /// Takes a step with the records that have not expired.
    fn with<T>(&self, step: impl FnOnce(&mut Records, Time) -> T) -> T {
        let mut records = self.records.lock();
        let now = Time::ZERO + self.started.elapsed();
        records.expire(now);
        step(&mut records, now)
    }
}

/// Orders the records that expire: by when, then by their changes.
type Expiry = (Time, u64);

struct Records {
    kept: BTreeMap<Arc<str>, Kept>,
    codes: HashMap<Arc<str>, Arc<str>>,
    /// The devices of each owner that are kept for good.
    owned: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    expiring: BTreeMap<Expiry, Arc<str>>,
    expiring_max: usize,
    /// How many changes there were.
    changes: u64,
}

struct Kept {
    record: DeviceRecord,
    expiry: Option<Expiry>,
}

impl Records {
    fn new(expiring_max: usize) -> Self {
        Self {
            kept: BTreeMap::new(),
            codes: HashMap::new(),
            owned: HashMap::new(),
            expiring: BTreeMap::new(),
            expiring_max,
            changes: 0,
        }
    }

    fn swap(&mut self, device: &str, expected: u64, record: &DeviceRecord, now: Time) -> bool {
        if self.kept.get(device).map_or(0, |kept| kept.record.epoch) != expected {
            return false;
        }
        self.remove(device);
        let (device, place) = (Arc::<str>::from(device), Place::of(record));
        self.changes += 1;
        let expiry = place.life.map(|life| (now + life, self.changes));
        if let Some(expiry) = expiry {
            self.expiring.insert(expiry, device.clone());
        }
        if let Some(code) = place.code {
            self.codes.entry(code.into()).or_insert_with(|| device.clone());
        }
        if let Some(owner) = place.owner {
            self.owned.entry(owner.into()).or_default().insert(device.clone());
        }
        self.kept.insert(device, Kept { record: record.clone(), expiry });
        if self.expiring.len() > self.expiring_max {
            metrics::counter!("pointwork_device_records_dropped_total").increment(1);
            self.remove_first();
        }
        true
    }

    fn expire(&mut self, now: Time) {
        while self.expiring.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            self.remove_first();
        }
    }

    fn remove_first(&mut self) {
        if let Some((_, device)) = self.expiring.pop_first() {
            self.remove(&device);
        }
    }

    fn remove(&mut self, device: &str) {
        let Some(kept) = self.kept.remove(device) else { return };
        if let Some(expiry) = kept.expiry {
            self.expiring.remove(&expiry);
        }
        let place = Place::of(&kept.record);
        if let Some(owner) = place.owner
            && let Some(its) = self.owned.get_mut(owner)
        {
            its.remove(device);
            if its.is_empty() {
                self.owned.remove(owner);
            }
        }
        if let Some(code) = place.code
            && self.codes.get(code).is_some_and(|owner| **owner == *device)
        {
            self.codes.remove(code);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::place::UNPAIRED_LIFE;
    use super::*;

    fn unpaired(epoch: u64) -> DeviceRecord {
        DeviceRecord { epoch, pairing_code: Some("c".into()), ..DeviceRecord::default() }
    }

    fn devices(records: &Records) -> Vec<&str> {
        records.kept.keys().map(|device| &**device).collect()
    }

    #[test]
    fn a_record_expires_a_day_after_its_last_change() {
        let mut records = Records::new(10);
        let almost = Time::ZERO + (UNPAIRED_LIFE - Duration::from_millis(1));
        assert!(records.swap("a", 0, &unpaired(1), Time::ZERO));
        assert!(records.swap("b", 0, &DeviceRecord { is_paired: true, ..unpaired(1) }, Time::ZERO));
        assert!(records.swap("c", 0, &unpaired(1), Time::ZERO));
        records.expire(almost);
        assert!(records.swap("c", 1, &unpaired(2), almost));
        records.expire(Time::ZERO + UNPAIRED_LIFE);
        assert_eq!(devices(&records), ["b", "c"]);
        assert!(!records.swap("a", 1, &unpaired(2), almost), "there is none any more");
        records.expire(almost + UNPAIRED_LIFE);
        assert_eq!((devices(&records), records.codes.len(), records.expiring.len()), (vec!["b"], 0, 0));
    }

    #[test]
    fn the_oldest_change_makes_room() {
        let mut records = Records::new(2);
        for (device, expected) in [("a", 0), ("b", 0), ("a", 1), ("c", 0)] {
            assert!(records.swap(device, expected, &unpaired(expected + 1), Time::ZERO));
        }
        assert_eq!(devices(&records), ["a", "c"]);
        for number in 0..10 {
            let paired = DeviceRecord { is_paired: true, ..unpaired(1) };
            assert!(records.swap(&format!("p{number}"), 0, &paired, Time::ZERO));
        }
        assert_eq!((records.kept.len(), records.expiring.len()), (12, 2));
    }
}
