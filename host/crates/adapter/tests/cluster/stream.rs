//! What of the stream is lost is told, with its number where there is one, and what comes later arrives.

use std::time::Duration;

use socketioxide_redis_streams::Settings;
use socketioxide_redis_streams::transport::memory::Memory;

use crate::fleet::{Replica, Told, start_known};

fn settings() -> Settings {
    Settings { stream_len_max: 10, ..Settings::default() }
}

async fn gets(replica: &mut Replica, numbers: std::ops::Range<u64>) {
    for number in numbers {
        assert_eq!(replica.got().await, format!(r#"2["e",{number}]"#));
    }
    replica.got_nothing().await;
}

/// Waits until it is told that broadcasts were missed; of the link it is told besides.
async fn missed(replica: &mut Replica) -> Option<u64> {
    loop {
        if let (Told::Missed(broadcasts), _) = replica.told().await {
            return broadcasts;
        }
    }
}

/// Asserts that it is told of nothing missed within ten seconds.
async fn missed_nothing(replica: &mut Replica) {
    let more = tokio::time::timeout(Duration::from_secs(10), missed(replica)).await;
    assert!(more.is_err(), "{more:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_trimmed_unread_is_told_with_its_number() {
    let redis = Memory::new();
    let mut fleet = start_known(&redis, 3, &settings()).await;
    fleet[0].broadcast("e", 0).await;
    gets(&mut fleet[2], 0..1).await;
    fleet[2].line.cut();
    for number in 1..26 {
        fleet[0].broadcast("e", number).await;
        // One batch each, so that the others read it before it is trimmed.
        assert_eq!(fleet[1].got().await, format!(r#"2["e",{}]"#, number - 1));
    }
    fleet[2].line.restore();
    assert_eq!(missed(&mut fleet[2]).await, Some(15));
    gets(&mut fleet[2], 16..26).await;
    gets(&mut fleet[1], 25..26).await;
    // What is read later is not counted again.
    fleet[0].broadcast("e", 26).await;
    gets(&mut fleet[2], 26..27).await;
    missed_nothing(&mut fleet[2]).await;
    missed_nothing(&mut fleet[1]).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_emptied_is_told_and_followed() {
    let redis = Memory::new();
    let mut fleet = start_known(&redis, 2, &settings()).await;
    for number in 0..5 {
        fleet[0].broadcast("e", number).await;
    }
    gets(&mut fleet[1], 0..5).await;
    redis.stop();
    redis.start(true);
    for replica in &mut fleet {
        assert_eq!(missed(replica).await, None);
    }
    fleet[0].broadcast("e", 5).await;
    gets(&mut fleet[1], 5..6).await;
    missed_nothing(&mut fleet[1]).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_emptied_and_filled_again_unseen_is_told_and_read_from_its_start() {
    let redis = Memory::new();
    let mut fleet = start_known(&redis, 2, &settings()).await;
    for number in 0..5 {
        fleet[0].broadcast("e", number).await;
    }
    gets(&mut fleet[1], 0..5).await;
    fleet[1].line.cut();
    redis.stop();
    redis.start(true);
    for number in 5..8 {
        fleet[0].broadcast("e", number).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    fleet[1].line.restore();
    assert_eq!(missed(&mut fleet[1]).await, None);
    gets(&mut fleet[1], 5..8).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_short_cut_delayed_arrives() {
    let redis = Memory::new();
    let mut fleet = start_known(&redis, 2, &settings()).await;
    fleet[1].line.cut();
    for number in 0..10 {
        fleet[0].broadcast("e", number).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    fleet[1].line.restore();
    gets(&mut fleet[1], 0..10).await;
}
