//! Replicas in one process, with transports that fail on request and sockets that record what they get.

pub(crate) mod buffered_sockets;
pub(crate) mod faulty_transport;
pub(crate) mod followed_replica;
pub(crate) mod recording_socket;
pub(crate) mod replicas;
