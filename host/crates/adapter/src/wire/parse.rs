//! Converts the `data` of a message to its [`Body`].

use rmpv::Value;

use super::error::DecodeError;
use super::fields::{Fields, at_most, wrong};
use super::limits::Limits;
use super::message::{
    Answer, Body, Broadcast, ClientCount, DisconnectSockets, FetchSockets, FetchSocketsResponse, Other, Packet,
    RemoteSocket, RoomsChange, ServerSideEmit,
};
use super::options::{Flags, Options};

/// The body of a message of the type `number`. `data` is nil if the message has none.
pub(super) fn body(number: u32, data: Value, limits: &Limits) -> Result<Body, DecodeError> {
    match number {
        1 => return Ok(Body::InitialHeartbeat),
        2 => return Ok(Body::Heartbeat),
        3..=12 => {}
        13 => return Ok(Body::AdapterClose),
        _ => return Ok(Body::Other(Other { number, data })),
    }
    let mut data = Fields::of("data", data, limits)?;
    Ok(match number {
        3 => Body::Broadcast(Broadcast {
            packet: packet(data.take("packet"), limits)?,
            request_id: data.optional_name("requestId")?,
            opts: options(&mut data)?,
        }),
        4 => Body::SocketsJoin(RoomsChange { opts: options(&mut data)?, rooms: data.rooms("rooms")? }),
        5 => Body::SocketsLeave(RoomsChange { opts: options(&mut data)?, rooms: data.rooms("rooms")? }),
        6 => Body::DisconnectSockets(DisconnectSockets {
            opts: options(&mut data)?,
            close: data.optional_bool("close")?,
        }),
        7 => Body::FetchSockets(FetchSockets { opts: options(&mut data)?, request_id: data.name("requestId")? }),
        8 => Body::FetchSocketsResponse(FetchSocketsResponse {
            request_id: data.name("requestId")?,
            sockets: sockets(&mut data)?,
        }),
        9 => Body::ServerSideEmit(ServerSideEmit {
            request_id: data.optional_name("requestId")?,
            packet: data.list("packet")?,
        }),
        10 => Body::ServerSideEmitResponse(answer(&mut data)?),
        11 => Body::BroadcastClientCount(ClientCount {
            request_id: data.name("requestId")?,
            client_count: data.count("clientCount")?,
        }),
        _ => Body::BroadcastAck(answer(&mut data)?),
    })
}

fn packet(value: Value, limits: &Limits) -> Result<Packet, DecodeError> {
    let mut fields = Fields::of("packet", value, limits)?;
    let packet_type = u8::try_from(fields.count("type")?);
    let packet_type = packet_type.map_err(|_| wrong("type", "the type of a Socket.IO packet"))?;
    Ok(Packet { packet_type, data: fields.list("data")? })
}

/// `except` and `flags` may be missing. `rooms` may not, so that no message goes to everyone by mistake.
fn options(data: &mut Fields<'_>) -> Result<Options, DecodeError> {
    let mut fields = Fields::of("opts", data.take("opts"), data.limits)?;
    let rooms = fields.rooms("rooms")?;
    let except = match fields.take("except") {
        Value::Nil => Vec::new(),
        list => fields.rooms_of("except", list)?,
    };
    let flags = match fields.take("flags") {
        Value::Nil => Flags::default(),
        Value::Map(pairs) => Flags(pairs),
        _ => return Err(wrong("flags", "a map")),
    };
    Ok(Options { rooms, except, flags })
}

fn sockets(data: &mut Fields<'_>) -> Result<Vec<RemoteSocket>, DecodeError> {
    let list = data.list("sockets")?;
    at_most("sockets", list.len(), data.limits.sockets_max)?;
    let socket = |value| {
        let mut fields = Fields::of("socket", value, data.limits)?;
        Ok(RemoteSocket {
            id: fields.name("id")?,
            handshake: fields.take("handshake"),
            rooms: fields.rooms("rooms")?,
            data: fields.take("data"),
        })
    };
    list.into_iter().map(socket).collect()
}

fn answer(data: &mut Fields<'_>) -> Result<Answer, DecodeError> {
    Ok(Answer { request_id: data.name("requestId")?, packet: data.take("packet") })
}
