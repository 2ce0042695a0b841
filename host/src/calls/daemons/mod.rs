//! Daemons that other replicas announce, that Node servers have, and that come back on another socket.

pub(super) mod announced;
mod call_name;
pub(super) mod late_results;
pub(super) mod node_lookup;
pub(super) mod resume;
