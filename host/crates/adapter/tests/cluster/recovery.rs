//! Tests what sockets get that come back with the last offset that they saw.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;
use socketioxide_core::adapter::CoreAdapter;
use socketioxide_redis_streams::transport::EntryId;
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::{Gap, Settings};
use tokio::time::sleep;

use crate::rig::buffered_sockets::Delivery;
use crate::rig::faulty_transport::Answer;
use crate::rig::followed_replica::FollowedReplica;

fn settings() -> Settings {
    Settings::default()
}

/// A replica that has broadcast so many numbers, and their offsets.
async fn with_numbers(redis: &Memory, numbers: u64, settings: Settings) -> (FollowedReplica, Vec<EntryId>) {
    let replica = FollowedReplica::reading(redis, settings).await;
    let (mut client, began) = replica.fresh(&[]).await;
    let mut offsets = vec![began];
    for number in 1..=numbers {
        replica.broadcast(number).await;
        offsets.push(client.events([number]).await);
    }
    (replica, offsets)
}

#[tokio::test(start_paused = true)]
async fn recovers_a_socket_at_its_replica_and_at_another() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 10, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    for replica in [&one, &other] {
        let mut client = replica.back(&[], offsets[4]);
        client.events(5..=10).await;
        assert_eq!(client.got().await, Delivery::Recovered(offsets[4], offsets[10]));
        let mut up_to_date = replica.back(&[], offsets[10]);
        assert_eq!(up_to_date.got().await, Delivery::Recovered(offsets[10], offsets[10]));
        client.got_nothing().await;
    }
    // The replica that it was on is gone.
    one.cluster.close().await;
    let mut client = other.back(&[], offsets[0]);
    other.broadcast(11).await;
    client.events(1..=10).await;
    assert_eq!(client.got().await, Delivery::Recovered(offsets[0], offsets[10]));
    client.events([11]).await;
}

#[tokio::test(start_paused = true)]
async fn recovers_at_a_replica_that_started_later() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 10, settings()).await;
    one.cluster.close().await;
    let other = FollowedReplica::start(&redis, settings());
    // At once, before it has found the stream.
    let mut client = other.back(&[], offsets[7]);
    client.events(8..=10).await;
    assert_eq!(client.got().await, Delivery::Recovered(offsets[7], offsets[10]));
    let mut from_the_start = other.back(&[], EntryId::default());
    from_the_start.events(1..=10).await;
}

#[tokio::test(start_paused = true)]
async fn recovers_only_broadcasts_to_its_rooms() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let (_, at) = one.fresh(&[]).await;
    let foreign = FollowedReplica::reading(&redis, settings()).await;
    foreign.to("a", 1).await;
    one.to("b", 2).await;
    foreign.broadcast(3).await;
    one.to("a", 4).await;
    sleep(Duration::from_millis(10)).await;
    let mut client = one.back(&["a"], at);
    let last = client.events([1, 3, 4]).await;
    assert_eq!(client.got().await, Delivery::Recovered(at, last));
}

