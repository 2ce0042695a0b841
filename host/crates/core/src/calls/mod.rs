//! Follows every rpc-call from its arrival to its one answer.
//!
//! - [`machine`]: the call machine of a shard of users. It names its invariants.
//! - [`directory`]: which socket registered which method. [`history`]: when methods had no daemon, and for how long.
//! - [`command`]: what the machine wants done. [`answer`]: how a call ends, and what a client is told then.
//! - [`settings`]: the bounds of a machine.

pub mod answer;
mod call_index;
pub mod command;
pub mod directory;
pub mod history;
pub mod machine;
mod open_call;
pub mod settings;
mod warnings;

pub use answer::{Answer, CallRefused, RegisterError, message};
pub use command::CallCommand;
pub use directory::{Candidates, Directory, Reach};
pub use history::{History, Past};
pub use machine::{CallLoad, CallMachine, RECHECK_MIN_MS, TARGET_ASKS_MAX, UNANSWERABLE};
pub use settings::CallSettings;
