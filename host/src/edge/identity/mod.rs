//! Who a connection is, from what it says in its handshake.

mod capabilities;
mod field;
mod handshake;
mod identify;

pub use self::{
    capabilities::Capabilities,
    handshake::Handshake,
    identify::{Client, HandshakeRefusal, Identity, identify},
};
