//! The check of one input.

use socketioxide_redis_streams::wire::{EncodeError, Limits, Message};

use crate::bounds::{assert_within, depth};
use crate::medium::{Entry, Medium, Payload};
use crate::memory;
use crate::settle::settled;

/// So tight that a short input reaches each of them.
const NARROW: Limits = Limits { message_bytes_max: 256, name_bytes_max: 8, rooms_max: 2, sockets_max: 1 };

/// Reads an input with the default limits and with narrow ones, and writes what was understood for both media.
///
/// # Panics
/// When the codec breaks one of its promises.
pub fn check<M: Medium>(input: &M) {
    let wide = Limits::default();
    let understood = memory::bounded(input.size(), || match input.decode(&wide) {
        Ok(message) => Some(message),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    });
    if let Ok(message) = input.decode(&NARROW) {
        assert!(input.size() <= NARROW.message_bytes_max, "{input:?}");
        assert!(understood.is_some(), "understood with narrow limits alone: {message:?}");
        round_trips(&message, &NARROW);
    }
    if let Some(message) = understood {
        round_trips(&message, &wide);
    }
}

/// By both media, whichever the message came by: what is short in one is long in the other.
fn round_trips(message: &Message, limits: &Limits) {
    round_trip::<Payload>(message, limits);
    round_trip::<Entry>(message, limits);
}

/// Writes a message that was read with these limits, and reads that.
fn round_trip<M: Medium>(message: &Message, limits: &Limits) {
    assert_within(message, limits);
    let written = match M::encode(message, limits) {
        Ok(written) => written,
        Err(EncodeError::TooDeep { max }) => return assert!(depth(message) > max, "not too deep: {message:?}"),
        Err(EncodeError::TooLong { bytes, max }) => return assert!(bytes > max && max == limits.message_bytes_max),
        Err(error) => panic!("{error}: {message:?}"),
    };
    assert!(written.size() <= limits.message_bytes_max);
    let read = written.decode(limits).unwrap_or_else(|error| panic!("{error}: {written:?} of {message:?}"));
    let as_json = written.is_json();
    assert_eq!(settled(&read, as_json), settled(message, as_json), "by {written:?}");
    let again = M::encode(&read, limits).unwrap_or_else(|error| panic!("{error}: {read:?}"));
    assert_eq!(again, written, "of {read:?}");
}
