//! Tests streams, and the end of a connection.

use std::{sync::Arc, time::Duration};

use socketioxide_redis_streams::transport::{EntryId, Extent, Outgoing, Received, TransportError};

use crate::rig::{
    AT_LAST, Rig, connected, entry, is_disconnected, message, names, read, received, send, settled, subscribe,
    subscribers, texts, until, within,
};

pub(crate) async fn entries_are_read_in_the_order_they_were_sent(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    send(&*transport, ["a", "b", "c", "d", "e"].map(|text| entry("s", text)).into()).await;
    let entries = read(&*transport, "s", EntryId::default(), 10).await;
    assert_eq!(texts(&entries), ["a", "b", "c", "d", "e"]);
    assert!(entries.is_sorted_by(|one, next| one.id < next.id));
    assert_eq!(entries[0].fields[0], ("uid".into(), "0123456789abcdef".into()));

    let rest = read(&*transport, "s", entries[1].id, 2).await;
    assert_eq!(rest, entries[2..4], "behind an entry, and no more than asked for");
}

pub(crate) async fn a_read_of_nothing_is_empty(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    assert_eq!(read(&*transport, "s", EntryId::default(), 10).await, []);
    send(&*transport, vec![entry("s", "a")]).await;
    let last = within(transport.extent("s")).await.unwrap().last;
    assert_eq!(read(&*transport, "s", last, 10).await, []);
}

pub(crate) async fn a_range_is_the_last_entries_up_to_one(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    let range = async |last, count| within(transport.range("s", last, count)).await.unwrap();
    let end = EntryId { ms: u64::MAX, seq: u64::MAX };
    assert_eq!(range(end, 10).await, [], "of a stream that does not exist");
    send(&*transport, ["a", "b", "c", "d", "e"].map(|text| entry("s", text)).into()).await;
    let all = read(&*transport, "s", EntryId::default(), 10).await;
    assert_eq!(range(end, 10).await, all);
    assert_eq!(range(all[3].id, 2).await, all[2..4]);
    assert_eq!(range(all[1].id, 3).await, all[..2], "fewer where the stream begins");
    let EntryId { ms, seq } = all[0].id;
    let before = if seq > 0 { EntryId { ms, seq: seq - 1 } } else { EntryId { ms: ms - 1, seq: u64::MAX } };
    assert_eq!(range(before, 3).await, []);
}

pub(crate) async fn a_range_does_not_wait_for_a_read_that_blocks(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    send(&*transport, vec![entry("s", "a")]).await;
    let last = within(transport.extent("s")).await.unwrap().last;
    let blocked = transport.read("s", last, 10, AT_LAST);
    tokio::select! {
        biased;
        read = blocked => panic!("{read:?}"),
        range = within(transport.range("s", last, 10)) => assert_eq!(texts(&range.unwrap()), ["a"]),
    }
}

pub(crate) async fn a_blocked_read_wakes(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    let read = one.read("s", EntryId::default(), 10, AT_LAST);
    let (entries, ()) = tokio::join!(within(read), send(&*other, vec![entry("s", "a")]));
    assert_eq!(texts(&entries.unwrap()), ["a"]);
}

pub(crate) async fn a_read_that_is_dropped_does_not_disturb_the_next(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    let dropped = transport.read("s", EntryId::default(), 10, Duration::from_millis(300));
    tokio::time::timeout(Duration::from_millis(50), dropped).await.unwrap_err();
    let read = transport.read("s", EntryId::default(), 10, AT_LAST);
    let (entries, ()) = tokio::join!(within(read), send(&*transport, vec![entry("s", "a")]));
    assert_eq!(texts(&entries.unwrap()), ["a"]);
}

pub(crate) async fn an_extent_counts_what_was_trimmed(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    assert_eq!(transport.extent("s").await, Ok(Extent::default()), "of a stream that does not exist");
    let append = |number: usize| Outgoing::Append {
        stream: Arc::from("s"),
        fields: vec![("number", number.to_string())],
        len_max: 10,
    };
    send(&*transport, (0..1000).map(append).collect()).await;
    let extent = transport.extent("s").await.unwrap();
    assert_eq!(extent.added, Some(1000));
    assert!((10..1000).contains(&extent.len), "{extent:?}");
    let entries = read(&*transport, "s", EntryId::default(), 2000).await;
    assert_eq!((entries.len() as u64, entries.last().unwrap().id), (extent.len, extent.last));
}

pub(crate) async fn a_restart_is_told_and_subscriptions_survive_it(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    subscribe(&*other, &["a"]).await;
    send(&*one, vec![entry("s", "before"), message("a", "before")]).await;
    assert_eq!(within(other.receive()).await, received("a", "before"));

    rig.stop().await;
    assert_eq!(within(other.receive()).await, Received::Interrupted);
    assert_eq!(within(one.receive()).await, Received::Interrupted);
    until(|| async { one.send(vec![entry("s", "lost")]).await.iter().all(is_disconnected).then_some(()) }).await;
    until(|| async {
        is_disconnected(&one.read("s", EntryId::default(), 1, Duration::from_millis(1)).await).then_some(())
    })
    .await;
    assert!(is_disconnected(&one.extent("s").await));
    assert!(is_disconnected(&one.range("s", EntryId::default(), 1).await));
    assert!(is_disconnected(&one.subscribers(names(&["a"])).await));
    assert!(is_disconnected(&other.subscribe(names(&["b"])).await), "it cannot be confirmed, but is wanted");

    rig.start().await;
    settled(&*other).await;
    settled(&*one).await;
    assert_eq!(subscribers(&*one, &["a", "b"]).await, [1, 1], "with Restored, not some time after it");
    assert_eq!(one.extent("s").await, Ok(Extent::default()), "the server forgot its streams");
    send(&*one, vec![message("a", "after"), message("b", "after")]).await;
    assert_eq!(within(other.receive()).await, received("a", "after"));
    assert_eq!(within(other.receive()).await, received("b", "after"));
}

pub(crate) async fn restarts_are_told_one_after_the_other(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    for _ in 0..3 {
        rig.stop().await;
        assert_eq!(within(transport.receive()).await, Received::Interrupted);
        rig.start().await;
        assert_eq!(within(transport.receive()).await, Received::Restored);
    }
}

pub(crate) async fn a_closed_connection_stays_closed(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    subscribe(&*one, &["a"]).await;
    within(one.close()).await;
    assert_eq!(within(one.receive()).await, Received::Closed);
    assert_eq!(within(one.receive()).await, Received::Closed);
    assert_eq!(one.send(vec![message("a", "m"), entry("s", "m")]).await, vec![Err(TransportError::Closed); 2]);
    assert_eq!(one.read("s", EntryId::default(), 1, AT_LAST).await, Err(TransportError::Closed));
    assert_eq!(one.extent("s").await, Err(TransportError::Closed));
    assert_eq!(one.range("s", EntryId::default(), 1).await, Err(TransportError::Closed));
    assert_eq!(one.subscribe(names(&["a"])).await, Err(TransportError::Closed));
    assert_eq!(one.unsubscribe(names(&["a"])).await, Err(TransportError::Closed));
    assert_eq!(one.subscribers(names(&["a"])).await, Err(TransportError::Closed));
    until(|| async { (subscribers(&*other, &["a"]).await == [0]).then_some(()) }).await;
}
