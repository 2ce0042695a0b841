#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::decisions::Departure;
use crate::ids::SocketId;
use crate::time::Time;

type Told = PeerCommand<&'static str>;

const ASK: Told = PeerCommand::AskSnapshot { peer: "p" };

/// A book, and the roster of its peer `p`.
struct Desk {
    book: PeerDirectory<&'static str>,
    roster: Announcer,
    now: Time,
}

impl Desk {
    fn new() -> Desk {
        Desk::with(PeerSettings::default())
    }

    fn with(settings: PeerSettings) -> Desk {
        Desk { book: PeerDirectory::new(settings), roster: Announcer::new(), now: Time::ZERO }
    }

    /// With socket 1 announced with `a`.
    fn in_step() -> Desk {
        let mut desk = Desk::new();
        desk.join(1, "a");
        desk.seen();
        desk.answer();
        desk.told();
        desk
    }

    fn join(&mut self, socket: u128, method: &str) -> NumberedChange {
        self.roster.join(SocketId(socket), "u".into(), true, method.into(), self.now).unwrap()
    }

    fn seen(&mut self) {
        self.book.handle_seen(&"p", self.roster.seq(), self.now);
    }

    fn change(&mut self, numbered: NumberedChange) {
        self.book.handle_change(&"p", numbered, self.now);
    }

    fn part(&mut self, part: SnapshotPart) {
        self.book.handle_snapshot_part(&"p", part, self.now);
    }

    fn answer(&mut self) {
        for part in self.roster.snapshot(self.now).into_parts(1_000) {
            self.part(part);
        }
    }

    fn lost(&mut self, cause: Departure) {
        self.book.handle_lost(&"p", cause, self.now);
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        self.book.handle_timeout(self.now);
    }

