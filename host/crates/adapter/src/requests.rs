//! Requests between servers: those of this replica that wait for answers, and those of other servers that this replica serves.

mod ack_stream;
mod answers;
mod lost_requests;
mod open_requests;
mod request_server;
mod served_requests;

pub use self::ack_stream::AckStream;
pub use self::answers::{Answers, RequestFailed, SocketRequest};
pub(crate) use self::lost_requests::LostRequests;
pub(crate) use self::open_requests::{OpenRequest, OpenRequests};
pub(crate) use self::request_server::RequestServer;
pub(crate) use self::served_requests::ServedRequests;
