//! Holders and evictions at other replicas, a store that is away, orphans, and bounds.

use super::*;

#[test]
fn asks_the_owner_about_a_holder_elsewhere_and_evicts_it() {
    let alive = OwnerAnswer::Alive { age_ms: 1_000, idle_ms: 5, heartbeat_ms: 5 };
    let mut replica = Replica::wide();
    replica.held_there();
    let said = replica.come(ONE, "d");
    assert_eq!(throttled(&replica.owner_says(&said, alive)), Some((ThrottleReason::SessionSettle, 1_500)));
    let said = replica.come(TWO, "d");
    let said = replica.owner_says(&said, OwnerAnswer::Gone);
    assert!(is_registered(&said, TWO) && replica.asked == Some(OpId(3)), "settle is not asked about it");
    assert!(!said.iter().any(|command| matches!(command, DeviceCommand::EvictRemote { .. })));

    let mut replica = Replica::wide();
    replica.held_there();
    let said = replica.come(ONE, "d");
    let said = replica.owner_says(&said, OwnerAnswer::Silent);
    let is_eviction = |command: &&DeviceCommand| matches!(command, DeviceCommand::EvictRemote { .. });
    assert!(is_registered(&said, ONE) && said.iter().filter(is_eviction).count() == 1);
    // After half a second, one, two and four more.
    replica.heartbeat(ONE);
    assert_eq!(replica.pass(8_000).iter().filter(is_eviction).count(), 4);
    let (at, epoch) = (replica.at(), replica.sessions.holder("d").unwrap().epoch);
    replica.sessions.handle_evict_confirmed(&"d".into(), epoch, at);
    replica.heartbeat(ONE);
    assert_eq!(replica.pass(40_000).iter().filter(is_eviction).count(), 0);
}

#[test]
fn evictions_to_a_dead_replica_and_holders_at_it_are_moot() {
    let mut replica = Replica::wide();
    replica.held_there();
    let said = replica.come(ONE, "d");
    replica.owner_says(&said, OwnerAnswer::Silent);
    assert_eq!(replica.sessions.load().evictions, 1);
    let at = replica.at();
    replica.sessions.handle_replica_gone("there", at);
    assert_eq!(replica.sessions.load().evictions, 0);

    let mut replica = Replica::wide();
    replica.held_there();
    replica.come(ONE, "d");
    let at = replica.at();
    replica.sessions.handle_replica_gone("there", at);
    replica.answer();
    assert!(is_registered(&replica.said, ONE));
}

#[test]
fn an_eviction_closes_what_is_older() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    let (at, device) = (replica.at(), Arc::from("d"));
    let epoch = replica.sessions.holder("d").unwrap().epoch;
    replica.sessions.handle_evict(&device, epoch, ONE, 0, at);
    replica.sessions.handle_evict(&"unknown".into(), epoch, ONE, 0, at);
    replica.answer();
    assert_eq!((replica.said.len(), replica.sessions.owner_answer("d", ONE, at.now) != OwnerAnswer::Gone), (0, true));
    replica.held_there();
    replica.sessions.handle_evict(&device, epoch + 1, ONE, 700, at);
    assert_eq!(replica.sessions.owner_answer("d", ONE, at.now), OwnerAnswer::Gone);
    replica.answer();
    assert_eq!(decided(&replica.said), [(SessionOutcome::Evicted, SessionReason::Superseded)]);
    assert!(is_closed(&replica.pass(700), ONE, CloseReason::Evicted));
    replica.close(ONE);
    assert_eq!((replica.pass(20_000), replica.sessions.load().devices), (vec![], 0), "and arms nothing");
}

#[test]
fn while_the_store_is_away_newcomers_are_decided_here() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.is_store_away = true;
    assert_eq!(throttled(&replica.come(TWO, "d")), Some((ThrottleReason::SessionSettle, 2_500)));
    assert_eq!(decided(&replica.come(SocketId(100), "d100")), [(SessionOutcome::Accepted, SessionReason::Provisional)]);
    let at = replica.at();
    replica.sessions.handle_open(THREE, at).unwrap();
    let unproven = Registration { device: Some("d200".into()), ..pairing() };
    assert_eq!(throttled(&replica.register(THREE, unproven)), Some((ThrottleReason::ReconnectRate, 1_000)));
    replica.heartbeat(ONE);
    replica.pass(20_000);
    assert!(!replica.sessions.holder("d100").unwrap().is_sure);
    replica.is_store_away = false;
    let said = replica.pass(1_000);
    assert_eq!(decided(&said), [(SessionOutcome::Accepted, SessionReason::Reconciled)]);
    assert!(replica.sessions.holder("d100").unwrap().is_sure && replica.records.contains_key("d100"));
    // An emptied store is filled again.
    replica.records.clear();
    let at = replica.at();
    replica.sessions.handle_store_back(at);
    replica.answer();
    assert_eq!((replica.holder(), replica.records.len()), (Some(ONE), 2));
}

