//! Decides which of a device's sockets holds its session, across the cluster and through any storm of reconnects.
//!
//! - [`sessions`]: the machine of one replica for all its devices. It names its invariants.
//! - [`limiter`]: how often somebody may try to register, by name, before anything of it is looked at.
//! - [`throttle`]: how often a device that proved itself may reconnect.
//! - [`record`]: what the cluster's store holds of a device, and how it changes.
//! - [`registration`]: what a socket brings to register, and how that was found to be. [`command`]: what the machine wants
//!   done. [`event`]: what it decided, for the log.

pub mod command;
pub mod event;
pub mod limiter;
pub mod record;
pub mod registration;
pub mod sessions;
pub mod settings;
pub mod throttle;
mod window;

pub use command::DeviceCommand;
pub use event::{SessionEvent, SessionOutcome, SessionReason};
pub use limiter::{Admission, Limiter, LimiterKey};
pub use record::{DeviceRecord, DeviceStatus, Ended, Happened, Holder};
pub use registration::{
    AuthError, CloseReason, Credentials, Moment, OpId, OwnerAnswer, Proof, RegisterId, Registration, StoreAway,
    SwapResult, ThrottleReason, TooManySockets,
};
pub use sessions::{DeviceLoad, DeviceSessions, LocalHolder};
pub use settings::{DeviceSettings, LimiterSettings, ThrottleSettings};
pub use throttle::{LoadBand, Throttle};
