//! The commands of the call machine. The host carries them out in the order given, outside the lock of the machine.

use std::sync::Arc;
use std::time::Duration;

use super::answer::Answer;
use crate::decisions::{Absence, Call, Candidate, Doubt};
use crate::ids::{AskId, CallId, SocketId};

/// One thing to do. Every call that was taken on ends with exactly one [`CallCommand::Answer`] or [`CallCommand::Forget`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallCommand<R> {
    /// Ask `target` and bring the choice by [`super::machine::CallMachine::handle_choice`].
    AskTarget {
        /// The call.
        call: CallId,
        /// The question's number.
        ask: AskId,
        /// The user whose call it is.
        user: Arc<str>,
        /// What the policy is told of the call.
        input: Call,
        /// Oldest registration first; 1 to [`crate::decisions::CANDIDATES_MAX`].
        candidates: Vec<Candidate>,
    },
    /// Ask `grace` and bring the wait by [`super::machine::CallMachine::handle_wait`].
    AskGrace {
        /// The call.
        call: CallId,
        /// The question's number.
        ask: AskId,
        /// The user whose call it is.
        user: Arc<str>,
        /// What the policy is told of the call.
        input: Call,
        /// What is known of the method's absence.
        absence: Absence,
    },
    /// Ask `presence` and bring the verdict by [`super::machine::CallMachine::handle_judgement`].
    AskPresence {
        /// The call.
        call: CallId,
        /// The question's number.
        ask: AskId,
        /// The user whose call it is.
        user: Arc<str>,
        /// What the policy is told of the call.
        input: Call,
        /// What is known of the target.
        doubt: Doubt,
    },
    /// Send the request to the target and bring its result by [`super::machine::CallMachine::handle_result`], or
    /// [`super::machine::CallMachine::handle_unanswerable`] if it cannot be sent or can no longer be answered, or
    /// [`super::machine::CallMachine::handle_unreachable`] if that is for want of the link to the target's replica.
    Emit {
        /// The call.
        call: CallId,
        /// The daemon's socket.
        target: SocketId,
        /// Until the call's deadline.
        left: Duration,
        /// The daemon may hand its result in after a reconnect: it is told the call's id.
        resumable: bool,
    },
    /// Tell the caller that its call is held for want of its daemon, or that it goes on. At most once for each wait and
    /// each doubt, and once for its end unless that is the answer.
    Held {
        /// The call.
        call: CallId,
        /// How long it has been without its daemon: since its arrival, or since the doubt arose.
        since: Duration,
        /// How long it will be held at most; zero: it is held no longer.
        left: Duration,
    },
    /// Answer the caller and drop what is kept for the call.
    Answer {
        /// The call.
        call: CallId,
        /// How it ended.
        answer: Answer<R>,
    },
    /// The caller is gone: drop what is kept for the call.
    Forget {
        /// The call.
        call: CallId,
    },
    /// Log that several sockets have registered one method of a user; at most once a minute for each.
    WarnSeveral {
        /// The user.
        user: Arc<str>,
        /// The method.
        method: Arc<str>,
        /// How many sockets have it.
        count: usize,
    },
}
