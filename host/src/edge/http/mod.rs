//! HTTP/1.1 on the connections of a listener.

mod request_admission;
pub(crate) mod request_head;
mod serve;
mod timed_body;
mod timeouts;

pub(crate) use self::{serve::serve, timeouts::HttpTimeouts};
