//! One call: how it is read, how long it may take, what it may use, and what the host keeps while it is open.

pub(super) mod budget;
pub(super) mod deadlines;
pub(super) mod location;
pub(super) mod open_call;
pub(super) mod request;
pub(super) mod waiting_event;
