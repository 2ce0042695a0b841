//! The records of devices.

mod alone;
mod codec;
mod place;
mod redis;
mod store;
mod unread;

pub use self::store::DeviceStore;
pub(crate) use self::unread::Unread;
