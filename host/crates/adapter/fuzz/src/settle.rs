//! What writing a message changes on purpose: whole floats become integers, and JSON has text for a date and null for a
//! number that is not finite. Two messages that are equal once both are settled say the same.

use socketioxide_redis_streams::wire::value::dates_to_text;
use socketioxide_redis_streams::wire::{Body, Message, Value};

use crate::bounds::opts;

/// JavaScript's `Number.MAX_SAFE_INTEGER`.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// The message as it is read after it was written, its flags beside it.
pub(crate) fn settled(message: &Message, as_json: bool) -> (Message, Vec<(Value, Value)>) {
    let flag = |(key, flag): (&Value, &Value)| (settled_value(key, as_json), settled_value(flag, as_json));
    let flags = opts(&message.body).into_iter().flat_map(|opts| opts.flags.iter()).map(flag).collect();
    let mut message = message.clone();
    match &mut message.body {
        Body::Broadcast(broadcast) => broadcast.opts.flags = Default::default(),
        Body::SocketsJoin(change) | Body::SocketsLeave(change) => change.opts.flags = Default::default(),
        Body::DisconnectSockets(disconnect) => disconnect.opts.flags = Default::default(),
        Body::FetchSockets(fetch) => fetch.opts.flags = Default::default(),
        _ => {}
    }
    let settle = |value: &mut Value| *value = settled_value(value, as_json);
    match &mut message.body {
        Body::Broadcast(broadcast) => broadcast.packet.data.iter_mut().for_each(settle),
        Body::FetchSocketsResponse(response) => {
            response.sockets.iter_mut().flat_map(|socket| [&mut socket.handshake, &mut socket.data]).for_each(settle);
        }
        Body::ServerSideEmit(emit) => emit.packet.iter_mut().for_each(settle),
        Body::ServerSideEmitResponse(answer) | Body::BroadcastAck(answer) => settle(&mut answer.packet),
        Body::Other(other) => settle(&mut other.data),
        _ => {}
    }
    (message, flags)
}

fn settled_value(value: &Value, as_json: bool) -> Value {
    match value {
        Value::F32(number) => settled_number(f64::from(*number), as_json),
        Value::F64(number) => settled_number(*number, as_json),
        Value::Array(items) => Value::Array(items.iter().map(|item| settled_value(item, as_json)).collect()),
        Value::Map(pairs) => {
            let pair = |(key, item)| (settled_value(key, as_json), settled_value(item, as_json));
            Value::Map(pairs.iter().map(|(key, item)| pair((key, item))).collect())
        }
        Value::Ext(..) if as_json => {
            let mut text = value.clone();
            dates_to_text(&mut text);
            text
        }
        other => other.clone(),
    }
}

/// NaN is null in either case: it is kept by msgpack, but does not equal itself.
fn settled_number(number: f64, as_json: bool) -> Value {
    match number {
        _ if number.is_nan() || as_json && number.is_infinite() => Value::Nil,
        _ if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER_MAX => Value::from(number as i64),
        _ => Value::F64(number),
    }
}