    fn told(&mut self) -> Vec<Told> {
        std::iter::from_fn(|| self.book.next_command()).collect()
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
    let mut desk = Desk::new();
    desk.join(1, "a");
    desk.pass(40);
    desk.seen();
    assert_eq!((desk.told(), desk.book.unsynced(), desk.book.replica(&"p")), (vec![ASK], 1, Some(1)));
    desk.answer();
    assert_eq!(desk.told(), [connect(1), register(1, "a", 40)]);
    assert_eq!((desk.book.unsynced(), desk.book.sockets(), desk.book.poll_timeout()), (0, 1, None));
    assert_eq!(desk.book.owner(SocketId(1)), Some(&"p"));
    let second = desk.join(2, "b");
    desk.change(second);
    let left = desk.roster.leave(SocketId(1), &"a".into()).unwrap();
    desk.change(left);
    let is_gone = desk.roster.gone(SocketId(2), Departure::Closed).unwrap();
    desk.change(is_gone.clone());
    // Once more: it is old.
    desk.change(is_gone);
    desk.seen();
    let expected = [
        connect(2),
        register(2, "b", 0),
        unregister(1, "a"),
        gone(1, Departure::Unregistered),
        gone(2, Departure::Closed),
    ];
    assert_eq!(desk.told(), expected);
    assert_eq!((desk.book.sockets(), desk.book.owner(SocketId(1))), (0, None));
}

#[test]
fn a_change_of_an_unknown_peer_is_nobodys() {
    let mut desk = Desk::new();
    let joined = desk.join(1, "a");
    desk.change(joined);
    assert_eq!((desk.told(), desk.book.unsynced(), desk.book.peers()), (vec![], 0, 0));
    desk.seen();
    assert_eq!(desk.told(), [ASK]);
    desk.answer();
    assert_eq!(desk.told(), [connect(1), register(1, "a", 0)]);
}

#[test]
fn who_does_not_answer_is_asked_again() {
    let mut desk = Desk::new();
    desk.seen();
    assert_eq!((desk.told(), desk.book.poll_timeout()), (vec![ASK], Some(Time::from_millis(500))));
    desk.seen();
    desk.pass(499);
    assert_eq!(desk.told(), []);
    desk.pass(1);
    assert_eq!((desk.told(), desk.book.poll_timeout()), (vec![ASK], Some(Time::from_millis(1_000))));
    desk.lost(Departure::ReplicaLost);
    assert_eq!((desk.book.poll_timeout(), desk.book.peers(), desk.book.unsynced()), (None, 0, 0));
}

#[test]
fn a_hole_is_filled_by_a_snapshot_that_touches_only_what_changed() {
    let mut desk = Desk::in_step();
    let second = desk.join(2, "a");
    desk.change(second);
    let third = desk.join(1, "b");
    desk.change(third);
    desk.told();
    // Lost: 1 gives back `a` and takes `c`, 2 closes, 3 comes.
    desk.roster.leave(SocketId(1), &"a".into()).unwrap();
    desk.join(1, "c");
    desk.roster.gone(SocketId(2), Departure::Closed).unwrap();
    let late = desk.join(3, "a");
    desk.change(late.clone());
    assert_eq!((desk.told(), desk.book.unsynced()), (vec![ASK], 0));
    desk.change(late.clone());
    desk.seen();
    assert_eq!(desk.told(), []);
    desk.answer();
    let expected =
        [gone(2, Departure::TransportLost), unregister(1, "a"), register(1, "c", 0), connect(3), register(3, "a", 0)];
    assert_eq!(desk.told(), expected);
    // Superseded; and the answer to a second question says nothing new.
    desk.change(late);
    desk.answer();
    desk.seen();
    assert_eq!((desk.told(), desk.book.poll_timeout()), (vec![], None));
}

#[test]
fn another_number_in_a_heartbeat_is_a_hole() {
    let mut desk = Desk::in_step();
    desk.join(2, "a");
    desk.seen();
    assert_eq!(desk.told(), [ASK]);
    desk.answer();
    assert_eq!(desk.told(), [connect(2), register(2, "a", 0)]);
}

#[test]
fn a_socket_whose_methods_all_changed_is_still_there() {
    let mut desk = Desk::in_step();
    desk.join(1, "b");
    desk.roster.leave(SocketId(1), &"a".into()).unwrap();
    desk.seen();
    desk.answer();
    assert_eq!(desk.told(), [ASK, unregister(1, "a"), register(1, "b", 0)]);
}

#[test]
fn a_snapshot_with_a_part_missing_is_asked_for_again() {
    let mut desk = Desk::new();
    for socket in 1..=3 {
        desk.join(socket, "a");
    }
    desk.seen();
    desk.told();
    let parts = desk.roster.snapshot(desk.now).into_parts(1);
    assert_eq!(parts.len(), 3);
    desk.pass(100);
    desk.part(parts[0].clone());
    desk.part(parts[2].clone());
    assert_eq!((desk.told(), desk.book.poll_timeout()), (vec![ASK], Some(Time::from_millis(600))));
    // What is left of the broken one breaks nothing more.
    desk.part(parts[1].clone());
    desk.part(parts[2].clone());
    assert_eq!((desk.told(), desk.book.sockets()), (vec![], 0));
    for part in parts {
        desk.part(part);
    }
    assert_eq!((desk.told().len(), desk.book.sockets(), desk.book.poll_timeout()), (6, 3, None));
}

#[test]
fn a_change_between_parts_does_no_harm() {
    let mut desk = Desk::in_step();
    desk.join(2, "a");
    let next = desk.join(3, "a");
    desk.change(next);
    assert_eq!(desk.told(), [ASK]);
    let mut parts = desk.roster.snapshot(desk.now).into_parts(1);
    let rest = parts.split_off(1);
    desk.part(parts.remove(0));
    // In sequence after all: the snapshot that is on the way is behind it.
    let second = SocketChange::Joined { socket: SocketId(2), user: "u".into(), resumable: true, method: "a".into() };
    desk.change(NumberedChange { seq: 2, change: second });
    rest.into_iter().for_each(|part| desk.part(part));
    assert_eq!(desk.told(), [connect(2), register(2, "a", 0)]);
    desk.pass(500);
    desk.answer();
    assert_eq!(desk.told(), [ASK, connect(3), register(3, "a", 500)]);
}

#[test]
fn ages_go_on_while_parts_arrive() {
    let mut desk = Desk::new();
    desk.join(1, "a");
    desk.join(2, "a");
    desk.pass(30);
    desk.seen();
    let parts = desk.roster.snapshot(desk.now).into_parts(1);
    desk.part(parts[0].clone());
    desk.pass(5);
    desk.part(parts[1].clone());
    assert_eq!(desk.told(), [ASK, connect(1), register(1, "a", 35), connect(2), register(2, "a", 30)]);
}

#[test]
fn a_peer_that_is_lost_takes_its_sockets_along() {
    let mut desk = Desk::in_step();
    desk.lost(Departure::ReplicaLost);
    desk.lost(Departure::ReplicaLost);
    assert_eq!(desk.told(), [gone(1, Departure::ReplicaLost)]);
    assert_eq!((desk.book.peers(), desk.book.sockets(), desk.book.replica(&"p")), (0, 0, None));
    // Whatever comes late of a snapshot finds nobody.
    desk.answer();
    assert_eq!((desk.told(), desk.book.peers()), (vec![], 0));
}

#[test]
fn a_silent_peer_that_is_lost_is_news_of_its_sockets() {
    let mut desk = Desk::in_step();
    desk.lost(Departure::ReplicaSilent);
    desk.lost(Departure::ReplicaSilent);
    assert_eq!(desk.told(), [gone(1, Departure::ReplicaSilent)]);
    assert_eq!((desk.book.peers(), desk.book.sockets(), desk.book.unsynced()), (1, 0, 0));
    assert_eq!((desk.book.owner(SocketId(1)), desk.book.replica(&"p")), (None, Some(1)));
    desk.lost(Departure::ReplicaLost);
    assert_eq!((desk.told(), desk.book.peers()), (vec![gone(1, Departure::ReplicaLost)], 0));
}

#[test]
fn a_silent_peer_that_comes_back_tells_what_it_still_has() {
    let mut desk = Desk::in_step();
    let second = desk.join(2, "a");
    desk.change(second);
    desk.told();
    desk.lost(Departure::ReplicaSilent);
    desk.told();
    desk.roster.gone(SocketId(2), Departure::Closed).unwrap();
    let third = desk.join(3, "a");
    // What it says counts again when it is seen, and not before.
    desk.change(third);
    desk.answer();
    assert_eq!((desk.told(), desk.book.poll_timeout()), (vec![], None));
    desk.pass(70);
    desk.seen();
    assert_eq!((desk.told(), desk.book.unsynced()), (vec![ASK], 1));
    desk.answer();
    let expected =
        [gone(2, Departure::TransportLost), connect(1), register(1, "a", 70), connect(3), register(3, "a", 70)];
    assert_eq!((desk.told(), desk.book.unsynced()), (expected.into(), 0));
}

#[test]
fn a_socket_at_another_peer_is_nobody_elses() {
    let mut desk = Desk::in_step();
    desk.book.handle_seen(&"q", 0, desk.now);
    let empty = Snapshot { seq: 0, sockets: Vec::new() }.into_parts(1).remove(0);
    desk.book.handle_snapshot_part(&"q", empty, desk.now);
    desk.told();
    let taken = SocketChange::Joined { socket: SocketId(1), user: "u".into(), resumable: true, method: "b".into() };
    desk.book.handle_change(&"q", NumberedChange { seq: 1, change: taken.clone() }, desk.now);
    assert_eq!((desk.told(), desk.book.refused()), (vec![], 1));
    assert_eq!((desk.book.owner(SocketId(1)), desk.book.replica(&"q")), (Some(&"p"), Some(2)));
    // While the first owner is silent it may well have come to another one, and stays there.
    desk.lost(Departure::ReplicaSilent);
    desk.book.handle_change(&"q", NumberedChange { seq: 2, change: taken }, desk.now);
    desk.told();
    desk.lost(Departure::ReplicaLost);
    assert_eq!((desk.told(), desk.book.owner(SocketId(1))), (vec![], Some(&"q")));
}

#[test]
fn another_user_is_another_socket() {
    let mut desk = Desk::in_step();
    let other = desk.roster.join(SocketId(1), "v".into(), true, "a".into(), desk.now).unwrap();
    desk.change(other);
    let told = desk.told();
    assert_eq!((told.len(), &told[0]), (3, &gone(1, Departure::Closed)));
}

#[test]
fn numbers_are_small_and_used_again() {
    let mut book: PeerDirectory<u8> = PeerDirectory::new(PeerSettings { peers_max: 3, ..PeerSettings::default() });
    for peer in [7, 8, 9, 10] {
        book.handle_seen(&peer, 0, Time::ZERO);
    }
    let numbers = |book: &PeerDirectory<u8>| [7, 8, 9, 10].map(|peer| book.replica(&peer));
    assert_eq!((numbers(&book), book.refused()), ([Some(1), Some(2), Some(3), None], 1));
    book.handle_lost(&8, Departure::ReplicaLost, Time::ZERO);
    book.handle_seen(&10, 0, Time::ZERO);
    assert_eq!(numbers(&book), [Some(1), None, Some(3), Some(2)]);
    // The one that has been silent longest makes room.
    book.handle_lost(&9, Departure::ReplicaSilent, Time::from_millis(1));
    book.handle_lost(&7, Departure::ReplicaSilent, Time::from_millis(2));
    book.handle_lost(&9, Departure::ReplicaSilent, Time::from_millis(3));
    book.handle_seen(&8, 0, Time::from_millis(4));
    assert_eq!(numbers(&book), [Some(1), Some(3), None, Some(2)]);
}

#[test]
fn what_is_over_a_bound_is_counted_and_sync_goes_on() {
    let mut desk = Desk::with(PeerSettings {
        sockets_per_peer_max: 2,
        methods_per_socket_max: 2,
        method_bytes_max: 3,
        user_bytes_max: 1,
        ..PeerSettings::default()
    });
    desk.seen();
    desk.answer();
    for (socket, method) in [(1, "a"), (1, "b"), (1, "c"), (2, "long"), (2, ""), (2, "abc"), (3, "a")] {
        let joined = desk.join(socket, method);
        desk.change(joined);
    }
    let user = desk.roster.join(SocketId(1), "uu".into(), true, "a".into(), desk.now).unwrap();
    desk.change(user);
    let taken = [connect(1), register(1, "a", 0), register(1, "b", 0), connect(2), register(2, "abc", 0)];
    let told = desk.told();
    assert_eq!(told[1..6], taken);
    assert_eq!(told[6..], [gone(1, Departure::Closed)]);
    assert_eq!((desk.book.refused(), desk.book.sockets()), (5, 1));
    // In a snapshot the same is refused, and one more is in a place that is free by now.
    desk.book.handle_seen(&"p", 99, desk.now);
    desk.answer();
    assert_eq!(desk.told(), [ASK, connect(3), register(3, "a", 0)]);
    assert_eq!(desk.book.refused(), 8);
    desk.seen();
    assert_eq!(desk.told(), []);
}

#[test]
fn a_snapshot_without_end_is_bounded() {
    let mut desk = Desk::with(PeerSettings { sockets_per_peer_max: 3, ..PeerSettings::default() });
    desk.seen();
    let announced = |socket: u32| {
        let methods: Vec<(Arc<str>, Duration)> = vec![("a".into(), Duration::ZERO)];
        AnnouncedSocket { socket: SocketId(socket.into()), user: "u".into(), resumable: false, methods }
    };
    for index in 0..10 {
        desk.part(SnapshotPart { seq: 1, index, last: index == 9, sockets: vec![announced(index)] });
    }
    assert_eq!((desk.book.sockets(), desk.book.refused(), desk.book.unsynced()), (3, 7, 0));
}
