//! The types of single values: what cannot be wrong once it is read.

pub(super) mod bounded;
pub(super) mod networks;
pub(super) mod secret;
pub(super) mod text;
