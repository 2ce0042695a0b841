//! Tests subscriptions and published messages.

use socketioxide_redis_streams::transport::Received;

use crate::rig::{Rig, connected, message, names, received, send, subscribe, subscribers, within};

pub(crate) async fn messages_come_in_the_order_they_were_sent(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    subscribe(&*other, &["a", "b"]).await;
    let channel = |number: i32| ["a", "b", "elsewhere"][number as usize % 3];
    send(&*one, (0..600).map(|number| message(channel(number), number)).collect()).await;
    for number in (0..600).filter(|number| channel(*number) != "elsewhere") {
        assert_eq!(within(other.receive()).await, received(channel(number), number));
    }
}

pub(crate) async fn a_payload_is_bytes(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    subscribe(&*transport, &["a"]).await;
    for payload in [vec![], vec![0, 0xff, b'\r', b'\n', 0x80], b"0123".to_vec(), vec![0xff; 1 << 20]] {
        let channel = "a".into();
        let outgoing =
            socketioxide_redis_streams::transport::Outgoing::Publish { channel, payload: payload.clone().into() };
        send(&*transport, vec![outgoing]).await;
        let message = Received::Message { channel: "a".to_owned(), payload: payload.into() };
        assert!(within(transport.receive()).await == message);
    }
}

pub(crate) async fn a_subscription_is_there_when_it_is_confirmed(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    for number in 0..100 {
        let channel = format!("channel-{number}");
        subscribe(&*other, &[&channel]).await;
        send(&*one, vec![message(&channel, number)]).await;
        assert_eq!(within(other.receive()).await, received(&channel, number));
    }
}

pub(crate) async fn subscribers_are_counted(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    assert_eq!(subscribers(&*one, &[]).await, [0; 0]);
    assert_eq!(subscribers(&*one, &["a", "b", "c"]).await, [0, 0, 0]);
    subscribe(&*one, &["a"]).await;
    subscribe(&*other, &["c", "a"]).await;
    subscribe(&*other, &["a"]).await;
    assert_eq!(subscribers(&*one, &["a", "b", "c"]).await, [2, 0, 1]);
    assert_eq!(subscribers(&*other, &["c", "a"]).await, [1, 2]);
    within(other.unsubscribe(names(&["a", "b"]))).await.unwrap();
    assert_eq!(subscribers(&*one, &["a", "b", "c"]).await, [1, 0, 1]);
}

pub(crate) async fn nothing_comes_from_a_channel_that_was_left(rig: &mut impl Rig) {
    let transport = connected(rig).await;
    subscribe(&*transport, &["a", "b"]).await;
    within(transport.unsubscribe(names(&["a"]))).await.unwrap();
    send(&*transport, vec![message("a", 1), message("b", 2)]).await;
    assert_eq!(within(transport.receive()).await, received("b", 2));

    rig.stop().await;
    assert_eq!(within(transport.receive()).await, Received::Interrupted);
    within(transport.unsubscribe(names(&["b"]))).await.unwrap();
    rig.start().await;
    assert_eq!(within(transport.receive()).await, Received::Restored);
    let other = connected(rig).await;
    assert_eq!(subscribers(&*other, &["a", "b"]).await, [0, 0]);
}

pub(crate) async fn messages_that_are_not_taken_are_missed_and_counted(rig: &mut impl Rig) {
    let [one, other] = [connected(rig).await, connected(rig).await];
    subscribe(&*other, &["a"]).await;
    let total = rig.messages_max() + 100;
    send(&*one, (0..total).map(|number| message("a", number)).collect()).await;
    // Confirmed behind all of them.
    subscribe(&*other, &["b"]).await;
    let Received::Missed(missed) = within(other.receive()).await else { panic!("nothing is missed") };
    let missed = usize::try_from(missed).unwrap();
    assert!((100..total).contains(&missed), "{missed}");
    for number in missed..total {
        assert_eq!(within(other.receive()).await, received("a", number));
    }
}
