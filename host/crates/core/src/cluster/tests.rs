#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::decisions::Departure;
use crate::ids::SocketId;
use crate::time::Time;

type Told = PeerCommand<&'static str>;

const ASK: Told = PeerCommand::AskSnapshot { peer: "p" };

/// A directory, and the announcer of its peer `p`.
struct Harness {
    directory: PeerDirectory<&'static str>,
    announcer: Announcer,
    now: Time,
}

impl Harness {
    fn new() -> Harness {
        Harness::with(PeerSettings::default())
    }

    fn with(settings: PeerSettings) -> Harness {
        Harness { directory: PeerDirectory::new(settings), announcer: Announcer::new(), now: Time::ZERO }
    }

    /// With socket 1 announced with `a`.
    fn in_step() -> Harness {
        let mut harness = Harness::new();
        harness.join(1, "a");
        harness.seen();
        harness.answer();
        harness.told();
        harness
    }

    fn join(&mut self, socket: u128, method: &str) -> NumberedChange {
        self.announcer.join(SocketId(socket), "u".into(), true, method.into(), self.now).unwrap()
    }

    fn seen(&mut self) {
        self.directory.handle_seen(&"p", self.announcer.seq(), self.now);
    }

    fn change(&mut self, numbered: NumberedChange) {
        self.directory.handle_change(&"p", numbered, self.now);
    }

    fn part(&mut self, part: SnapshotPart) {
        self.directory.handle_snapshot_part(&"p", part, self.now);
    }

    fn answer(&mut self) {
        for part in self.announcer.snapshot(self.now).into_parts(1_000) {
            self.part(part);
        }
    }

    fn lost(&mut self, cause: Departure) {
        self.directory.handle_lost(&"p", cause, self.now);
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        self.directory.handle_timeout(self.now);
    }

    fn told(&mut self) -> Vec<Told> {
        std::iter::from_fn(|| self.directory.next_command()).collect()
    }
}

fn connect(socket: u128) -> Told {
    PeerCommand::Connect { socket: SocketId(socket), user: "u".into(), replica: 1, resumable: true }
}

fn register(socket: u128, method: &str, age_ms: u64) -> Told {
    let age = Duration::from_millis(age_ms);
    PeerCommand::Register { socket: SocketId(socket), user: "u".into(), method: method.into(), age }
}

fn unregister(socket: u128, method: &str) -> Told {
    PeerCommand::Unregister { socket: SocketId(socket), user: "u".into(), method: method.into() }
}

fn gone(socket: u128, cause: Departure) -> Told {
    PeerCommand::Gone { socket: SocketId(socket), user: "u".into(), cause }
}

#[test]
fn a_new_peer_is_asked_and_then_followed() {
    let mut harness = Harness::new();
    harness.join(1, "a");
    harness.pass(40);
    harness.seen();
    assert_eq!(
        (harness.told(), harness.directory.unsynced(), harness.directory.replica(&"p")),
        (vec![ASK], 1, Some(1))
    );
    harness.answer();
    assert_eq!(harness.told(), [connect(1), register(1, "a", 40)]);
    assert_eq!(
        (harness.directory.unsynced(), harness.directory.sockets(), harness.directory.poll_timeout()),
        (0, 1, None)
    );
    assert_eq!(harness.directory.owner(SocketId(1)), Some(&"p"));
    let second = harness.join(2, "b");
    harness.change(second);
    let left = harness.announcer.leave(SocketId(1), &"a".into()).unwrap();
    harness.change(left);
    let is_gone = harness.announcer.gone(SocketId(2), Departure::Closed).unwrap();
    harness.change(is_gone.clone());
    // Once more: it is old.
    harness.change(is_gone);
    harness.seen();
    let expected = [
        connect(2),
        register(2, "b", 0),
        unregister(1, "a"),
        gone(1, Departure::Unregistered),
        gone(2, Departure::Closed),
    ];
    assert_eq!(harness.told(), expected);
    assert_eq!((harness.directory.sockets(), harness.directory.owner(SocketId(1))), (0, None));
}

