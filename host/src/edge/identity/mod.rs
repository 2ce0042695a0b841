//! Who a connection is, from what it says in its handshake.

mod any_value;
mod capabilities;
mod field;
mod handshake;
mod identify;

pub use self::{
    capabilities::Capabilities,
    handshake::Handshake,
    identify::{ClientType, HandshakeRefusal, Identity, identify},
};
