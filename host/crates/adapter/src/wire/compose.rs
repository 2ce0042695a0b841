//! Converts the [`Body`] of a message to its `data`, with the keys in Node's order.

use rmpv::ValueRef;

use super::error::EncodeError;
use super::message::{Answer, Body, Broadcast, RemoteSocket, RoomsChange, ServerSideEmit};
use super::options::Options;
use super::value::written;

/// The `data` of a message. `None` for the types without data.
pub(super) fn data(body: &Body) -> Result<Option<ValueRef<'_>>, EncodeError> {
    Ok(Some(match body {
        Body::InitialHeartbeat | Body::Heartbeat | Body::AdapterClose => return Ok(None),
        Body::Other(other) if other.data.is_nil() => return Ok(None),
        Body::Other(other) => written(&other.data)?,
        Body::Broadcast(broadcast) => self::broadcast(broadcast)?,
        Body::SocketsJoin(change) | Body::SocketsLeave(change) => rooms_change(change)?,
        Body::DisconnectSockets(disconnect) => {
            map([("opts", options(&disconnect.opts)?), ("close", ValueRef::Boolean(disconnect.close))])
        }
        Body::FetchSockets(fetch) => {
            map([("opts", options(&fetch.opts)?), ("requestId", fetch.request_id.as_str().into())])
        }
        Body::FetchSocketsResponse(response) => {
            let sockets = response.sockets.iter().map(socket).collect::<Result<_, _>>()?;
            map([("requestId", response.request_id.as_str().into()), ("sockets", ValueRef::Array(sockets))])
        }
        Body::ServerSideEmit(emit) => server_side_emit(emit)?,
        Body::ServerSideEmitResponse(answer) | Body::BroadcastAck(answer) => self::answer(answer)?,
        Body::BroadcastClientCount(count) => {
            map([("requestId", count.request_id.as_str().into()), ("clientCount", count.client_count.into())])
        }
    }))
}

/// A map with its keys in this order.
pub(super) fn map<'a>(pairs: impl IntoIterator<Item = (&'static str, ValueRef<'a>)>) -> ValueRef<'a> {
    ValueRef::Map(pairs.into_iter().map(|(key, value)| (ValueRef::from(key), value)).collect())
}

fn broadcast(broadcast: &Broadcast) -> Result<ValueRef<'_>, EncodeError> {
    let data = broadcast.packet.data.iter().map(written).collect::<Result<_, _>>()?;
    let packet = map([("type", broadcast.packet.packet_type.into()), ("data", ValueRef::Array(data))]);
    let request_id = broadcast.request_id.as_ref().map(|id| ("requestId", id.as_str().into()));
    let opts = ("opts", options(&broadcast.opts)?);
    Ok(map([("packet", packet)].into_iter().chain(request_id).chain([opts])))
}

fn rooms_change(change: &RoomsChange) -> Result<ValueRef<'_>, EncodeError> {
    Ok(map([("opts", options(&change.opts)?), ("rooms", names(&change.rooms))]))
}

fn server_side_emit(emit: &ServerSideEmit) -> Result<ValueRef<'_>, EncodeError> {
    let packet = emit.packet.iter().map(written).collect::<Result<_, _>>()?;
    let request_id = emit.request_id.as_ref().map(|id| ("requestId", id.as_str().into()));
    Ok(map(request_id.into_iter().chain([("packet", ValueRef::Array(packet))])))
}

fn answer(answer: &Answer) -> Result<ValueRef<'_>, EncodeError> {
    Ok(map([("requestId", answer.request_id.as_str().into()), ("packet", written(&answer.packet)?)]))
}

fn socket(socket: &RemoteSocket) -> Result<ValueRef<'_>, EncodeError> {
    Ok(map([
        ("id", socket.id.as_str().into()),
        ("handshake", written(&socket.handshake)?),
        ("rooms", names(&socket.rooms)),
        ("data", written(&socket.data)?),
    ]))
}

fn options(opts: &Options) -> Result<ValueRef<'_>, EncodeError> {
    let pair = |(key, value)| Ok((written(key)?, written(value)?));
    let flags = opts.flags.0.iter().map(|(key, value)| pair((key, value))).collect::<Result<_, EncodeError>>()?;
    Ok(map([("rooms", names(&opts.rooms)), ("except", names(&opts.except)), ("flags", ValueRef::Map(flags))]))
}

fn names(list: &[String]) -> ValueRef<'_> {
    ValueRef::Array(list.iter().map(|name| name.as_str().into()).collect())
}