#[test]
fn drops_a_change_of_an_unknown_peer() {
    let mut harness = Harness::new();
    let joined = harness.join(1, "a");
    harness.change(joined);
    assert_eq!((harness.told(), harness.directory.unsynced(), harness.directory.peers()), (vec![], 0, 0));
    harness.seen();
    assert_eq!(harness.told(), [ASK]);
    harness.answer();
    assert_eq!(harness.told(), [connect(1), register(1, "a", 0)]);
}

#[test]
fn asks_a_peer_again_that_does_not_answer() {
    let mut harness = Harness::new();
    harness.seen();
    assert_eq!((harness.told(), harness.directory.poll_timeout()), (vec![ASK], Some(Time::from_millis(500))));
    harness.seen();
    harness.pass(499);
    assert_eq!(harness.told(), []);
    harness.pass(1);
    assert_eq!((harness.told(), harness.directory.poll_timeout()), (vec![ASK], Some(Time::from_millis(1_000))));
    harness.lost(Departure::ReplicaLost);
    assert_eq!(
        (harness.directory.poll_timeout(), harness.directory.peers(), harness.directory.unsynced()),
        (None, 0, 0)
    );
}

#[test]
fn fills_a_gap_by_a_snapshot_and_touches_only_what_changed() {
    let mut harness = Harness::in_step();
    let second = harness.join(2, "a");
    harness.change(second);
    let third = harness.join(1, "b");
    harness.change(third);
    harness.told();
    // Lost: 1 gives back `a` and takes `c`, 2 closes, 3 comes.
    harness.announcer.leave(SocketId(1), &"a".into()).unwrap();
    harness.join(1, "c");
    harness.announcer.gone(SocketId(2), Departure::Closed).unwrap();
    let late = harness.join(3, "a");
    harness.change(late.clone());
    assert_eq!((harness.told(), harness.directory.unsynced()), (vec![ASK], 0));
    harness.change(late.clone());
    harness.seen();
    assert_eq!(harness.told(), []);
    harness.answer();
    let expected =
        [gone(2, Departure::TransportLost), unregister(1, "a"), register(1, "c", 0), connect(3), register(3, "a", 0)];
    assert_eq!(harness.told(), expected);
    // Superseded; and the answer to a second question says nothing new.
    harness.change(late);
    harness.answer();
    harness.seen();
    assert_eq!((harness.told(), harness.directory.poll_timeout()), (vec![], None));
}

#[test]
fn takes_another_number_in_a_heartbeat_for_a_gap() {
    let mut harness = Harness::in_step();
    harness.join(2, "a");
    harness.seen();
    assert_eq!(harness.told(), [ASK]);
    harness.answer();
    assert_eq!(harness.told(), [connect(2), register(2, "a", 0)]);
}

#[test]
fn a_socket_whose_methods_all_changed_is_still_there() {
    let mut harness = Harness::in_step();
    harness.join(1, "b");
    harness.announcer.leave(SocketId(1), &"a".into()).unwrap();
    harness.seen();
    harness.answer();
    assert_eq!(harness.told(), [ASK, unregister(1, "a"), register(1, "b", 0)]);
}

#[test]
fn a_snapshot_with_a_part_missing_is_asked_for_again() {
    let mut harness = Harness::new();
    for socket in 1..=3 {
        harness.join(socket, "a");
    }
    harness.seen();
    harness.told();
    let parts = harness.announcer.snapshot(harness.now).into_parts(1);
    assert_eq!(parts.len(), 3);
    harness.pass(100);
    harness.part(parts[0].clone());
    harness.part(parts[2].clone());
    assert_eq!((harness.told(), harness.directory.poll_timeout()), (vec![ASK], Some(Time::from_millis(600))));
    // What is left of the broken one breaks nothing more.
    harness.part(parts[1].clone());
    harness.part(parts[2].clone());
    assert_eq!((harness.told(), harness.directory.sockets()), (vec![], 0));
    for part in parts {
        harness.part(part);
    }
    assert_eq!((harness.told().len(), harness.directory.sockets(), harness.directory.poll_timeout()), (6, 3, None));
}

