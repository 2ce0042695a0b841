//! Device sessions: which of a device's sockets is the one that counts, across the cluster and through any storm.
//!
//! - [`sessions`]: the machine of one replica for all its devices. It names its invariants.
//! - [`limiter`]: how often somebody may try to register, by name, before anything of it is looked at.
//! - [`throttle`]: how often a device that proved itself may reconnect.
//! - [`record`]: what the cluster's store holds of a device, and how it changes.
//! - [`register`]: what a socket brings to register, and how that was found to be. [`command`]: what the machine wants
//!   done. [`event`]: what it decided, for the log.

pub mod command;
pub mod event;
pub mod limiter;
pub mod record;
pub mod register;
pub mod sessions;
pub mod settings;
pub mod throttle;
mod window;

pub use command::DeviceCommand;
pub use event::{Outcome, Reason, SessionEvent};
pub use limiter::{Admission, Key, Limiter};
pub use record::{Ended, Happened, Holder, Record, Status};
pub use register::{
    AuthError, CloseReason, Credentials, Moment, OpId, OwnerAnswer, Proof, RegisterId, Registration, StoreAway,
    Swapped, ThrottleReason, TooManySockets,
};
pub use sessions::{DeviceLoad, LocalHolder, Sessions};
pub use settings::{DeviceSettings, LimiterSettings, ThrottleSettings};
pub use throttle::{LoadBand, Throttle};
