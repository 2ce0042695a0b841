//! Clients that load the servers, and what each kind of load measures.

pub(crate) mod calls;
pub(crate) mod connects;
pub(crate) mod fanout;
pub(crate) mod idle;
pub(crate) mod policy_cost;
pub(crate) mod users;
pub(crate) mod wire;