#[tokio::test(start_paused = true)]
async fn many_reconnecting_sockets_cause_one_sweep_of_the_stream() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let redis = Memory::new();
    let (_one, offsets) = with_numbers(&redis, 1_000, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let mut clients: Vec<_> = offsets[..1_000].iter().map(|from| other.back(&[], *from)).collect();
    for (seen, client) in (0..).zip(&mut clients) {
        client.events(seen + 1..=1_000).await;
        assert_eq!(client.got().await, Delivery::Recovered(offsets[seen as usize], offsets[1_000]));
    }
    let mut late: Vec<_> = offsets[..1_000].iter().map(|from| other.back(&[], *from)).collect();
    other.broadcast(1_001).await;
    for (seen, client) in (0..).zip(&mut late) {
        client.events(seen + 1..=1_000).await;
        assert_eq!(client.got().await, Delivery::Recovered(offsets[seen as usize], offsets[1_000]));
        client.events([1_001]).await;
    }
    let counted = recorder.handle().render();
    assert!(counted.contains("adapter_recovery_reads_total 3"), "{counted}");
    assert!(counted.contains(r#"adapter_recoveries_total{outcome="recovered"} 2000"#), "{counted}");
}

#[tokio::test(start_paused = true)]
async fn reports_trimmed_broadcasts_as_a_gap() {
    let redis = Memory::new();
    let few = Settings { stream_len_max: 10, log_entries_max: 5, ..settings() };
    let (one, offsets) = with_numbers(&redis, 30, few.clone()).await;
    let other = FollowedReplica::reading(&redis, few).await;
    for replica in [&one, &other] {
        let mut client = replica.back(&[], offsets[20]);
        assert_eq!(client.got().await, Delivery::Gap(Gap::Trimmed, Some(offsets[30])));
        let mut just_there = replica.back(&[], offsets[21]);
        just_there.events(22..=30).await;
        assert_eq!(just_there.got().await, Delivery::Recovered(offsets[21], offsets[30]));
        let mut from_nothing = replica.back(&[], EntryId::default());
        assert_eq!(from_nothing.got().await, Delivery::Gap(Gap::Trimmed, Some(offsets[30])));
    }
    let mut client = other.back(&[], offsets[1]);
    one.broadcast(31).await;
    assert!(matches!(client.got().await, Delivery::Gap(Gap::Trimmed, _)));
    client.events([31]).await;
}

#[tokio::test(start_paused = true)]
async fn reads_broadcasts_before_the_log_from_redis() {
    let redis = Memory::new();
    let small = Settings { log_entries_max: 3, ..settings() };
    let (one, offsets) = with_numbers(&redis, 6, small).await;
    let mut client = one.back(&[], offsets[2]);
    client.events(3..=6).await;
    assert_eq!(client.got().await, Delivery::Recovered(offsets[2], offsets[6]));
}

#[tokio::test(start_paused = true)]
async fn reports_an_unknown_offset_as_a_gap() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 10, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let EntryId { ms, seq } = offsets[5];
    let beside = EntryId { ms, seq: seq + 77 };
    let ahead = EntryId { ms: offsets[10].ms + 1_000, seq: 0 };
    for replica in [&one, &other] {
        for from in [beside, ahead, EntryId { ms: u64::MAX, seq: u64::MAX }, EntryId { ms: 1, seq: 1 }] {
            let mut client = replica.back(&[], from);
            assert_eq!(client.got().await, Delivery::Gap(Gap::Unknown, Some(offsets[10])), "{from}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn reports_an_emptied_stream_as_a_gap() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 10, settings()).await;
    redis.stop();
    redis.start(true);
    sleep(Duration::from_secs(3)).await;
    one.broadcast(11).await;
    sleep(Duration::from_millis(10)).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    for replica in [&one, &other] {
        let mut client = replica.back(&[], offsets[10]);
        assert!(matches!(client.got().await, Delivery::Gap(Gap::Unknown, Some(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_socket_ahead_of_its_replica_waits_for_the_reader() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 3, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let (mut ahead, _) = one.fresh(&[]).await;
    let line = other.line.as_ref().unwrap();
    line.set_hung(true);
    for number in 4..=6 {
        one.broadcast(number).await;
    }
    let seen = ahead.events(4..=5).await;
    let mut client = other.back(&[], seen);
    let mut behind = other.back(&[], offsets[2]);
    sleep(Duration::from_secs(1)).await;
    line.set_hung(false);
    assert_eq!(client.got().await, Delivery::Recovered(seen, seen));
    client.events([6]).await;
    client.got_nothing().await;
    // What was read meanwhile it gets before or behind `recovered`.
    let (told, events): (Vec<_>, Vec<_>) =
        behind.rest().into_iter().partition(|got| matches!(got, Delivery::Recovered(..)));
    let numbers: Vec<_> =
        events.iter().map(|got| if let Delivery::Event(number, Some(_)) = got { *number } else { 0 }).collect();
    assert_eq!((numbers, told.len()), (vec![3, 4, 5, 6], 1));
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_comes_during_a_check_is_not_decided_by_it() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 3, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let (mut ahead, _) = one.fresh(&[]).await;
    let line = other.line.as_ref().unwrap();
    line.set_late(&[Answer::Read, Answer::Extent]);
    let mut wrong = other.back(&[], EntryId { ms: u64::MAX, seq: 0 });
    sleep(Duration::from_millis(10)).await;
    one.broadcast(4).await;
    let seen = ahead.events([4]).await;
    let mut right = other.back(&[], seen);
    line.set_late(&[Answer::Read]);
    assert_eq!(wrong.got().await, Delivery::Gap(Gap::Unknown, Some(offsets[3])));
    line.set_late(&[]);
    assert_eq!(right.got().await, Delivery::Recovered(seen, seen));
}

#[tokio::test(start_paused = true)]
async fn a_page_read_before_the_log_moved_leaves_no_hole() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 10, settings()).await;
    let other = FollowedReplica::reading(&redis, Settings { log_entries_max: 3, ..settings() }).await;
    let line = other.line.as_ref().unwrap();
    let (mut live, _) = other.fresh(&[]).await;
    line.set_late(&[Answer::Range]);
    let mut client = other.back(&[], offsets[8]);
    sleep(Duration::from_millis(10)).await;
    for number in 11..=30 {
        one.broadcast(number).await;
    }
    live.events(11..=30).await;
    line.set_late(&[]);
    assert!(matches!(client.got().await, Delivery::Gap(Gap::TooMany, Some(_))));
    one.broadcast(31).await;
    client.events([31]).await;
}

#[tokio::test(start_paused = true)]
async fn rooms_that_change_during_recovery_count_from_then_on() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 1, settings()).await;
    one.to("a", 2).await;
    one.to("b", 3).await;
    sleep(Duration::from_millis(10)).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let line = other.line.as_ref().unwrap();
    line.set_late(&[Answer::Range]);
    let mut client = other.back(&["a"], offsets[1]);
    let local = other.adapter.get_local();
    local.del(client.sid, "a");
    local.add_all(client.sid, "b");
    one.to("a", 4).await;
    one.to("b", 5).await;
    sleep(Duration::from_millis(10)).await;
    line.set_late(&[]);
    client.events([2, 5]).await;
}

#[tokio::test(start_paused = true)]
async fn recovers_in_a_namespace_that_was_opened_late() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let there = one.open("/admin");
    let (mut client, at) = there.fresh(&[]).await;
    there.broadcast(1).await;
    one.broadcast(2).await;
    there.broadcast(3).await;
    client.events([1, 3]).await;
    // It read the entries, but had no use for their content.
    let here = other.open("/admin");
    let mut back = here.back(&[], at);
    back.events([1, 3]).await;
    assert!(matches!(back.got().await, Delivery::Recovered(..)));
    back.got_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_reader_has_a_deadline() {
    let redis = Memory::new();
    let (one, _) = with_numbers(&redis, 3, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let (mut ahead, _) = one.fresh(&[]).await;
    let line = other.line.as_ref().unwrap();
    line.set_late(&[Answer::Read]);
    one.broadcast(4).await;
    let seen = ahead.events([4]).await;
    let mut client = other.back(&[], seen);
    let began = tokio::time::Instant::now();
    // It is not led back behind what it saw, nor given that again.
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unreachable, Some(seen)));
    assert_eq!(began.elapsed().as_secs(), settings().request_timeout.as_secs());
    line.set_late(&[]);
    one.broadcast(5).await;
    client.events([5]).await;
}

#[tokio::test(start_paused = true)]
async fn reports_too_many_missed_broadcasts_as_a_gap() {
    let redis = Memory::new();
    let (one, offsets) = with_numbers(&redis, 20, Settings { recover_events_max: 10, ..settings() }).await;
    let mut within = one.back(&[], offsets[10]);
    within.events(11..=20).await;
    let mut beyond = one.back(&[], offsets[9]);
    assert_eq!(beyond.got().await, Delivery::Gap(Gap::TooMany, Some(offsets[20])));
    one.broadcast(21).await;
    beyond.events([21]).await;
    // What does not concern it does not count.
    one.to("r", 22).await;
    one.broadcast(23).await;
    sleep(Duration::from_millis(10)).await;
    let mut in_no_room = one.back(&[], offsets[11]);
    assert!(matches!(in_no_room.got().await, Delivery::Gap(Gap::TooMany, _)));
    let mut in_no_room = one.back(&[], offsets[13]);
    in_no_room.events((14..=21).chain([23])).await;
}

#[tokio::test(start_paused = true)]
async fn reports_more_than_the_log_holds_as_a_gap() {
    let redis = Memory::new();
    let (_one, offsets) = with_numbers(&redis, 2_000, settings()).await;
    let other = FollowedReplica::reading(&redis, Settings { log_entries_max: 100, ..settings() }).await;
    let mut near = other.back(&[], offsets[1_900]);
    let mut far = other.back(&[], offsets[5]);
    near.events(1_901..=2_000).await;
    assert_eq!(far.got().await, Delivery::Gap(Gap::TooMany, Some(offsets[2_000])));
    other.broadcast(2_001).await;
    far.events([2_001]).await;
}

#[tokio::test(start_paused = true)]
async fn reports_a_gap_to_a_socket_that_comes_back_without_redis() {
    let redis = Memory::new();
    let (_one, offsets) = with_numbers(&redis, 10, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    redis.stop();
    sleep(Duration::from_secs(1)).await;
    let mut client = other.back(&[], offsets[5]);
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unreachable, Some(offsets[10])));
    let mut known = other.back(&[], offsets[10]);
    assert_eq!(known.got().await, Delivery::Recovered(offsets[10], offsets[10]), "this needs no read");
    // One that starts now does not know where the stream stands.
    let third = FollowedReplica::start(&redis, settings());
    let mut client = third.back(&[], offsets[5]);
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unreachable, None));
    let mut fresh = third.client(&[]);
    fresh.follow(&third, &[], None);
    fresh.got_nothing().await;
    redis.start(false);
    assert_eq!(fresh.got().await, Delivery::Began(offsets[10]));
    third.broadcast(11).await;
    client.events([11]).await;
    fresh.events([11]).await;
}

#[tokio::test(start_paused = true)]
async fn forgets_a_socket_that_leaves_during_recovery() {
    let redis = Memory::new();
    let (_one, offsets) = with_numbers(&redis, 10, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    other.line.as_ref().unwrap().set_hung(true);
    let gone = other.back(&[], offsets[2]);
    let mut stays = other.back(&[], offsets[3]);
    drop(gone);
    other.line.as_ref().unwrap().set_hung(false);
    stays.events(4..=10).await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_without_a_cluster_recovers_from_memory() {
    let replica = FollowedReplica::alone(Settings { log_entries_max: 5, recover_events_max: 4, ..settings() });
    let mut early = replica.bare(&[]);
    replica.broadcast(0).await;
    let (mut client, at) = replica.fresh(&["r"]).await;
    replica.broadcast(1).await;
    replica.to("r", 2).await;
    replica.to("s", 3).await;
    assert_eq!(early.rest(), [Delivery::Event(0, None), Delivery::Event(1, None)], "handed over where it is made");
    let seen = client.events([1]).await;
    assert!(seen > at);
    client.events([2]).await;
    drop(client);
    replica.to("r", 4).await;
    let mut back = replica.back(&["r"], seen);
    let to = back.events([2, 4]).await;
    assert_eq!(back.got().await, Delivery::Recovered(seen, to));
    let mut never = replica.back(&[], EntryId { ms: 1, seq: 0 });
    assert_eq!(never.got().await, Delivery::Gap(Gap::Unknown, Some(to)));
    let mut later = replica.back(&[], EntryId { ms: u64::MAX, seq: 0 });
    assert_eq!(later.got().await, Delivery::Gap(Gap::Unknown, Some(to)));
    for number in 5..10 {
        replica.to("r", number).await;
    }
    back.events(5..10).await;
    let mut too_many = replica.back(&["r"], to);
    assert!(matches!(too_many.got().await, Delivery::Gap(Gap::TooMany, Some(_))));
    let mut gone = replica.back(&["r"], seen);
    assert!(matches!(gone.got().await, Delivery::Gap(Gap::Trimmed, Some(_))));
}
