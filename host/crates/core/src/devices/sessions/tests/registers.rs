//! Registers that one replica decides alone: gates, refreshes, pairing, heartbeats, `settle`.

use super::*;

#[test]
fn asks_no_later_gate_after_a_refusal() {
    let mut replica = Replica::new(DeviceSettings::default());
    replica.is_store_stuck = true;
    replica.is_token_good = false;
    let said = replica.come(ONE, "d");
    let error = DeviceCommand::AuthError { socket: ONE, error: AuthError::BadToken };
    assert!(said.contains(&error) && is_closed(&said, ONE, CloseReason::Refused));
    assert!(!said.iter().any(|command| matches!(command, DeviceCommand::Read { .. })));

    replica.is_token_good = true;
    let come = |replica: &mut Replica, socket: u128| replica.come(SocketId(socket), "d");
    for socket in 10..15 {
        assert_eq!(throttled(&come(&mut replica, socket)), None);
    }
    for socket in 15..29 {
        let said = come(&mut replica, socket);
        assert!(matches!(throttled(&said), Some((ThrottleReason::ReconnectRate, _))), "{said:?}");
        assert!(matches!(said.first(), Some(DeviceCommand::CheckToken { .. })));
    }

    let throttle = Replica::wide().sessions.settings.throttle;
    let mut replica = Replica::new(DeviceSettings { throttle, ..DeviceSettings::default() });
    for socket in 10..30 {
        assert!(matches!(come(&mut replica, socket).first(), Some(DeviceCommand::CheckToken { .. })));
    }
    let said = come(&mut replica, 30);
    assert_eq!(throttled(&said), Some((ThrottleReason::ConnectRate, 60_000)));
    assert_eq!(
        (decided(&said), said.len()),
        (vec![(SessionOutcome::Refused, SessionReason::Flapping)], 3),
        "its token is not looked at"
    );
    assert_eq!(replica.holder(), Some(SocketId(10)));
}

#[test]
fn a_register_on_the_same_socket_is_a_refresh() {
    let mut replica = Replica::new(DeviceSettings::default());
    assert_eq!(decided(&replica.come(ONE, "d")), [(SessionOutcome::Accepted, SessionReason::Free)]);
    let epoch = replica.record().epoch;
    for _ in 0..100 {
        let said = replica.register(ONE, token("d"));
        assert!(is_registered(&said, ONE) && said.len() == 2, "past all gates: {said:?}");
    }
    assert_eq!(replica.record().epoch, epoch, "a client cannot make it write all the time");
    replica.pass(5_000);
    replica.register(ONE, token("d"));
    assert_eq!(replica.record().events[0].what, crate::decisions::Happening::Refreshed);
    let said = replica.register(ONE, token("other"));
    let error = DeviceCommand::AuthError { socket: ONE, error: AuthError::OtherDevice };
    assert_eq!((said.first(), said.len()), (Some(&error), 2), "and it stays: {said:?}");
    assert_eq!(replica.holder(), Some(ONE));
}

#[test]
fn closes_a_socket_that_does_not_register() {
    let mut replica = Replica::wide();
    let at = replica.at();
    replica.sessions.handle_open(ONE, at).unwrap();
    assert_eq!(replica.pass(9_999), []);
    assert!(is_closed(&replica.pass(1), ONE, CloseReason::NeverRegistered));
    assert_eq!(replica.register(ONE, token("d")), [], "it was told to close");
    assert_eq!((replica.close(ONE), replica.sessions.load()), (vec![], DeviceLoad::default()));
}

