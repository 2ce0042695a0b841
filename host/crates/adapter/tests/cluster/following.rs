//! Tests what sockets get that follow the stream, and what other sockets get.

use std::time::Duration;

use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreAdapter};
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::transport::{EntryId, Transport};
use socketioxide_redis_streams::{Gap, Settings};

use crate::rig::buffered_sockets::Delivery;
use crate::rig::followed_replica::{FollowedReplica, room};
use crate::rig::replicas::{everyone, packet};

fn settings() -> Settings {
    Settings::default()
}

#[tokio::test(start_paused = true)]
async fn followers_get_own_and_foreign_broadcasts_in_one_order_with_offsets() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let (mut here, began) = one.fresh(&[]).await;
    let (mut there, _) = other.fresh(&[]).await;
    let mut bare = one.bare(&[]);
    for number in 0..10 {
        let maker = if number % 2 == 0 { &one } else { &other };
        maker.broadcast(number).await;
        let got = here.event().await;
        assert!(got.1 > began);
        assert_eq!(there.event().await, got, "the same offset everywhere");
        assert_eq!(bare.got().await, Delivery::Event(number, None));
    }
    for client in [&mut here, &mut there, &mut bare] {
        client.got_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn following_does_not_change_the_wire() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let (mut client, _) = one.fresh(&["r"]).await;
    one.to("r", 1).await;
    let (_, at) = client.event().await;
    let raw = redis.connect().range("socket.io", at, 1).await.unwrap().remove(0);
    let fields = raw.fields.iter().map(|(name, value)| [name, value].map(|text| std::str::from_utf8(text).unwrap()));
    let data = r#"{"packet":{"type":2,"data":["e",1]},"opts":{"rooms":["r"],"except":[],"flags":{}}}"#;
    let expected = [["uid", one.cluster.uid()], ["nsp", "/"], ["type", "3"], ["data", data]];
    assert_eq!(fields.collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn followers_get_only_broadcasts_to_their_rooms() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let (mut in_a, _) = one.fresh(&["a"]).await;
    let (mut in_both, _) = one.fresh(&["a", "b"]).await;
    let mut others = BroadcastOptions::new(in_a.sid);
    others.add_flag(BroadcastFlags::Broadcast);
    one.adapter.broadcast(packet("e", &[1.into()]), others).await.unwrap();
    in_both.events([1]).await;
    let mut not_b = room("a");
    not_b.except.push("b".into());
    other.adapter.broadcast(packet("e", &[2.into()]), not_b).await.unwrap();
    in_a.events([2]).await;
    other.to("b", 3).await;
    in_both.events([3]).await;
    // One socket alone, which did not join the room of its own id.
    other.adapter.broadcast(packet("e", &[4.into()]), BroadcastOptions::new(in_a.sid)).await.unwrap();
    in_a.events([4]).await;
    one.adapter.broadcast(packet("e", &[5.into()]), BroadcastOptions::new(in_both.sid)).await.unwrap();
    in_both.events([5]).await;
    in_a.got_nothing().await;
    in_both.got_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn messages_outside_the_stream_reach_followers_without_offsets() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let other = FollowedReplica::reading(&redis, settings()).await;
    let (mut client, at) = one.fresh(&[]).await;
    let (mut local, mut volatile) = (everyone(), everyone());
    local.add_flag(BroadcastFlags::Local);
    volatile.add_flag(BroadcastFlags::Volatile);
    one.adapter.broadcast(packet("e", &[1.into()]), local).await.unwrap();
    one.adapter.broadcast(packet("e", &[2.into()]), volatile.clone()).await.unwrap();
    one.adapter.broadcast(packet("rpc-request", &[3.into()]), everyone()).await.unwrap();
    for number in 1..4 {
        assert_eq!(client.got().await, Delivery::Event(number, None));
    }
    other.adapter.broadcast(packet("e", &[4.into()]), volatile).await.unwrap();
    other.adapter.broadcast(packet("rpc-request", &[5.into()]), everyone()).await.unwrap();
    for number in 4..6 {
        assert_eq!(client.got().await, Delivery::Event(number, None));
    }
    other.broadcast(6).await;
    let last = client.events([6]).await;
    // None of them is replayed, though each has its place.
    let mut back = one.back(&[], at);
    back.events([6]).await;
    assert_eq!(back.got().await, Delivery::Recovered(at, last));
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_stopped_following_gets_nothing_from_the_stream() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let (mut client, _) = one.fresh(&[]).await;
    client.unfollow();
    one.broadcast(1).await;
    client.got_nothing().await;
    client.follow(&one, &[], None);
    // A second one takes the place of the first, and the end of the first does not end it.
    client.follow(&one, &[], None);
    assert!(matches!([client.got().await, client.got().await], [Delivery::Began(_), Delivery::Began(_)]));
    one.broadcast(2).await;
    client.events([2]).await;
}

#[tokio::test(start_paused = true)]
async fn overruns_only_the_socket_whose_buffer_is_full() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let (mut slow, _) = one.fresh(&[]).await;
    let (mut quick, _) = one.fresh(&[]).await;
    slow.set_room(2);
    for number in 0..5 {
        one.broadcast(number).await;
    }
    let last = quick.events(0..5).await;
    let seen = slow.events(0..2).await;
    assert_eq!(slow.got().await, Delivery::Overrun);
    slow.set_room(100);
    one.broadcast(5).await;
    quick.events([5]).await;
    slow.got_nothing().await;
    let mut back = one.back(&[], seen);
    let to = back.events(2..6).await;
    assert!(to > last);
    assert_eq!(back.got().await, Delivery::Recovered(seen, to));
    // Also while it is handed what it missed.
    let mut narrow = one.client(&[]);
    narrow.set_room(3);
    narrow.follow(&one, &[], Some(seen));
    narrow.events(2..5).await;
    assert_eq!(narrow.got().await, Delivery::Overrun);
    narrow.got_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn tells_followers_of_entries_that_the_replica_missed() {
    let redis = Memory::new();
    let few = Settings { stream_len_max: 10, ..settings() };
    let one = FollowedReplica::reading(&redis, few.clone()).await;
    let other = FollowedReplica::reading(&redis, few).await;
    let (mut client, _) = one.fresh(&[]).await;
    let line = one.line.as_ref().unwrap();
    other.broadcast(0).await;
    let at = client.events([0]).await;
    line.cut();
    let (mut there, _) = other.fresh(&[]).await;
    for number in 1..26 {
        other.broadcast(number).await;
        there.events([number]).await;
    }
    line.restore();
    assert_eq!(client.got().await, Delivery::Gap(Gap::Trimmed, Some(at)));
    client.events(16..26).await;
    redis.stop();
    redis.start(true);
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unknown, Some(EntryId::default())));
    tokio::time::sleep(Duration::from_secs(2)).await;
    other.broadcast(26).await;
    client.events([26]).await;
}

