//! Converts the replies of Redis, and checks everything in them.

use bytes::Bytes;
use fred::error::{Error, ErrorKind};
use fred::types::Value;

use crate::transport::types::{EntryId, Extent, StreamEntry, TransportError};

/// Converts an error of fred. No error quotes an argument of a command.
pub(super) fn error(error: Error) -> TransportError {
    let details = error.details().to_owned();
    match error.kind() {
        ErrorKind::Timeout | ErrorKind::Backpressure => TransportError::Timeout,
        ErrorKind::Parse | ErrorKind::Protocol | ErrorKind::NotFound => TransportError::Reply(details),
        // An error of Redis itself starts with a code: ERR, NOPERM, READONLY.
        _ if is_code(details.split(' ').next().unwrap_or_default()) => TransportError::Refused(details),
        _ => TransportError::Disconnected(details),
    }
}

fn is_code(word: &str) -> bool {
    word.len() >= 3 && word.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The reply to XREAD of one stream: null if nothing came.
pub(super) fn entries(reply: Value) -> Result<Vec<StreamEntry>, TransportError> {
    let streams = match reply {
        Value::Null => return Ok(Vec::new()),
        reply => array(reply, "streams")?,
    };
    let mut all = Vec::new();
    for stream in streams {
        let [_, entries] = exactly(stream, "a stream with its entries")?;
        all.extend(entries_of_one(entries)?);
    }
    Ok(all)
}

/// The reply to XRANGE or XREVRANGE.
pub(super) fn entries_of_one(reply: Value) -> Result<Vec<StreamEntry>, TransportError> {
    array(reply, "entries")?.into_iter().map(entry).collect()
}

fn entry(reply: Value) -> Result<StreamEntry, TransportError> {
    let [id, fields] = exactly(reply, "an entry")?;
    let id = text(&id)?.parse()?;
    let fields = match fields {
        // A deleted entry.
        Value::Null => Vec::new(),
        fields => pairs(array(fields, "fields")?)?
            .into_iter()
            .map(|(key, value)| Ok((bytes(key)?, bytes(value)?)))
            .collect::<Result<_, TransportError>>()?,
    };
    Ok(StreamEntry { id, fields })
}

/// The reply to XINFO STREAM.
pub(super) fn extent(reply: Value) -> Result<Extent, TransportError> {
    let (mut last, mut added, mut len) = (None, None, None);
    for (key, value) in pairs(array(reply, "the state of a stream")?)? {
        match text(&key)? {
            "last-generated-id" => last = Some(text(&value)?.parse::<EntryId>()?),
            "entries-added" => added = Some(count(&value)?),
            "length" => len = Some(count(&value)?),
            _ => {}
        }
    }
    match (last, len) {
        (Some(last), Some(len)) => Ok(Extent { last, added, len }),
        _ => Err(unexpected("the state of a stream without its length or its last id")),
    }
}

/// The reply to PUBSUB NUMSUB or SHARDNUMSUB.
pub(super) fn counts(reply: Value, channels: &[String]) -> Result<Vec<u64>, TransportError> {
    let pairs = pairs(array(reply, "the subscribers of channels")?)?;
    if pairs.len() != channels.len() {
        return Err(unexpected("the subscribers of other channels"));
    }
    let counted = pairs.into_iter().zip(channels).map(|((channel, subscribers), asked)| match bytes(channel)? {
        channel if channel == asked.as_bytes() => count(&subscribers),
        _ => Err(unexpected("the subscribers of another channel")),
    });
    counted.collect()
}

/// Whether this is the reply to PING with a text. It is the text, or an array that ends with it on a subscribed RESP2 connection.
pub(super) fn is_pong(reply: Value, asked: &str) -> bool {
    let pong = match reply {
        Value::Array(mut pong) => pong.pop().unwrap_or(Value::Null),
        pong => pong,
    };
    bytes(pong).is_ok_and(|pong| pong == asked.as_bytes())
}

/// A string, without copying it.
pub(super) fn bytes(value: Value) -> Result<Bytes, TransportError> {
    match value {
        Value::String(text) => Ok(text.into_inner()),
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(unexpected(format!("{} where a string belongs", other.kind()))),
    }
}

fn text(value: &Value) -> Result<&str, TransportError> {
    match value {
        Value::String(text) => Ok(text),
        other => Err(unexpected(format!("{} where a text belongs", other.kind()))),
    }
}

fn count(value: &Value) -> Result<u64, TransportError> {
    let count = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    count.ok_or_else(|| unexpected("no number where a count belongs"))
}

fn array(value: Value, what: &str) -> Result<Vec<Value>, TransportError> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(unexpected(format!("{} where {what} belong", other.kind()))),
    }
}

fn exactly<const N: usize>(value: Value, what: &str) -> Result<[Value; N], TransportError> {
    array(value, what)?.try_into().map_err(|_| unexpected(format!("not the parts of {what}")))
}

fn pairs(values: Vec<Value>) -> Result<Vec<(Value, Value)>, TransportError> {
    if !values.len().is_multiple_of(2) {
        return Err(unexpected("a key without a value"));
    }
    let mut values = values.into_iter();
    Ok(std::iter::from_fn(|| values.next().zip(values.next())).collect())
}

fn unexpected(what: impl Into<String>) -> TransportError {
    TransportError::Reply(what.into())
}

#[cfg(test)]
mod tests;
