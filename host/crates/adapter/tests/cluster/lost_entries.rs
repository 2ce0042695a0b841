//! Tests that lost entries of the stream are reported, with their number if it is known, and that later entries arrive.

use std::time::Duration;

use socketioxide_redis_streams::Settings;
use socketioxide_redis_streams::transport::memory::Memory;

use crate::rig::replicas::{ListenerEvent, Replica, start_known};

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
        if let (ListenerEvent::Missed(broadcasts), _) = replica.told().await {
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
async fn reports_how_many_entries_were_trimmed_unread() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &settings()).await;
    replicas[0].broadcast("e", 0).await;
    gets(&mut replicas[2], 0..1).await;
    replicas[2].line.cut();
    for number in 1..26 {
        replicas[0].broadcast("e", number).await;
        // One batch each, so that the others read it before it is trimmed.
        assert_eq!(replicas[1].got().await, format!(r#"2["e",{}]"#, number - 1));
    }
    replicas[2].line.restore();
    assert_eq!(missed(&mut replicas[2]).await, Some(15));
    gets(&mut replicas[2], 16..26).await;
    gets(&mut replicas[1], 25..26).await;
    // What is read later is not counted again.
    replicas[0].broadcast("e", 26).await;
    gets(&mut replicas[2], 26..27).await;
    missed_nothing(&mut replicas[2]).await;
    missed_nothing(&mut replicas[1]).await;
}

#[tokio::test(start_paused = true)]
async fn reports_an_emptied_stream_and_reads_on() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 2, &settings()).await;
    for number in 0..5 {
        replicas[0].broadcast("e", number).await;
    }
    gets(&mut replicas[1], 0..5).await;
    redis.stop();
    redis.start(true);
    for replica in &mut replicas {
        assert_eq!(missed(replica).await, None);
    }
    replicas[0].broadcast("e", 5).await;
    gets(&mut replicas[1], 5..6).await;
    missed_nothing(&mut replicas[1]).await;
}

#[tokio::test(start_paused = true)]
async fn reports_a_stream_that_was_emptied_and_refilled_and_reads_it_from_its_start() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 2, &settings()).await;
    for number in 0..5 {
        replicas[0].broadcast("e", number).await;
    }
    gets(&mut replicas[1], 0..5).await;
    replicas[1].line.cut();
    redis.stop();
    redis.start(true);
    for number in 5..8 {
        replicas[0].broadcast("e", number).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    replicas[1].line.restore();
    assert_eq!(missed(&mut replicas[1]).await, None);
    gets(&mut replicas[1], 5..8).await;
}

#[tokio::test(start_paused = true)]
async fn entries_arrive_after_a_short_interruption() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 2, &settings()).await;
    replicas[1].line.cut();
    for number in 0..10 {
        replicas[0].broadcast("e", number).await;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    replicas[1].line.restore();
    gets(&mut replicas[1], 0..10).await;
}