#[tokio::test(start_paused = true)]
async fn without_redis_followers_get_broadcasts_at_once_and_one_gap() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, settings()).await;
    let (mut client, _) = one.fresh(&["r"]).await;
    let mut bare = one.bare(&["r"]);
    redis.stop();
    one.to("r", 1).await;
    assert_eq!(client.got().await, Delivery::Event(1, None));
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unreachable, None));
    one.to("r", 2).await;
    one.to("elsewhere", 3).await;
    assert_eq!(client.got().await, Delivery::Event(2, None));
    client.got_nothing().await;
    redis.start(false);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // All clients are told in the stream, wherever they are: they have missed what did not get there.
    assert!(matches!(client.got().await, Delivery::Gap(Gap::Unreachable, Some(_))));
    one.to("r", 4).await;
    client.events([4]).await;
    redis.stop();
    one.to("r", 5).await;
    assert_eq!(client.got().await, Delivery::Event(5, None));
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unreachable, None), "something was read in between");
    for number in [1, 2, 4, 5] {
        assert_eq!(bare.got().await, Delivery::Event(number, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broadcast_that_never_got_into_the_stream_is_a_gap_for_all_followers() {
    let redis = Memory::new();
    let (one, other) =
        (FollowedReplica::reading(&redis, settings()).await, FollowedReplica::reading(&redis, settings()).await);
    let (mut client, at) = other.fresh(&["r"]).await;
    redis.stop();
    one.to("elsewhere", 1).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    redis.start(false);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let Delivery::Gap(Gap::Unreachable, Some(loss)) = client.got().await else { panic!("a gap was expected") };
    one.to("r", 2).await;
    client.events([2]).await;
    // Who was away meanwhile has missed as much; who was told has not.
    let mut away = other.back(&["r"], at);
    assert!(matches!(away.got().await, Delivery::Gap(Gap::Unreachable, Some(_))));
    let mut told = other.back(&["r"], loss);
    told.events([2]).await;
}

#[tokio::test(start_paused = true)]
async fn followers_get_a_broadcast_at_once_if_the_outbox_is_full() {
    let redis = Memory::new();
    let one = FollowedReplica::reading(&redis, Settings { outbox_messages_max: 0, ..settings() }).await;
    let (mut client, _) = one.fresh(&[]).await;
    let mut bare = one.bare(&[]);
    one.adapter.broadcast(packet("e", &[1.into()]), everyone()).await.unwrap_err();
    assert_eq!(client.got().await, Delivery::Event(1, None));
    assert_eq!(client.got().await, Delivery::Gap(Gap::Unreachable, None));
    assert_eq!(bare.got().await, Delivery::Event(1, None));
    client.got_nothing().await;
    bare.got_nothing().await;
}
