//! Several messages to one replica in one, when they wait to be sent together anyway.
//!
//! What Redis and its clients do for a message costs more than the message. So what waits for one peer goes as one: a message of
//! its own type that holds the others as they are. Only peers that say in their heartbeats that they open parcels get any.

use std::collections::HashMap;

use rmpv::Value;

use crate::cluster::{Inner, PEERS_NSP};
use crate::outbox::Letter;
use crate::transport::Outgoing;
use crate::wire::{Body, Channels, Message, Other, pubsub};

/// A message that holds others, each as it would have been published: a list of binary.
pub(crate) const PARCEL: u32 = 107;
/// How many messages one holds.
const MESSAGES_MAX: usize = 64;
/// How many bytes of messages one holds: what is larger gains nothing.
const BYTES_MAX: usize = 64 << 10;

/// Letters that go to Redis as one message, in their order.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) letters: Vec<Letter>,
    bytes: usize,
}

impl Parcel {
    fn add(&mut self, letter: Letter, bytes: usize) {
        self.bytes += bytes;
        self.letters.push(letter);
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.letters.len() < MESSAGES_MAX && self.bytes + bytes <= BYTES_MAX
    }
}

/// Puts what is for one peer together. Each receiver gets what is for it in the order of the letters: a message to somebody whose
/// parcels are not opened, or to all, is not overtaken.
pub(crate) fn pack(letters: Vec<Letter>, opens: impl Fn(&str) -> bool) -> Vec<Parcel> {
    let mut packed: Vec<Parcel> = Vec::with_capacity(letters.len());
    let mut open: HashMap<String, usize> = HashMap::new();
    for letter in letters {
        if let Outgoing::Publish { channel, payload } = &letter.outgoing {
            let bytes = payload.len();
            match Channels::server_of(channel).filter(|server| opens(server)) {
                Some(server) => {
                    if let Some(parcel) = open.get(server).and_then(|at| packed.get_mut(*at))
                        && parcel.has_room(bytes)
                    {
                        parcel.add(letter, bytes);
                        continue;
                    }
                    open.insert(server.to_owned(), packed.len());
                }
                None => open.clear(),
            }
            packed.push(Parcel { letters: vec![letter], bytes });
        } else {
            packed.push(Parcel { letters: vec![letter], bytes: 0 });
        }
    }
    packed
}

/// What goes to Redis for it; `None` when it cannot be written, which its bounds rule out unless those of a message are smaller.
pub(crate) fn seal(inner: &Inner, parcel: &Parcel) -> Option<Outgoing> {
    let [first, others @ ..] = parcel.letters.as_slice() else { return None };
    let Outgoing::Publish { channel, .. } = &first.outgoing else { return Some(first.outgoing.clone()) };
    if others.is_empty() {
        return Some(first.outgoing.clone());
    }
    let payload = |letter: &Letter| match &letter.outgoing {
        Outgoing::Publish { payload, .. } => Some(Value::Binary(payload.to_vec())),
        Outgoing::Append { .. } => None,
    };
    let data = Value::Array(parcel.letters.iter().filter_map(payload).collect());
    let body = Body::Other(Other { number: PARCEL, data });
    let message = Message { uid: inner.uid.clone(), nsp: PEERS_NSP.to_owned(), body };
    let payload = pubsub::encode(&message, &inner.settings.limits).ok()?;
    Some(Outgoing::Publish { channel: channel.clone(), payload: payload.into() })
}

/// The messages in one, as they were published; those in it that are none, or are parcels themselves, are counted.
pub(crate) fn open(inner: &Inner, data: Value) -> impl Iterator<Item = Message> {
    let payloads = if let Value::Array(payloads) = data { payloads } else { Vec::new() };
    let is_parcel = |message: &Message| matches!(&message.body, Body::Other(other) if other.number == PARCEL);
    payloads.into_iter().filter_map(move |payload| {
        let message = payload.as_slice().and_then(|payload| pubsub::decode(payload, &inner.settings.limits).ok());
        let message = message.filter(|message| !is_parcel(message));
        if message.is_none() {
            metrics::counter!("adapter_malformed_total", "medium" => "channel").increment(1);
        }
        message
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn to(channel: &str, payload: &'static str) -> Letter {
        let outgoing = Outgoing::Publish { channel: channel.into(), payload: payload.into() };
        Letter { outgoing, request: None, unsent: None }
    }

    fn append() -> Letter {
        let outgoing = Outgoing::Append { stream: "s".into(), fields: Vec::new(), len_max: 1 };
        Letter { outgoing, request: None, unsent: None }
    }

    /// The payloads of each parcel; `-` is an entry of the stream.
    fn packed(letters: Vec<Letter>) -> Vec<Vec<String>> {
        let text = |letter: &Letter| match &letter.outgoing {
            Outgoing::Publish { payload, .. } => String::from_utf8(payload.to_vec()).unwrap(),
            Outgoing::Append { .. } => "-".to_owned(),
        };
        let packed = pack(letters, |server| server.starts_with("peer"));
        packed.iter().map(|parcel| parcel.letters.iter().map(text).collect()).collect()
    }

    #[test]
    fn what_is_for_one_peer_goes_together_whichever_its_channel() {
        let letters = vec![
            to("p#/#peer1#", "a"),
            to("p#/#peer2#", "b"),
            append(),
            to("p#peers#peer1#", "c"),
            to("p#/#peer2#", "d"),
        ];
        assert_eq!(packed(letters), [vec!["a", "c"], vec!["b", "d"], vec!["-"]]);
    }

    #[test]
    fn nothing_overtakes_what_is_for_all() {
        let letters = vec![to("p#/#peer1#", "a"), to("p#/#", "all"), to("p#/#peer1#", "b"), to("p#/#peer1#", "c")];
        assert_eq!(packed(letters), [vec!["a"], vec!["all"], vec!["b", "c"]]);
    }

    #[test]
    fn who_does_not_open_them_gets_none() {
        let letters = vec![to("p#/#node#", "a"), to("p#/#node#", "b")];
        assert_eq!(packed(letters), [["a"], ["b"]]);
    }

    #[test]
    fn one_holds_so_many() {
        let letters = (0..MESSAGES_MAX + 1).map(|_| to("p#/#peer1#", "x")).collect();
        assert_eq!(packed(letters).iter().map(Vec::len).collect::<Vec<_>>(), [MESSAGES_MAX, 1]);
        let long: &'static str = "y".repeat(BYTES_MAX / 2).leak();
        let letters = vec![to("p#/#peer1#", long), to("p#/#peer1#", long), to("p#/#peer1#", "z")];
        assert_eq!(packed(letters).iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }
}
