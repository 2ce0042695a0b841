//! HTTP/1.1 on the connections of a listener.

mod request_admission;
pub(crate) mod request_head;
mod serve;

pub(crate) use self::{request_admission::HttpTimeouts, serve::serve};
