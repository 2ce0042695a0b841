//! The payloads of events: what clients send, and what the host sends for calls.

mod incoming;
mod outgoing;

pub(crate) use self::{
    incoming::{Args, IncomingEvent, PayloadError, attachment_bytes, check_args, memory_bytes, take_field},
    outgoing::{RPC_REQUEST, RpcAnswer, RpcRequest},
};
