//! The types of single settings, which are valid once they are read.

pub(super) mod bounded;
pub(super) mod networks;
pub(super) mod secret;
pub(super) mod section;
pub(super) mod text;
