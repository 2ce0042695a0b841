use super::*;

fn message(payload: &'static str) -> QueuedMessage {
    let outgoing = Outgoing::Publish { channel: "c".into(), payload: payload.into() };
    QueuedMessage { outgoing, request: None, on_lost: None }
}

async fn taken(outbox: &Outbox) -> usize {
    outbox.take().await.len()
}

#[tokio::test]
async fn is_bounded_in_messages_and_in_bytes() {
    let outbox = Outbox::new(2, 10);
    assert_eq!(outbox.push(message("12345")), Ok(()));
    assert_eq!(outbox.push(message("1234")), Err(OutboxError::Full));
    assert_eq!(outbox.push(message("1")), Ok(()));
    assert_eq!(outbox.push(message("")), Err(OutboxError::Full));
    assert_eq!(taken(&outbox).await, 2);
    assert_eq!(outbox.push(message("123456789")), Ok(()), "taken messages do not count");
}

#[tokio::test]
async fn gives_out_queued_messages_after_it_was_closed() {
    let outbox = Outbox::new(1_000, 1_000);
    (0..BATCH_MAX + 1).for_each(|_| outbox.push(message("")).unwrap());
    outbox.close();
    assert_eq!(outbox.push(message("")), Err(OutboxError::Closed));
    assert_eq!((taken(&outbox).await, taken(&outbox).await, taken(&outbox).await), (BATCH_MAX, 1, 0));
}