#[test]
fn a_newcomer_within_the_window_is_refused_and_the_holder_untouched() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.pass(1_000);
    let said = replica.come(TWO, "d");
    assert_eq!(throttled(&said), Some((ThrottleReason::SessionSettle, 1_500)));
    assert!(is_closed(&said, TWO, CloseReason::Refused));
    assert_eq!((replica.holder(), replica.record().refusals), (Some(ONE), 1));
    // Its end means nothing.
    replica.heartbeat(ONE);
    assert_eq!((replica.close(TWO), replica.pass(20_000)), (vec![], vec![]));
    let said = replica.come(THREE, "d");
    assert!(is_registered(&said, THREE) && is_closed(&said, ONE, CloseReason::Evicted));
    assert_eq!((replica.close(ONE), statuses(&replica.pass(20_000))), (vec![], vec![]));
    assert_eq!((replica.holder(), replica.record().flips), (Some(THREE), 1));
}

#[test]
fn pairing_arms_and_checks_settle() {
    let mut replica = Replica::wide();
    let at = replica.at();
    for socket in [ONE, TWO, THREE] {
        replica.sessions.handle_open(socket, at).unwrap();
    }
    let said = replica.register(ONE, pairing());
    assert_eq!((is_registered(&said, ONE), statuses(&said)), (true, vec![DeviceStatus::Provisioning]));
    assert_eq!(throttled(&replica.register(TWO, pairing())), Some((ThrottleReason::SessionSettle, 2_500)));
    // Paired, it needs its token.
    let paired = replica.record().paired_with(Some("u".into()), UNIX_MS);
    replica.records.insert("d".into(), paired);
    let said = replica.register(THREE, pairing());
    assert!(said.contains(&DeviceCommand::AuthError { socket: THREE, error: AuthError::AlreadyPaired }));
    // A token that was made for whoever brought another code proves nothing, the one of its own code does.
    replica.pass(3_000);
    replica.code_of_token = Some("another's");
    let said = replica.come(SocketId(5), "d");
    assert!(said.contains(&DeviceCommand::AuthError { socket: SocketId(5), error: AuthError::BadToken }));
    replica.code_of_token = Some("code");
    assert!(is_registered(&replica.come(SocketId(6), "d"), SocketId(6)));
    replica.code_of_token = None;
    replica.pass(3_000);
    assert!(is_registered(&replica.come(SocketId(4), "d"), SocketId(4)));
    assert_eq!(replica.record().status, DeviceStatus::Online);
}

#[test]
fn a_blocked_device_is_not_let_in() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    let blocked = replica.record().blocked(UNIX_MS + replica.ms);
    let at = replica.at();
    replica.sessions.handle_evict(&"d".into(), blocked.epoch, ONE, 0, at);
    replica.records.insert("d".into(), blocked);
    replica.answer();
    assert!(is_closed(&std::mem::take(&mut replica.said), ONE, CloseReason::Evicted));
    let said = replica.come(TWO, "d");
    assert!(said.contains(&DeviceCommand::AuthError { socket: TWO, error: AuthError::Blocked }));
    assert!(is_closed(&said, TWO, CloseReason::Refused));
}

#[test]
fn a_record_that_cannot_be_read_is_the_trouble_of_its_device_alone() {
    let mut replica = Replica::wide();
    replica.is_store_stuck = true;
    let said = replica.come(ONE, "d");
    let Some(op) = said.iter().find_map(|command| match command {
        DeviceCommand::Read { op, .. } => Some(*op),
        _ => None,
    }) else {
        panic!("{said:?}")
    };
    let at = replica.at();
    replica.sessions.handle_unreadable(&"d".into(), op, at);
    replica.is_store_stuck = false;
    replica.answer();
    let said = std::mem::take(&mut replica.said);
    assert_eq!(throttled(&said), Some((ThrottleReason::ReconnectRate, SHORT_RETRY_MS)));
    assert!(is_registered(&replica.come(TWO, "d"), TWO));
    assert!(replica.sessions.holder("d").is_some_and(|holder| holder.is_sure), "the store is there");
}