#[test]
fn a_change_between_parts_does_no_harm() {
    let mut harness = Harness::in_step();
    harness.join(2, "a");
    let next = harness.join(3, "a");
    harness.change(next);
    assert_eq!(harness.told(), [ASK]);
    let mut parts = harness.announcer.snapshot(harness.now).into_parts(1);
    let rest = parts.split_off(1);
    harness.part(parts.remove(0));
    // In sequence after all: the snapshot that is on the way is behind it.
    let second = SocketChange::Joined { socket: SocketId(2), user: "u".into(), resumable: true, method: "a".into() };
    harness.change(NumberedChange { seq: 2, change: second });
    rest.into_iter().for_each(|part| harness.part(part));
    assert_eq!(harness.told(), [connect(2), register(2, "a", 0)]);
    harness.pass(500);
    harness.answer();
    assert_eq!(harness.told(), [ASK, connect(3), register(3, "a", 500)]);
}

#[test]
fn ages_go_on_while_parts_arrive() {
    let mut harness = Harness::new();
    harness.join(1, "a");
    harness.join(2, "a");
    harness.pass(30);
    harness.seen();
    let parts = harness.announcer.snapshot(harness.now).into_parts(1);
    harness.part(parts[0].clone());
    harness.pass(5);
    harness.part(parts[1].clone());
    assert_eq!(harness.told(), [ASK, connect(1), register(1, "a", 35), connect(2), register(2, "a", 30)]);
}

#[test]
fn a_peer_that_is_lost_takes_its_sockets_along() {
    let mut harness = Harness::in_step();
    harness.lost(Departure::ReplicaLost);
    harness.lost(Departure::ReplicaLost);
    assert_eq!(harness.told(), [gone(1, Departure::ReplicaLost)]);
    assert_eq!((harness.directory.peers(), harness.directory.sockets(), harness.directory.replica(&"p")), (0, 0, None));
    // Whatever comes late of a snapshot finds nobody.
    harness.answer();
    assert_eq!((harness.told(), harness.directory.peers()), (vec![], 0));
}

#[test]
fn a_silent_peer_that_is_lost_is_news_of_its_sockets() {
    let mut harness = Harness::in_step();
    harness.lost(Departure::ReplicaSilent);
    harness.lost(Departure::ReplicaSilent);
    assert_eq!(harness.told(), [gone(1, Departure::ReplicaSilent)]);
    assert_eq!((harness.directory.peers(), harness.directory.sockets(), harness.directory.unsynced()), (1, 0, 0));
    assert_eq!((harness.directory.owner(SocketId(1)), harness.directory.replica(&"p")), (None, Some(1)));
    harness.lost(Departure::ReplicaLost);
    assert_eq!((harness.told(), harness.directory.peers()), (vec![gone(1, Departure::ReplicaLost)], 0));
}

#[test]
fn a_silent_peer_that_comes_back_tells_what_it_still_has() {
    let mut harness = Harness::in_step();
    let second = harness.join(2, "a");
    harness.change(second);
    harness.told();
    harness.lost(Departure::ReplicaSilent);
    harness.told();
    harness.announcer.gone(SocketId(2), Departure::Closed).unwrap();
    let third = harness.join(3, "a");
    // What it says counts again when it is seen, and not before.
    harness.change(third);
    harness.answer();
    assert_eq!((harness.told(), harness.directory.poll_timeout()), (vec![], None));
    harness.pass(70);
    harness.seen();
    assert_eq!((harness.told(), harness.directory.unsynced()), (vec![ASK], 1));
    harness.answer();
    let expected =
        [gone(2, Departure::TransportLost), connect(1), register(1, "a", 70), connect(3), register(3, "a", 70)];
    assert_eq!((harness.told(), harness.directory.unsynced()), (expected.into(), 0));
}

#[test]
fn refuses_a_socket_that_another_peer_owns() {
    let mut harness = Harness::in_step();
    harness.directory.handle_seen(&"q", 0, harness.now);
    let empty = Snapshot { seq: 0, sockets: Vec::new() }.into_parts(1).remove(0);
    harness.directory.handle_snapshot_part(&"q", empty, harness.now);
    harness.told();
    let taken = SocketChange::Joined { socket: SocketId(1), user: "u".into(), resumable: true, method: "b".into() };
    harness.directory.handle_change(&"q", NumberedChange { seq: 1, change: taken.clone() }, harness.now);
    assert_eq!((harness.told(), harness.directory.refused()), (vec![], 1));
    assert_eq!((harness.directory.owner(SocketId(1)), harness.directory.replica(&"q")), (Some(&"p"), Some(2)));
    // While the first owner is silent it may well have come to another one, and stays there.
    harness.lost(Departure::ReplicaSilent);
    harness.directory.handle_change(&"q", NumberedChange { seq: 2, change: taken }, harness.now);
    harness.told();
    harness.lost(Departure::ReplicaLost);
    assert_eq!((harness.told(), harness.directory.owner(SocketId(1))), (vec![], Some(&"q")));
}

