use super::*;

fn sid() -> Sid {
    Sid::from_str("AAAAAAAAAAAAAAAA").unwrap()
}

fn wire_rooms(selected: BroadcastOptions) -> Option<(Vec<String>, Vec<String>)> {
    to_wire(&selected).map(|opts| (opts.rooms, opts.except))
}

#[test]
fn no_recipients_are_not_sent_as_everyone() {
    assert_eq!(wire_rooms(BroadcastOptions::default()), None);
    let mut everyone = BroadcastOptions::default();
    everyone.add_flag(BroadcastFlags::Broadcast);
    assert_eq!(wire_rooms(everyone), Some((vec![], vec![])));
}

#[test]
fn excludes_the_sender_of_a_broadcast_to_everyone() {
    let mut others = BroadcastOptions::new(sid());
    others.rooms.push("r".into());
    assert_eq!(
        wire_rooms(others.clone()),
        Some((vec!["r".into()], vec![])),
        "a broadcast to a room includes its sender"
    );
    others.add_flag(BroadcastFlags::Broadcast);
    others.except.push("x".into());
    assert_eq!(wire_rooms(others), Some((vec!["r".into()], vec!["x".into(), sid().to_string()])));
}

#[test]
fn addresses_one_socket_by_the_room_of_its_id() {
    assert_eq!(wire_rooms(BroadcastOptions::new(sid())), Some((vec![sid().to_string()], vec![])));
    let mut volatile = BroadcastOptions::new(sid());
    volatile.add_flag(BroadcastFlags::Volatile);
    assert!(to_wire(&volatile).unwrap().flags.volatile());
}
