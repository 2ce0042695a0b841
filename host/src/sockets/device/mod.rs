//! The namespace `/device`.

mod namespace;
mod register_payload;

pub(crate) use self::namespace::mount;
