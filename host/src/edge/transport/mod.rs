//! The transport of a socket: HTTP polling or a WebSocket.

mod polling_sessions;
mod socket_transport;

pub(crate) use self::{
    polling_sessions::{PollingSessions, track_polling},
    socket_transport::{end_transport, has_unsent_data, silence},
};
