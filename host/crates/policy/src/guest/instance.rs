//! Runs a guest: one instance in its own store. No other file calls guest code.

use super::backtrace::function_names;
use super::failure::{Failure, FailureKind};
use super::log::GuestLog;
use crate::contract::{Info, Moment, PolicyError, Slot};
use crate::engine::Engine;
use crate::sandbox::{Sandbox, SlotLimits, Stream};
use crate::text::bounded;
use std::time::{Duration, Instant};
use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline, WasmBacktrace};

/// How long describing or configuring may take, in milliseconds: longer than a decision.
pub(super) const SETUP_DEADLINE_MS: u64 = 200;

/// Every setup happens at the same moment, so that all instances of a generation are alike.
const SETUP_MOMENT: Moment = Moment { now_ms: 0, seed: 0, key: 0 };

/// What a guest may hand to the host in one call, in bytes: a line it prints, the text of an error.
const LIFT_MAX_BYTES: usize = 128 * 1024;

const MESSAGE_MAX_BYTES: usize = 1024;
const STDERR_MAX_BYTES: usize = 512;

pub(super) struct Instance<S: Slot> {
    store: Store<Sandbox>,
    guest: S::Guest,
}

/// A guest's answer to a question, and how long its call took.
pub(crate) struct GuestAnswer<V> {
    pub(crate) verdict: Result<V, Failure>,
    pub(crate) cost: Duration,
}

impl<S: Slot> Instance<S> {
    /// Makes an instance that is not configured yet. It runs guest code: what is initialised at the start.
    pub(super) fn new(
        engine: &Engine,
        linked: &S::Linked,
        limits: &SlotLimits,
        deadline_ms: u64,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(engine.wasmtime(), Sandbox::new(limits));
        store.limiter(|sandbox| &mut sandbox.limiter);
        store.set_hostcall_fuel(LIFT_MAX_BYTES);
        store.epoch_deadline_callback(on_tick);
        begin_call(&mut store, &SETUP_MOMENT, deadline_ms);
        match S::instantiate(linked, &mut store) {
            Ok(guest) => Ok(Self { store, guest }),
            Err(error) => Err(failure_of(&store, &error)),
        }
    }

    /// Asks the guest for its description.
    pub(super) fn describe(&mut self) -> Result<Info, Failure> {
        begin_call(&mut self.store, &SETUP_MOMENT, SETUP_DEADLINE_MS);
        S::describe(&self.guest, &mut self.store).map_err(|error| failure_of(&self.store, &error))
    }

    /// Gives the guest its configuration; the inner error is its refusal.
    pub(super) fn configure(&mut self, json: &str, deadline_ms: u64) -> Result<Result<(), String>, Failure> {
        begin_call(&mut self.store, &SETUP_MOMENT, deadline_ms);
        match S::configure(&self.guest, &mut self.store, json) {
            Ok(configured) => Ok(configured.map_err(|refusal| bounded(&refusal, MESSAGE_MAX_BYTES))),
            Err(error) => Err(failure_of(&self.store, &error)),
        }
    }

    /// Asks the guest for a verdict.
    pub(super) fn ask(&mut self, question: &S::Question, deadline_ms: u64) -> GuestAnswer<S::Verdict> {
        let begun = Instant::now();
        let verdict = self.call(question, deadline_ms);
        GuestAnswer { verdict, cost: begun.elapsed() }
    }

    fn call(&mut self, question: &S::Question, deadline_ms: u64) -> Result<S::Verdict, Failure> {
        begin_call(&mut self.store, S::moment(question), deadline_ms);
        let answered = |kind, message| Failure { kind, message, instance_lost: false, is_counted: true };
        match S::ask(&self.guest, &mut self.store, question) {
            Ok(Ok(verdict)) => match S::check(question, &verdict) {
                Ok(()) => Ok(verdict),
                Err(message) => Err(answered(FailureKind::OutOfBounds, message)),
            },
            Ok(Err(error)) => Err(answered(FailureKind::PolicyError, bounded(&message_of(error), MESSAGE_MAX_BYTES))),
            Err(error) => Err(failure_of(&self.store, &error)),
        }
    }

    /// Logs what the guest has printed since the last time. `decision` is the id of the decision, if it was one.
    pub(super) fn log_output(&mut self, log: &GuestLog, now_ms: u64, decision: Option<u64>) {
        let output = &mut self.store.data_mut().output;
        if !output.is_empty() {
            log.log_output(output, now_ms, decision);
        }
    }

    /// Drops what the guest has printed since the last time.
    pub(super) fn forget_output(&mut self) {
        self.store.data_mut().output.clear();
    }
}

/// A deadline holds for one call only, so it is set before each. The first tick comes within a millisecond.
fn begin_call(store: &mut Store<Sandbox>, at: &Moment, deadline_ms: u64) {
    store.data_mut().begin(at.now_ms, at.seed, deadline_ms);
    store.set_epoch_deadline(1);
}

/// Called when the guest notices that a millisecond has begun.
fn on_tick(mut store: StoreContextMut<'_, Sandbox>) -> wasmtime::Result<UpdateDeadline> {
    let may_go_on = store.data_mut().may_go_on(Instant::now());
    if may_go_on { Ok(UpdateDeadline::Continue(1)) } else { Err(Trap::Interrupt.into()) }
}

fn message_of(error: PolicyError) -> String {
    match error {
        PolicyError::BadInput(message) => format!("bad input: {message}"),
        PolicyError::Internal(message) => format!("internal: {message}"),
    }
}

/// Describes a call that did not return, with what the guest printed to stderr and the functions that it was in.
fn failure_of(store: &Store<Sandbox>, error: &wasmtime::Error) -> Failure {
    let sandbox = store.data();
    let frames = error.downcast_ref::<WasmBacktrace>().map(function_names);
    let kind = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => FailureKind::Deadline,
        Some(Trap::StackOverflow) => FailureKind::Stack,
        // No guest code was running: its answer was no value of the verdict's type, or too long.
        None if frames.is_none() => FailureKind::OutOfBounds,
        _ if sandbox.limiter.denied => FailureKind::Memory,
        _ => FailureKind::Trap,
    };
    let mut message = error.root_cause().to_string();
    let printed = sandbox.output.lines(Stream::Stderr).collect::<Vec<_>>().join(" | ");
    if !printed.is_empty() {
        message = format!("{message}: {}", bounded(&printed, STDERR_MAX_BYTES));
    }
    if let Some(frames) = frames.filter(|frames| !frames.is_empty()) {
        message = format!("{message} [in {}]", frames.join(" < "));
    }
    Failure { kind, message: bounded(&message, MESSAGE_MAX_BYTES), instance_lost: true, is_counted: true }
}
