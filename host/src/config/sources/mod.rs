//! Where settings come from, and how their layers are laid over each other.

pub(super) mod environment;
pub(super) mod error;
pub(super) mod layers;
pub(super) mod load;
