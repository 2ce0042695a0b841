//! The machine of [`Peers`] under a clock of the test's own.

use super::*;

const TIMING: Timing = Timing {
    lost_after: Duration::from_secs(3),
    link_lost_after: Duration::from_millis(1_500),
    gone_after: Duration::from_millis(1_000),
};

fn at(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn events(peers: &mut Peers) -> Vec<PeerEvent> {
    std::iter::from_fn(|| peers.next_event()).collect()
}

fn lost(peer: &str, loss: Loss) -> PeerEvent {
    PeerEvent::Lost { peer: peer.to_owned(), loss }
}

fn heard(peer: &str, revision: u64) -> PeerEvent {
    PeerEvent::Heard { peer: peer.to_owned(), revision }
}

fn look(peers: &mut Peers, total: u64, each: &[(&str, u64)], ms: u64) {
    let each: Vec<_> = each.iter().map(|(uid, count)| ((*uid).to_owned(), *count)).collect();
    peers.handle_subscribers(total, &each, at(ms));
}

/// Linked, and one peer `a` that is subscribed.
fn linked() -> Peers {
    let mut peers = Peers::new(TIMING);
    peers.handle_echo(at(0));
    assert_eq!(peers.handle_heartbeat("a", 1, 0, at(0)), HeartbeatOutcome::Steady);
    look(&mut peers, 2, &[("a", 1)], 10);
    events(&mut peers);
    peers
}

#[test]
fn the_link_is_up_when_the_own_heartbeat_comes_back() {
    let mut peers = Peers::new(TIMING);
    assert!(!peers.is_linked());
    peers.handle_echo(at(5));
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: true }]);
    peers.handle_echo(at(500));
    peers.handle_timeout(at(1_999));
    assert_eq!(events(&mut peers), []);
    peers.handle_timeout(at(2_000));
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: false }]);
    peers.handle_interrupted(at(0));
    assert_eq!(events(&mut peers), [], "it is down already");
}

#[test]
fn the_second_count_finds_a_killed_peer() {
    let mut peers = linked();
    look(&mut peers, 1, &[("a", 0)], 110);
    assert!(peers.is_suspicious());
    assert_eq!(events(&mut peers), []);
    look(&mut peers, 1, &[("a", 0)], 209);
    assert_eq!(events(&mut peers), [], "too soon after the first");
    look(&mut peers, 1, &[("a", 0)], 210);
    assert_eq!(events(&mut peers), [lost("a", Loss::Killed)]);
    look(&mut peers, 1, &[("a", 0)], 260);
    assert_eq!(events(&mut peers), [], "once");
}

#[test]
fn does_not_lose_a_peer_that_reconnects_between_two_counts() {
    let mut peers = linked();
    look(&mut peers, 1, &[("a", 0)], 110);
    look(&mut peers, 2, &[("a", 1)], 150);
    look(&mut peers, 1, &[("a", 0)], 210);
    assert_eq!(events(&mut peers), []);
}

#[test]
fn finds_a_peer_that_is_killed_before_the_first_count() {
    let mut peers = linked();
    peers.handle_heartbeat("b", 1, 0, at(20));
    look(&mut peers, 2, &[("a", 1), ("b", 0)], 110);
    look(&mut peers, 2, &[("a", 1), ("b", 0)], 150);
    assert_eq!(events(&mut peers), [heard("b", 1)], "it may not be subscribed yet");
    peers.handle_subscribed("b");
    look(&mut peers, 2, &[("a", 1), ("b", 0)], 210);
    assert_eq!(events(&mut peers), [lost("b", Loss::Killed)]);
}

#[test]
fn does_not_lose_an_interrupted_peer_until_it_was_subscribed_again() {
    let mut peers = linked();
    look(&mut peers, 1, &[("a", 0)], 110);
    peers.handle_peer_interrupted("a");
    for ms in [150, 250, 350] {
        look(&mut peers, 1, &[("a", 0)], ms);
    }
    assert_eq!(events(&mut peers), []);
    look(&mut peers, 2, &[("a", 1)], 450);
    look(&mut peers, 1, &[("a", 0)], 550);
    look(&mut peers, 1, &[("a", 0)], 650);
    assert_eq!(events(&mut peers), [lost("a", Loss::Killed)]);
    peers.handle_peer_interrupted("a stranger");
    assert_eq!(events(&mut peers), []);
}

#[test]
fn a_hung_peer_is_silent_and_comes_back() {
    let mut peers = linked();
    for ms in (500..=3_500).step_by(500) {
        peers.handle_echo(at(ms));
        look(&mut peers, 2, &[("a", 1)], ms);
        peers.handle_timeout(at(ms));
    }
    assert_eq!(events(&mut peers), [lost("a", Loss::Silent)], "once, and it is not known to be dead");
    assert_eq!(peers.handle_heartbeat("a", 7, 0, at(4_000)), HeartbeatOutcome::Steady);
    assert_eq!(events(&mut peers), [heard("a", 7)]);
    peers.handle_echo(at(4_000));
    peers.handle_timeout(at(4_100));
    assert_eq!(events(&mut peers), []);
}

#[test]
fn a_suspended_replica_extends_all_deadlines() {
    let mut peers = linked();
    let wake_until =
        |peers: &mut Peers, from: u64, to: u64| (from..=to).step_by(50).for_each(|ms| peers.handle_timeout(at(ms)));
    wake_until(&mut peers, 50, 500);
    peers.handle_echo(at(500));
    peers.handle_heartbeat("a", 1, 0, at(500));
    assert_eq!(events(&mut peers), [heard("a", 1)]);
    // Twelve seconds in which it did not run; what came meanwhile is read later.
    wake_until(&mut peers, 12_500, 13_000);
    assert_eq!(events(&mut peers), [], "the link is up, and the peer is not silent");
    wake_until(&mut peers, 13_050, 14_500);
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: false }], "nothing came: the time after the stop counts");
}

