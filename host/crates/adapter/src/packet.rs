//! Packets between socketioxide's parsers and the wire.

use rmpv::Value;
use socketioxide_core::packet::{Packet, PacketData};
use socketioxide_core::parser::{Parse, ParserError};
use socketioxide_core::{Str, Value as Encoded};

use crate::args::{Args, Spread};
use crate::wire::{self, value::dates_to_text};

/// An event as the wire carries it: its name, then its arguments.
pub(crate) fn encode(parser: impl Parse, packet: &Packet) -> Result<wire::Packet, ParserError> {
    let (PacketData::Event(value, _) | PacketData::BinaryEvent(value, _)) = &packet.inner else {
        // Socketioxide broadcasts nothing but events.
        return Ok(wire::Packet { packet_type: packet.inner.index() as u8, data: Vec::new() });
    };
    let name = parser.read_event(value)?.to_owned();
    // Reading takes the attachments out, and the packet is still to be delivered here.
    let Args(args) = parser.decode_value(&mut value.clone(), true)?;
    Ok(wire::Packet::event(&name, args))
}

/// An event of the wire as socketioxide delivers it; `None` when it is none, which is counted.
pub(crate) fn decode(parser: impl Parse, nsp: &Str, mut packet: wire::Packet) -> Option<Packet> {
    event(parser, &mut packet).map(|data| Packet::event(nsp.clone(), data))
}

/// The same with one argument more, without the rest of the packet; the event itself is left as it was.
pub(crate) fn decode_with(parser: impl Parse, packet: &mut wire::Packet, last: Value) -> Option<Encoded> {
    packet.data.push(last);
    let data = event(parser, packet);
    packet.data.pop();
    data
}

/// Dates become the text that JSON has for them.
fn event(parser: impl Parse, packet: &mut wire::Packet) -> Option<Encoded> {
    packet.data.iter_mut().for_each(dates_to_text);
    let encoded = match packet.data.split_first() {
        Some((Value::String(name), args)) if packet.packet_type == wire::Packet::EVENT => {
            name.as_str().and_then(|name| parser.encode_value(&Spread(args), Some(name)).ok())
        }
        _ => None,
    };
    if encoded.is_none() {
        metrics::counter!("adapter_malformed_total", "medium" => "packet").increment(1);
    }
    encoded
}

/// The first argument of an ack, nil when it has none.
pub(crate) fn first_arg(parser: impl Parse, value: &mut Encoded) -> Value {
    parser.decode_value::<Args>(value, false).ok().and_then(Args::into_first).unwrap_or(Value::Nil)
}

/// An ack with one argument, as a socket would have sent it.
pub(crate) fn ack(parser: impl Parse, mut first: Value) -> Option<Encoded> {
    dates_to_text(&mut first);
    parser.encode_value(&Args(vec![first]), None).ok()
}
