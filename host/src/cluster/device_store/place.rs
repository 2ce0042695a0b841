//! By what a record is found, and how long it is kept.

use std::time::Duration;

use pointwork_core::devices::{DeviceRecord, DeviceStatus};

/// How long a record of a device that is not paired is kept without a change.
pub(super) const UNPAIRED_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// What both stores index of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The pairing code of a device that is not paired.
    pub(super) code: Option<&'a str>,
    /// The replica of the holder; of one that ended, until it is said that the device is offline.
    pub(super) replica: Option<&'a str>,
    /// The owner of one that is kept for good.
    pub(super) owner: Option<&'a str>,
    /// How long the record is kept; `None`: for good.
    pub(super) life: Option<Duration>,
}

impl Place<'_> {
    /// That of a record. An empty code or name counts as none.
    pub(super) fn of(record: &DeviceRecord) -> Place<'_> {
        let ended =
            || record.ended.as_ref().filter(|_| record.status != DeviceStatus::Offline).map(|ended| &*ended.replica);
        let replica = record.holder.as_ref().map(|holder| &*holder.replica).or_else(ended);
        // An operator's block stands until an operator takes it back.
        let life = (!record.is_paired && !record.is_blocked).then_some(UNPAIRED_LIFE);
        Place {
            code: record.pairing_code.as_deref().filter(|code| !record.is_paired && !code.is_empty()),
            replica: replica.filter(|replica| !replica.is_empty()),
            owner: record.owner.as_deref().filter(|owner| life.is_none() && !owner.is_empty()),
            life,
        }
    }
}

#[cfg(test)]
mod tests {
    use pointwork_core::SocketId;
    use pointwork_core::decisions::Departure;
    use pointwork_core::devices::Holder;
    use pointwork_core::devices::record::Fate;

    use super::*;

    fn held() -> DeviceRecord {
        let holder = Holder {
            replica: "r".into(),
            socket: SocketId(1),
            epoch: 0,
            accepted_ms: 0,
            has_proved: true,
            fingerprint: None,
            address: None,
        };
        DeviceRecord { pairing_code: Some("c".into()), ..DeviceRecord::default() }.accepted(holder, Fate::Evicted, 0, 1)
    }

    #[test]
    fn a_record_is_found_by_its_replica_until_the_device_is_offline() {
        assert_eq!(Place::of(&held()).replica, Some("r"));
        let ended = held().released(Departure::TransportLost, 2);
        assert_eq!(Place::of(&ended).replica, Some("r"));
        assert_eq!(Place::of(&ended.offline(0, 3)).replica, None);
        assert_eq!(Place::of(&held().touched(DeviceStatus::Offline, false, 0, 2)).replica, Some("r"));
        assert_eq!(Place::of(&DeviceRecord::default()).replica, None);
    }

    #[test]
    fn only_a_device_that_is_not_paired_has_a_code_and_expires() {
        assert_eq!(
            Place::of(&DeviceRecord::default()),
            Place { code: None, replica: None, owner: None, life: Some(UNPAIRED_LIFE) }
        );
        assert_eq!(Place::of(&held()).code, Some("c"));
        let paired = DeviceRecord { is_paired: true, ..held() };
        assert_eq!((Place::of(&paired).code, Place::of(&paired).life), (None, None));
        let owned = |is_paired| DeviceRecord { is_paired, owner: Some("o".into()), ..held() };
        assert_eq!((Place::of(&owned(false)).owner, Place::of(&owned(true)).owner), (None, Some("o")));
        assert_eq!(Place::of(&held().blocked(2)).life, None);
        assert_eq!(Place::of(&DeviceRecord { pairing_code: Some("".into()), ..held() }).code, None);
    }
}
