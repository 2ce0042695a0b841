//! Converts packets between socketioxide's parsers and the wire.

use rmpv::Value;
use socketioxide_core::packet::{Packet, PacketData};
use socketioxide_core::parser::{Parse, ParserError};
use socketioxide_core::{Str, Value as Encoded};

use super::args::{Args, BorrowedArgs};
use crate::wire::{self, value::dates_to_text};

/// Converts an event to the wire: its name, then its arguments.
pub(crate) fn encode(parser: impl Parse, packet: &Packet) -> Result<wire::Packet, ParserError> {
    let (PacketData::Event(value, _) | PacketData::BinaryEvent(value, _)) = &packet.inner else {
        // Socketioxide broadcasts only events.
        return Ok(wire::Packet { packet_type: packet.inner.index() as u8, data: Vec::new() });
    };
    let name = parser.read_event(value)?.to_owned();
    // Decoding takes the attachments out of the value, and the packet is still delivered to local sockets.
    let Args(args) = parser.decode_value(&mut value.clone(), true)?;
    Ok(wire::Packet::event(&name, args))
}

/// Converts an event of the wire to a packet of socketioxide. Counts a malformed packet and returns `None`.
pub(crate) fn decode(parser: impl Parse, nsp: &Str, mut packet: wire::Packet) -> Option<Packet> {
    event(parser, &mut packet).map(|data| Packet::event(nsp.clone(), data))
}

/// Encodes an event of the wire with one more argument, and leaves the event itself unchanged.
pub(crate) fn decode_with(parser: impl Parse, packet: &mut wire::Packet, last: Value) -> Option<Encoded> {
    packet.data.push(last);
    let data = event(parser, packet);
    packet.data.pop();
    data
}

/// Encodes an event. Dates become their JSON text.
fn event(parser: impl Parse, packet: &mut wire::Packet) -> Option<Encoded> {
    packet.data.iter_mut().for_each(dates_to_text);
    let encoded = match packet.data.split_first() {
        Some((Value::String(name), args)) if packet.packet_type == wire::Packet::EVENT => {
            name.as_str().and_then(|name| parser.encode_value(&BorrowedArgs(args), Some(name)).ok())
        }
        _ => None,
    };
    if encoded.is_none() {
        metrics::counter!("adapter_malformed_total", "medium" => "packet").increment(1);
    }
    encoded
}

/// The first argument of an acknowledgement; nil if it has none.
pub(crate) fn first_arg(parser: impl Parse, value: &mut Encoded) -> Value {
    parser.decode_value::<Args>(value, false).ok().and_then(Args::into_first).unwrap_or(Value::Nil)
}

/// Encodes an acknowledgement with one argument, as a socket sends it.
pub(crate) fn ack(parser: impl Parse, mut first: Value) -> Option<Encoded> {
    dates_to_text(&mut first);
    parser.encode_value(&Args(vec![first]), None).ok()
}
