//! Tests how soon replicas find each other, and how soon they detect a lost one.

use std::time::Duration;

use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::wire::Value;
use socketioxide_redis_streams::{Loss, NOTE_MIN, PeerEvent, Settings};
use tokio::time::{Instant, timeout};

use crate::rig::replicas::{ListenerEvent, Replica, start, start_known};

fn lost(peer: &Replica, loss: Loss) -> ListenerEvent {
    ListenerEvent::Peer(PeerEvent::Lost { peer: peer.cluster.uid().to_owned(), loss })
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn finds_peers_within_a_heartbeat() {
    let redis = Memory::new();
    let settings = Settings::default();
    let mut replicas = start(&redis, 7, &settings);
    timeout(settings.heartbeat, async {
        for replica in &mut replicas {
            replica.knows(6).await;
        }
    })
    .await
    .expect("those that start together");
    replicas.push(Replica::start(&redis, settings.clone()));
    timeout(settings.heartbeat, async {
        for replica in &mut replicas {
            replica.knows(7).await;
        }
    })
    .await
    .expect("one that comes later");
}

#[tokio::test(start_paused = true)]
async fn detects_a_killed_peer_within_250_ms() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 4, &Settings::default()).await;
    let killed = replicas.remove(1);
    let at = Instant::now();
    killed.line.set_hung(true);
    killed.line.cut();
    for replica in &mut replicas {
        let (told, when) = replica.told().await;
        assert_eq!(told, lost(&killed, Loss::Killed));
        assert!(when - at <= millis(250), "{:?}", when - at);
        replica.told_nothing(millis(5_000)).await;
        assert_eq!(replica.cluster.standing().peers, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn detects_a_peer_that_is_killed_right_after_it_was_found() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 2, &Settings::default()).await;
    let mut killed = Replica::start(&redis, Settings::default());
    killed.knows(2).await;
    let at = Instant::now();
    killed.line.set_hung(true);
    killed.line.cut();
    for replica in &mut replicas {
        let (told, when) = replica.told().await;
        assert_eq!(told, lost(&killed, Loss::Killed));
        assert!(when - at <= millis(250), "{:?}", when - at);
    }
}

/// Its process lives, and says so by the connection that it has.
#[tokio::test(start_paused = true)]
async fn does_not_lose_a_peer_whose_subscription_breaks() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    for _ in 0..3 {
        replicas[1].line.cut_subscription();
        replicas[0].told_nothing(millis(1_000)).await;
        replicas[1].line.restore();
        replicas[1].knows(2).await;
    }
    replicas[2].told_nothing(millis(1_000)).await;
    replicas[1].line.cut();
    assert_eq!(replicas[0].told().await.0, lost(&replicas[1], Loss::Killed), "this is what a kill looks like");
}

#[tokio::test(start_paused = true)]
async fn a_hung_peer_is_silent_after_three_seconds_and_comes_back() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    let mut hung = replicas.remove(0);
    let at = Instant::now();
    hung.line.set_hung(true);
    for replica in &mut replicas {
        let (told, when) = replica.told().await;
        assert_eq!(told, lost(&hung, Loss::Silent));
        assert!((millis(2_400)..=millis(3_100)).contains(&(when - at)), "{:?}", when - at);
        replica.told_nothing(millis(3_000)).await;
    }
    let at = Instant::now();
    hung.line.set_hung(false);
    for replica in &mut replicas {
        let when = replica.heard(hung.cluster.uid()).await;
        assert!(when - at <= millis(600), "{:?}", when - at);
        replica.told_nothing(millis(5_000)).await;
    }
    let only_its_own_link = [hung.told().await.0, hung.told().await.0];
    assert_eq!(only_its_own_link, [false, true].map(|up| ListenerEvent::Peer(PeerEvent::Link { up })));
    hung.told_nothing(millis(5_000)).await;
}

#[tokio::test(start_paused = true)]
async fn reports_a_farewell_at_once() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    let leaving = replicas.remove(2);
    let at = Instant::now();
    leaving.cluster.close().await;
    for replica in &mut replicas {
        let (told, when) = replica.told().await;
        assert_eq!(told, lost(&leaving, Loss::Left));
        assert!(when - at <= millis(50), "{:?}", when - at);
        replica.told_nothing(millis(5_000)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn reports_a_lost_link_and_loses_no_peer() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    let at = Instant::now();
    redis.stop();
    for replica in &mut replicas {
        assert_eq!(replica.told().await, (ListenerEvent::Peer(PeerEvent::Link { up: false }), at));
        assert!(!replica.cluster.standing().linked);
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let at = Instant::now();
    redis.start(true);
    for replica in &mut replicas {
        let (told, when) = replica.told().await;
        assert_eq!(told, ListenerEvent::Peer(PeerEvent::Link { up: true }));
        assert!(when - at <= millis(100), "{:?}", when - at);
        // The stream may have been emptied; nobody was lost.
        replica.told_nothing(millis(10_000)).await;
        replica.knows(2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn reports_a_hanging_redis_as_a_lost_link() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    let at = Instant::now();
    redis.hang();
    for replica in &mut replicas {
        let (told, when) = replica.told().await;
        assert_eq!(told, ListenerEvent::Peer(PeerEvent::Link { up: false }));
        assert!((millis(1_000)..=millis(1_600)).contains(&(when - at)), "{:?}", when - at);
        replica.told_nothing(millis(10_000)).await;
    }
    redis.resume();
    for replica in &mut replicas {
        assert_eq!(replica.told().await.0, ListenerEvent::Peer(PeerEvent::Link { up: true }));
        replica.told_nothing(millis(10_000)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn delivers_notes_in_order_to_all_peers_or_one() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    let to = replicas[2].cluster.uid().to_owned();
    for number in 0..300 {
        let peer = (number % 2 == 1).then_some(to.as_str());
        replicas[0].cluster.note(peer, NOTE_MIN + number, Value::from(number)).unwrap();
    }
    let peer = replicas[0].cluster.uid().to_owned();
    for (at, step) in [(1, 2), (2, 1)] {
        for number in (0..300).step_by(step) {
            let note = ListenerEvent::Note { peer: peer.clone(), number: NOTE_MIN + number, data: number.into() };
            assert_eq!(replicas[at].told().await.0, note);
        }
    }
    replicas[0].told_nothing(millis(1_000)).await;
}
