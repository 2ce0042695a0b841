//! Tests a Redis that hangs, and connections that are open but dead.

use std::time::Duration;

use socketioxide_redis_streams::transport::{EntryId, Outgoing, Received, TransportError};
use tokio::time::Instant;

use crate::over_redis::OverRedis;
use crate::rig::{
    AT_LAST, connected, entry, message, names, read, received, send, subscribe, subscribers, texts, until, within,
};

#[tokio::test]
async fn a_hang_times_out_and_has_no_later_effect() {
    let mut rig = OverRedis::new().await;
    rig.options.command_timeout = Duration::from_millis(500);
    let transport = connected(&rig).await;
    subscribe(&*transport, &["a"]).await;

    rig.server.hang().await;
    let began = Instant::now();
    assert_eq!(
        within(transport.send(vec![message("a", 1), entry("s", "x")])).await,
        vec![Err(TransportError::Timeout); 2]
    );
    assert!(began.elapsed() >= rig.options.command_timeout);
    assert_eq!(within(transport.extent("s")).await, Err(TransportError::Timeout));
    assert_eq!(within(transport.subscribe(names(&["b"]))).await, Err(TransportError::Timeout));
    let block = Duration::from_millis(100);
    assert_eq!(within(transport.read("s", EntryId::default(), 1, block)).await, Err(TransportError::Timeout));

    rig.server.resume().await;
    // The very next thing: no connection was lost, and what was sent happened after all.
    assert_eq!(within(transport.receive()).await, received("a", 1));
    assert_eq!(subscribers(&*transport, &["a", "b"]).await, [1, 1]);
    until(|| async { transport.read("s", EntryId::default(), 1, block).await.ok() }).await;
    assert_eq!(texts(&read(&*transport, "s", EntryId::default(), 10).await), ["x"]);
    send(&*transport, vec![message("b", 2)]).await;
    assert_eq!(within(transport.receive()).await, received("b", 2));
}

#[tokio::test]
async fn repairs_a_subscription_that_was_not_confirmed() {
    let mut rig = OverRedis::new().await;
    rig.options.command_timeout = Duration::from_millis(100);
    let transport = connected(&rig).await;
    subscribe(&*transport, &["left"]).await;
    rig.server.hang().await;
    assert_eq!(within(transport.subscribe(names(&["late"]))).await, Err(TransportError::Timeout));
    assert_eq!(within(transport.unsubscribe(names(&["left"]))).await, Err(TransportError::Timeout));
    rig.server.resume().await;
    let other = connected(&rig).await;
    until(|| async { (subscribers(&*other, &["late", "left"]).await == [1, 0]).then_some(()) }).await;
}

#[tokio::test]
async fn gives_up_all_three_connections_after_a_silence() {
    let mut rig = OverRedis::new().await;
    rig.options.command_timeout = Duration::from_millis(300);
    rig.options.silence_max = Duration::from_secs(1);
    let transport = connected(&rig).await;
    subscribe(&*transport, &["a"]).await;

    rig.server.hang().await;
    assert_eq!(within(transport.receive()).await, Received::Interrupted);
    let is_disconnected = |error| matches!(error, TransportError::Disconnected(_)).then_some(());
    until(|| async { transport.extent("s").await.err().and_then(is_disconnected) }).await;
    let block = Duration::from_millis(10);
    until(|| async { transport.read("s", EntryId::default(), 1, block).await.err().and_then(is_disconnected) }).await;

    rig.server.resume().await;
    assert_eq!(within(transport.receive()).await, Received::Restored);
    until(|| async { transport.read("s", EntryId::default(), 1, block).await.ok() }).await;
    until(|| async { transport.extent("s").await.ok() }).await;
    send(&*transport, vec![message("a", 1)]).await;
    assert_eq!(within(transport.receive()).await, received("a", 1));
}

#[tokio::test]
async fn gives_up_a_write_that_hangs() {
    let mut rig = OverRedis::new().await;
    rig.options.command_timeout = Duration::from_millis(300);
    rig.options.silence_max = Duration::from_secs(1);
    let [one, other] = [connected(&rig).await, connected(&rig).await];
    drop(other);
    rig.server.hang().await;
    // More than the kernel takes for a peer that does not read.
    let large = || Outgoing::Publish { channel: "a".into(), payload: vec![b'x'; 1 << 20].into() };
    let results = within(one.send((0..64).map(|_| large()).collect())).await;
    assert!(results.iter().all(Result::is_err), "{results:?}");
    until(|| async { matches!(one.extent("s").await, Err(TransportError::Disconnected(_))).then_some(()) }).await;
    rig.server.resume().await;
    until(|| async { one.send(vec![entry("s", "x")]).await[0].clone().ok() }).await;
}

#[tokio::test]
async fn bounds_the_number_of_waiting_commands() {
    let mut rig = OverRedis::new().await;
    rig.options.command_timeout = AT_LAST;
    rig.options.commands_max = 16;
    let transport = connected(&rig).await;
    rig.server.hang().await;
    let large = Outgoing::Publish { channel: "a".into(), payload: vec![b'x'; 1 << 20].into() };
    // The first ones fill the socket, sixteen wait, and the others are refused at once.
    let batches = (0..64).map(|_| {
        let (transport, large) = (transport.clone(), large.clone());
        tokio::spawn(async move { transport.send(vec![large]).await })
    });
    let batches: Vec<_> = batches.collect();
    until(|| async { batches.iter().any(|batch| batch.is_finished()).then_some(()) }).await;
    rig.server.resume().await;
    let mut results = Vec::new();
    for batch in batches {
        results.extend(within(batch).await.unwrap());
    }
    assert!(results.contains(&Ok(())) && results.contains(&Err(TransportError::Timeout)), "{results:?}");
}
