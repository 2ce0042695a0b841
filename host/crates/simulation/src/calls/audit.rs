//! Judges worlds of calls. What truly happened, and what each process was told of it, decide which answers a call may
//! get, and when. The auditor shares no code with the machines, and predicts nothing.
//!
//! # Invariants
//!
//! Asserted after every event:
//! - **one-answer**: every call is answered exactly once, or forgotten when its caller left; its caller hears it once.
//! - **in-time**: no call is open after its deadline by its process's clock, and none has timed out before it.
//! - **sent-once**: a request is sent once at most, to a daemon that is known to have the method, and no daemon gets it
//!   twice.
//! - **no-invented-success**: a result is what the daemon gave to that very request.
//! - **positive-evidence**: `RPC target disconnected` only when the process was told so after the request was sent,
//!   other than by mere silence unless the rule trusts in it, and when the target has truly left or taken the method
//!   back, or its process has ended or was cut off since.
//! - **time-to-return**: nor before a daemon that may hand in its result had the time to return, nor once it is back.
//! - **not-available**: `RPC method not available` only when nobody was known there at some moment of the wait, and not
//!   before its end; or when `target` said that nobody is good enough.
//! - **unreachable-is-said**: `RPC target unreachable` only while the link is down and only others have the method, or
//!   after the host said that the answer is lost.
//! - **handed-in**: a result that is handed in is taken if, and only if, the call is in flight, of that user, and was
//!   sent as resumable.
//! - **held**: callers are told that they wait when they do, with true spans, and once that it is over.
//! - **true-news**: what a process is told of others' sockets is true.
//! - **no-waiting-while-served**: no call waits for a method that somebody within the cluster is known to have.
//! - **obeyed**: whenever more is known of a target, `presence` is asked; and what a rule answers to the last question
//!   about a call is done at once.
//! - **one-timer**: an open call has one timer, and a process without open calls has none, nor anything else of calls.
//!
//! When everything has healed:
//! - **in-step**: every process knows exactly what all others' sockets have registered.
//! - **nothing-left**: no call, request, acknowledgement, socket or timer is left of what has ended.

mod auditor;
mod call_record;
mod commands;
mod process_view;
mod reports;
mod steady_state;
mod truth;

pub(super) use auditor::CallAuditor;
pub(super) use call_record::CallRecord;