#[test]
fn heartbeats_count_from_the_holder_only() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    let at = replica.at();
    replica.sessions.handle_open(TWO, at).unwrap();
    let said = replica.heartbeat(TWO);
    let Some(DeviceCommand::HeartbeatRefused { socket: TWO, holder: Some(holder), .. }) = said.first() else {
        panic!("{said:?}")
    };
    assert_eq!(holder.socket, ONE);
    replica.pass(44_000);
    assert_eq!(replica.heartbeat(ONE), []);
    replica.heartbeat(TWO);
    assert_eq!(statuses(&replica.pass(44_999)), []);
    let said = replica.pass(1);
    assert_eq!(
        (statuses(&said), decided(&said)),
        (vec![DeviceStatus::Offline], vec![(SessionOutcome::Offline, SessionReason::Silent)])
    );
    assert_eq!(replica.holder(), Some(ONE), "the session stays");
    assert_eq!(statuses(&replica.heartbeat(ONE)), [DeviceStatus::Online]);
}

#[test]
fn offline_after_the_debounce_if_nobody_came() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    assert_eq!((replica.close(ONE), replica.holder()), (vec![], None));
    assert_eq!(statuses(&replica.pass(4_999)), []);
    assert!(is_registered(&replica.come(TWO, "d"), TWO));
    replica.heartbeat(TWO);
    assert_eq!(statuses(&replica.pass(20_000)), []);
    replica.close(TWO);
    assert_eq!(decided(&replica.pass(5_000)), [(SessionOutcome::Offline, SessionReason::HolderGone)]);
    let left = replica.sessions.load();
    assert_eq!((left.devices, left.timers), (0, 0));
}

#[test]
fn closes_the_former_holder_after_a_hand_over() {
    let mut replica = Replica::wide();
    replica.verdict = Some(SettleVerdict::Beside(2_000));
    replica.come(ONE, "d");
    let said = replica.come(TWO, "d");
    assert!(is_registered(&said, TWO) && !is_closed(&said, ONE, CloseReason::Evicted));
    assert!(matches!(replica.heartbeat(ONE)[..], [DeviceCommand::HeartbeatRefused { .. }]));
    assert_eq!(replica.pass(1_999), []);
    assert!(is_closed(&replica.pass(1), ONE, CloseReason::Evicted));
    assert_eq!((replica.close(ONE), replica.holder()), (vec![], Some(TWO)));
    // However many: the oldest is closed at once.
    let sockets: Vec<SocketId> = (10..16).map(SocketId).collect();
    let said: Vec<Vec<DeviceCommand>> = sockets.iter().map(|socket| replica.come(*socket, "d")).collect();
    assert!(is_closed(&said[4], TWO, CloseReason::Evicted) && is_closed(&said[5], sockets[0], CloseReason::Evicted));
}

#[test]
fn accepts_a_newcomer_when_the_holder_is_gone() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.holds_settle = true;
    replica.come(TWO, "d");
    replica.close(ONE);
    let (at, ask) = (replica.at(), replica.asked.unwrap());
    replica.sessions.handle_verdict(&"d".into(), ask, SettleVerdict::Refuse(60_000), None, at);
    replica.answer();
    assert!(is_registered(&replica.said, TWO));
    assert_eq!((replica.holder(), replica.record().flips), (Some(TWO), 0));
}

#[test]
fn answers_by_the_native_rule_when_settle_does_not_answer() {
    let mut replica = Replica::wide();
    replica.come(ONE, "d");
    replica.holds_settle = true;
    replica.come(TWO, "d");
    // Asked when the holder was new, answered by what was known then.
    assert_eq!(throttled(&replica.pass(5_000)), Some((ThrottleReason::SessionSettle, 2_500)));
    let (at, ask) = (replica.at(), replica.asked.unwrap());
    replica.sessions.handle_verdict(&"d".into(), ask, SettleVerdict::Accept, None, at);
    replica.answer();
    assert_eq!((replica.said.len(), replica.holder()), (0, Some(ONE)), "too late");
}