#[test]
fn another_user_is_another_socket() {
    let mut harness = Harness::in_step();
    let other = harness.announcer.join(SocketId(1), "v".into(), true, "a".into(), harness.now).unwrap();
    harness.change(other);
    let told = harness.told();
    assert_eq!((told.len(), &told[0]), (3, &gone(1, Departure::Closed)));
}

#[test]
fn numbers_are_small_and_used_again() {
    let mut directory: PeerDirectory<u8> = PeerDirectory::new(PeerSettings { peers_max: 3, ..PeerSettings::default() });
    for peer in [7, 8, 9, 10] {
        directory.handle_seen(&peer, 0, Time::ZERO);
    }
    let numbers = |directory: &PeerDirectory<u8>| [7, 8, 9, 10].map(|peer| directory.replica(&peer));
    assert_eq!((numbers(&directory), directory.refused()), ([Some(1), Some(2), Some(3), None], 1));
    directory.handle_lost(&8, Departure::ReplicaLost, Time::ZERO);
    directory.handle_seen(&10, 0, Time::ZERO);
    assert_eq!(numbers(&directory), [Some(1), None, Some(3), Some(2)]);
    // The one that has been silent longest makes room.
    directory.handle_lost(&9, Departure::ReplicaSilent, Time::from_millis(1));
    directory.handle_lost(&7, Departure::ReplicaSilent, Time::from_millis(2));
    directory.handle_lost(&9, Departure::ReplicaSilent, Time::from_millis(3));
    directory.handle_seen(&8, 0, Time::from_millis(4));
    assert_eq!(numbers(&directory), [Some(1), Some(3), None, Some(2)]);
}

#[test]
fn counts_what_exceeds_a_bound_and_stays_in_step() {
    let mut harness = Harness::with(PeerSettings {
        sockets_per_peer_max: 2,
        methods_per_socket_max: 2,
        method_bytes_max: 3,
        user_bytes_max: 1,
        ..PeerSettings::default()
    });
    harness.seen();
    harness.answer();
    for (socket, method) in [(1, "a"), (1, "b"), (1, "c"), (2, "long"), (2, ""), (2, "abc"), (3, "a")] {
        let joined = harness.join(socket, method);
        harness.change(joined);
    }
    let user = harness.announcer.join(SocketId(1), "uu".into(), true, "a".into(), harness.now).unwrap();
    harness.change(user);
    let taken = [connect(1), register(1, "a", 0), register(1, "b", 0), connect(2), register(2, "abc", 0)];
    let told = harness.told();
    assert_eq!(told[1..6], taken);
    assert_eq!(told[6..], [gone(1, Departure::Closed)]);
    assert_eq!((harness.directory.refused(), harness.directory.sockets()), (5, 1));
    // In a snapshot the same is refused, and one more is in a place that is free by now.
    harness.directory.handle_seen(&"p", 99, harness.now);
    harness.answer();
    assert_eq!(harness.told(), [ASK, connect(3), register(3, "a", 0)]);
    assert_eq!(harness.directory.refused(), 8);
    harness.seen();
    assert_eq!(harness.told(), []);
}

#[test]
fn a_snapshot_without_end_is_bounded() {
    let mut harness = Harness::with(PeerSettings { sockets_per_peer_max: 3, ..PeerSettings::default() });
    harness.seen();
    let announced = |socket: u32| {
        let methods: Vec<(Arc<str>, Duration)> = vec![("a".into(), Duration::ZERO)];
        AnnouncedSocket { socket: SocketId(socket.into()), user: "u".into(), resumable: false, methods }
    };
    for index in 0..10 {
        harness.part(SnapshotPart { seq: 1, index, last: index == 9, sockets: vec![announced(index)] });
    }
    assert_eq!((harness.directory.sockets(), harness.directory.refused(), harness.directory.unsynced()), (3, 7, 0));
}
