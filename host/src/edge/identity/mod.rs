//! Who a connection is, from what it says in its handshake.

mod any_value;
mod capabilities;
mod field;
mod handshake;
mod handshake_refusal;
mod identify;

pub use self::{
    capabilities::Capabilities,
    handshake::Handshake,
    handshake_refusal::HandshakeRefusal,
    identify::{ClientType, Identity, identify},
};