#[test]
fn loses_the_session_to_a_newer_holder_in_the_record() {
    for (answer, is_kept) in [(OwnerAnswer::Silent, false), (OwnerAnswer::Gone, true)] {
        let mut replica = Replica::wide();
        replica.come(ONE, "d");
        replica.pass(10_000);
        replica.held_there();
        let said = replica.register(ONE, token("d"));
        let said = replica.owner_says(&said, answer);
        assert_eq!(is_closed(&said, ONE, CloseReason::Evicted), !is_kept, "{answer:?}");
        assert_eq!(throttled(&said).is_none(), is_kept);
        assert_eq!(replica.holder().is_some(), is_kept);
    }
}

#[test]
fn an_orphan_is_said_to_be_offline() {
    let mut replica = Replica::wide();
    replica.held_there();
    let at = replica.at();
    replica.sessions.handle_orphan(&"d".into(), "there".into(), at);
    assert_eq!(statuses(&replica.pass(4_999)), []);
    assert_eq!(statuses(&replica.pass(1)), [DeviceStatus::Offline]);
    let record = replica.record();
    assert_eq!((record.holder.is_none(), record.ended.unwrap().how), (true, Departure::ReplicaLost));
    assert_eq!(replica.sessions.load(), DeviceLoad::default());
}

/// A replica where the device went 3 s ago; it came back elsewhere.
fn moved_from_here() -> Replica {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.close(ONE);
    replica.pass(3_000);
    replica.held_there();
    replica
}

#[test]
fn one_that_came_back_elsewhere_and_went_again_is_debounced_anew() {
    let mut replica = moved_from_here();
    replica.pass(1_000);
    let unix_ms = UNIX_MS + replica.ms;
    replica.records.insert("d".into(), replica.record().released(Departure::TransportLost, unix_ms));
    assert_eq!(statuses(&replica.pass(5_999)), [], "that is the other replica's to say, which has until then");
    assert_eq!(statuses(&replica.pass(1)), [DeviceStatus::Offline], "it did not live to say so");
    let left = replica.sessions.load();
    assert_eq!((left.devices, left.timers), (0, 0));
}

#[test]
fn an_orphan_is_debounced_from_its_replicas_end_on() {
    let mut replica = moved_from_here();
    for at in [0, 1_000] {
        replica.pass(at);
        let at = replica.at();
        replica.sessions.handle_orphan(&"d".into(), "there".into(), at);
    }
    assert_eq!(statuses(&replica.pass(3_999)), []);
    assert_eq!(statuses(&replica.pass(1)), [DeviceStatus::Offline]);
    let left = replica.sessions.load();
    assert_eq!((left.devices, left.timers), (0, 0));
}

#[test]
fn every_table_has_a_bound() {
    let settings = DeviceSettings { sockets_max: 20, devices_max: 2, ..Replica::wide().sessions.settings };
    let mut replica = Replica::new(settings);
    replica.is_store_stuck = true;
    for socket in 0..9 {
        assert_eq!(throttled(&replica.come(SocketId(socket), "d")), None);
    }
    let said = replica.come(SocketId(9), "d");
    assert_eq!(throttled(&said), Some((ThrottleReason::ReconnectRate, SHORT_RETRY_MS)));
    assert_eq!(
        (decided(&said), replica.sessions.load().queued),
        (vec![(SessionOutcome::Refused, SessionReason::Busy)], 8)
    );
    replica.come(SocketId(100), "d100");
    assert_eq!(decided(&replica.come(SocketId(101), "d101")), [(SessionOutcome::Refused, SessionReason::Full)]);
    let at = replica.at();
    for socket in 200..208 {
        replica.sessions.handle_open(SocketId(socket), at).unwrap();
    }
    assert_eq!(replica.sessions.handle_open(SocketId(208), at), Err(TooManySockets));
    // The store never answers: each is answered all the same.
    let said = replica.pass(60_000);
    let answered = said
        .iter()
        .filter(|command| matches!(command, DeviceCommand::Registered { .. } | DeviceCommand::Throttled { .. }));
    assert_eq!(answered.count(), 10);
}
