use super::*;

fn to(channel: &str, payload: &'static str) -> QueuedMessage {
    let outgoing = Outgoing::Publish { channel: channel.into(), payload: payload.into() };
    QueuedMessage { outgoing, request: None, on_lost: None }
}

fn append() -> QueuedMessage {
    let outgoing = Outgoing::Append { stream: "s".into(), fields: Vec::new(), len_max: 1 };
    QueuedMessage { outgoing, request: None, on_lost: None }
}

/// The payloads of each batch; `-` is an entry of the stream.
fn packed(messages: Vec<QueuedMessage>) -> Vec<Vec<String>> {
    let text = |message: &QueuedMessage| match &message.outgoing {
        Outgoing::Publish { payload, .. } => String::from_utf8(payload.to_vec()).unwrap(),
        Outgoing::Append { .. } => "-".to_owned(),
    };
    let packed = pack(messages, |server| server.starts_with("peer"));
    packed.iter().map(|batch| batch.messages.iter().map(text).collect()).collect()
}

#[test]
fn packs_messages_to_one_peer_across_its_channels() {
    let messages =
        vec![to("p#/#peer1#", "a"), to("p#/#peer2#", "b"), append(), to("p#peers#peer1#", "c"), to("p#/#peer2#", "d")];
    assert_eq!(packed(messages), [vec!["a", "c"], vec!["b", "d"], vec!["-"]]);
}

#[test]
fn no_message_overtakes_a_message_for_all_servers() {
    let messages = vec![to("p#/#peer1#", "a"), to("p#/#", "all"), to("p#/#peer1#", "b"), to("p#/#peer1#", "c")];
    assert_eq!(packed(messages), [vec!["a"], vec!["all"], vec!["b", "c"]]);
}

#[test]
fn sends_no_batch_to_a_server_that_does_not_unpack_them() {
    let messages = vec![to("p#/#node#", "a"), to("p#/#node#", "b")];
    assert_eq!(packed(messages), [["a"], ["b"]]);
}

#[test]
fn a_batch_is_bounded_in_messages_and_in_bytes() {
    let messages = (0..MESSAGES_MAX + 1).map(|_| to("p#/#peer1#", "x")).collect();
    assert_eq!(packed(messages).iter().map(Vec::len).collect::<Vec<_>>(), [MESSAGES_MAX, 1]);
    let long: &'static str = "y".repeat(BYTES_MAX / 2).leak();
    let messages = vec![to("p#/#peer1#", long), to("p#/#peer1#", long), to("p#/#peer1#", "z")];
    assert_eq!(packed(messages).iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
}