#[test]
fn loses_no_peer_while_the_link_is_down() {
    let mut peers = linked();
    peers.handle_interrupted(at(0));
    look(&mut peers, 0, &[("a", 0)], 5_000);
    look(&mut peers, 0, &[("a", 0)], 6_000);
    peers.handle_timeout(at(9_000));
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: false }]);
}

/// A Redis that was restarted has no subscribers at first: each replica comes back when it can.
#[test]
fn gives_peers_time_to_come_back_after_the_link_was_down() {
    let mut peers = linked();
    peers.handle_interrupted(at(0));
    peers.handle_echo(at(20_000));
    look(&mut peers, 1, &[("a", 0)], 20_050);
    look(&mut peers, 1, &[("a", 0)], 20_150);
    peers.handle_timeout(at(21_000));
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: false }, PeerEvent::Link { up: true }]);
    for ms in (20_500..=23_000).step_by(500) {
        peers.handle_echo(at(ms));
        peers.handle_timeout(at(ms));
    }
    look(&mut peers, 1, &[("a", 0)], 23_050);
    assert_eq!(events(&mut peers), [lost("a", Loss::Silent), lost("a", Loss::Killed)], "it never came back");
}

/// A process that was stopped itself wakes up with old news of everybody: the link is judged first.
#[test]
fn after_a_suspension_the_link_is_judged_first() {
    let mut peers = linked();
    peers.handle_timeout(at(60_000));
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: false }]);
    peers.handle_echo(at(60_010));
    peers.handle_timeout(at(60_020));
    assert_eq!(events(&mut peers), [PeerEvent::Link { up: true }]);
}

#[test]
fn loses_a_peer_at_once_after_its_farewell() {
    let mut peers = linked();
    peers.handle_farewell("a");
    peers.handle_farewell("a");
    assert_eq!(events(&mut peers), [lost("a", Loss::Left)]);
}

#[test]
fn is_complete_when_all_counted_replicas_were_heard() {
    let mut peers = Peers::new(TIMING);
    assert!(!peers.is_complete(at(0)));
    peers.handle_echo(at(0));
    assert!(!peers.is_complete(at(1)), "nobody counted yet");
    look(&mut peers, 3, &[], 10);
    assert_eq!(peers.handle_heartbeat("a", 0, 0, at(20)), HeartbeatOutcome::Steady);
    assert!(!peers.is_complete(at(20)));
    assert_eq!(peers.handle_heartbeat("b", 0, 0, at(30)), HeartbeatOutcome::Steady);
    assert!(peers.is_complete(at(30)));
    look(&mut peers, 4, &[("a", 1), ("b", 1)], 110);
    assert!(!peers.is_complete(at(110)));
    assert!(peers.is_complete(at(3_000)), "one that hangs is not waited for");
}

#[test]
fn refuses_more_peers_than_it_tracks() {
    let mut peers = Peers::new(TIMING);
    for number in 0..PEERS_MAX {
        assert_eq!(peers.handle_heartbeat(&number.to_string(), 0, 0, at(0)), HeartbeatOutcome::Steady);
    }
    assert_eq!(peers.handle_heartbeat("one more", 0, 0, at(0)), HeartbeatOutcome::Refused);
    assert_eq!(peers.handle_heartbeat("7", 0, 0, at(0)), HeartbeatOutcome::Steady);
}

#[test]
fn is_cut_off_only_if_the_subscription_does_not_come_back() {
    let mut peers = linked();
    peers.handle_interrupted(at(1_000));
    assert!(!peers.is_cut_off(at(1_599)));
    peers.handle_interrupted(at(1_500));
    assert!(peers.is_cut_off(at(1_600)), "from the first interruption");
    peers.handle_echo(at(1_700));
    assert!(!peers.is_cut_off(at(9_000)));
    peers.handle_timeout(at(60_000));
    assert!(!peers.is_linked() && !peers.is_cut_off(at(60_000)), "what hangs has lost nothing yet");
}

#[test]
fn a_heartbeat_tells_that_its_sender_may_have_lost_messages() {
    let mut peers = linked();
    assert_eq!(peers.handle_heartbeat("a", 1, 1, at(500)), HeartbeatOutcome::Interrupted);
    assert_eq!(peers.handle_heartbeat("a", 1, 1, at(1_000)), HeartbeatOutcome::Steady);
}

/// It died while Redis was away: nobody is there to be subscribed, and nobody is heard.
#[test]
fn finds_a_peer_that_died_while_the_link_was_down_before_it_is_silent() {
    let mut peers = linked();
    peers.handle_interrupted(at(0));
    peers.handle_echo(at(20_000));
    events(&mut peers);
    look(&mut peers, 1, &[("a", 0)], 20_050);
    assert!(peers.is_complete(at(20_050)), "nobody else is subscribed");
    look(&mut peers, 2, &[("a", 0)], 20_100);
    assert!(!peers.is_complete(at(20_100)), "one is, and it is not the one that was known before");
    look(&mut peers, 1, &[("a", 0)], 20_999);
    assert_eq!(events(&mut peers), []);
    look(&mut peers, 1, &[("a", 0)], 21_000);
    assert_eq!(events(&mut peers), [lost("a", Loss::Killed)]);
}

#[test]
fn a_silent_peer_is_not_present() {
    let mut peers = linked();
    assert_eq!(peers.present().count(), 1);
    for ms in (500..=3_000).step_by(500) {
        peers.handle_echo(at(ms));
        peers.handle_timeout(at(ms));
    }
    assert_eq!((peers.present().count(), peers.uids().count()), (0, 1));
}
