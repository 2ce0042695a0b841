//! What the call machine wants done, with the handles that its ids stand for.

use std::{sync::Arc, time::Duration};

use pointwork_core::{
    Answer, AskId, CallId, RpcRoom, SocketId,
    decisions::{Absence, Call, Candidate, Doubt},
};

use super::call::{location::SocketLocation, open_call::OpenCall, waiting_event::WaitingEvent};
use crate::telemetry::TraceContext;

/// A command with the handles that its ids stand for.
pub(super) enum CallAction {
    AskTarget {
        call: CallId,
        ask: AskId,
        key: u64,
        input: Call,
        candidates: Vec<Candidate>,
    },
    AskGrace {
        room: RpcRoom,
        question: GraceQuestion,
    },
    AskPresence {
        call: CallId,
        ask: AskId,
        key: u64,
        input: Call,
        doubt: Doubt,
    },
    Emit {
        call: CallId,
        target: SocketId,
        location: Option<SocketLocation>,
        method: Arc<str>,
        params: Option<rmpv::Value>,
        left: Duration,
        /// The daemon is told what to name the call by.
        is_named: bool,
        /// The span, if the call is traced.
        trace: Option<TraceContext>,
    },
    Notify {
        event: WaitingEvent,
    },
    Answer {
        open_call: OpenCall,
        answer: Answer<Option<rmpv::Value>>,
    },
    Forget {
        open_call: OpenCall,
    },
    WarnSeveral {
        user: Arc<str>,
        method: Arc<str>,
        count: usize,
    },
}

/// What `grace` is to be asked if nobody is found.
pub(super) struct GraceQuestion {
    pub(super) call: CallId,
    pub(super) ask: AskId,
    pub(super) key: u64,
    pub(super) input: Call,
    pub(super) absence: Absence,
}
