//! Writes and reads decision records: what was asked, what was answered, and by whom, as one JSON object a line.
//!
//! A record holds a decision's exact input with time and seed, so it can be asked again. The names are those of
//! `wit/policy.wit`; the shape is in `line_format.rs`. A record holds no token, no parameters and no content, because a
//! question has none.

mod decision_record;
mod exchange;
mod line_format;
mod reader;

pub use decision_record::{Decider, DecisionRecord, RECORD_VERSION};
pub use exchange::{Exchange, Recorded};
pub use line_format::LineError;
pub use reader::{LINE_MAX_BYTES, Lines, ReadCause, ReadError, records};

#[cfg(test)]
mod tests;
