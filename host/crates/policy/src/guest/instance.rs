//! One instance of a guest in its own store: the only place where guest code runs.

use crate::contract::slot::Slot;
use crate::contract::{Info, Moment, PolicyError};
use crate::engine::Engine;
use crate::guest::backtrace::function_names;
use crate::guest::log::GuestLog;
use crate::guest::{Failure, FailureKind};
use crate::sandbox::Captured;
use crate::sandbox::Sandbox;
use crate::sandbox::SlotLimits;
use crate::text::bounded;
use std::time::Instant;
use wasmtime::{Store, StoreContextMut, Trap, UpdateDeadline, WasmBacktrace};

/// Describing and configuring may take longer than a decision, in milliseconds.
pub(crate) const SETUP_DEADLINE_MS: u64 = 200;

/// Every setup happens at the same moment, so that all instances of a generation are alike.
const SETUP_MOMENT: Moment = Moment { now_ms: 0, seed: 0, key: 0 };

/// What a guest may hand to the host in one go, in bytes: a line it prints, the text of an error.
const LIFT_MAX_BYTES: usize = 128 * 1024;

const MESSAGE_MAX_BYTES: usize = 1024;
const STDERR_MAX_BYTES: usize = 512;

pub(crate) struct Instance<S: Slot> {
    store: Store<Sandbox>,
    guest: S::Guest,
}

impl<S: Slot> Instance<S> {
    /// A fresh instance, not yet configured. It runs guest code: what is initialised at the start.
    pub(crate) fn new(
        engine: &Engine,
        linked: &S::Linked,
        limits: &SlotLimits,
        deadline_ms: u64,
    ) -> Result<Self, Failure> {
        let mut store = Store::new(engine.wasmtime(), Sandbox::new(limits));
        store.limiter(|sandbox| &mut sandbox.limiter);
        store.set_hostcall_fuel(LIFT_MAX_BYTES);
        store.epoch_deadline_callback(on_tick);
        begin(&mut store, &SETUP_MOMENT, deadline_ms);
        match S::instantiate(linked, &mut store) {
            Ok(guest) => Ok(Self { store, guest }),
            Err(error) => Err(failure(&store, &error)),
        }
    }

    /// Asks the guest what it is.
    pub(crate) fn describe(&mut self) -> Result<Info, Failure> {
        begin(&mut self.store, &SETUP_MOMENT, SETUP_DEADLINE_MS);
        S::describe(&self.guest, &mut self.store).map_err(|error| failure(&self.store, &error))
    }

    /// Hands the guest its configuration; the inner error is its refusal.
    pub(crate) fn configure(&mut self, json: &str, deadline_ms: u64) -> Result<Result<(), String>, Failure> {
        begin(&mut self.store, &SETUP_MOMENT, deadline_ms);
        match S::configure(&self.guest, &mut self.store, json) {
            Ok(configured) => Ok(configured.map_err(|refusal| bounded(&refusal, MESSAGE_MAX_BYTES))),
            Err(error) => Err(failure(&self.store, &error)),
        }
    }

    /// One decision.
    pub(crate) fn ask(&mut self, question: &S::Question, deadline_ms: u64) -> Result<S::Verdict, Failure> {
        begin(&mut self.store, S::moment(question), deadline_ms);
        match S::ask(&self.guest, &mut self.store, question) {
            Ok(Ok(verdict)) => match S::check(question, &verdict) {
                Ok(()) => Ok(verdict),
                Err(message) => {
                    Err(Failure { kind: FailureKind::OutOfBounds, message, instance_lost: false, is_borne: false })
                }
            },
            Ok(Err(error)) => Err(Failure {
                kind: FailureKind::PolicyError,
                message: bounded(&words(error), MESSAGE_MAX_BYTES),
                instance_lost: false,
                is_borne: false,
            }),
            Err(error) => Err(failure(&self.store, &error)),
        }
    }

    /// Logs what it has printed since the last time; `decision`: the id of the one meanwhile.
    pub(crate) fn log_output(&mut self, log: &GuestLog, now_ms: u64, decision: Option<u64>) {
        let output = &mut self.store.data_mut().output;
        if !output.is_empty() {
            log.emit(output, now_ms, decision);
        }
    }
}

impl<S: Slot> Instance<S> {
    /// Drops what it has printed since the last time.
    pub(crate) fn forget_output(&mut self) {
        self.store.data_mut().output = Captured::default();
    }
}

/// A deadline holds for one call only, so it is set before each. The first tick comes within a millisecond.
fn begin(store: &mut Store<Sandbox>, at: &Moment, deadline_ms: u64) {
    store.data_mut().begin(at.now_ms, at.seed, deadline_ms);
    store.set_epoch_deadline(1);
}

/// The guest noticed a new millisecond.
fn on_tick(mut store: StoreContextMut<'_, Sandbox>) -> wasmtime::Result<UpdateDeadline> {
    let may_go_on = store.data_mut().may_go_on(Instant::now());
    if may_go_on { Ok(UpdateDeadline::Continue(1)) } else { Err(Trap::Interrupt.into()) }
}

fn words(error: PolicyError) -> String {
    match error {
        PolicyError::BadInput(words) => format!("bad input: {words}"),
        PolicyError::Internal(words) => format!("internal: {words}"),
    }
}

/// What went wrong, with the guest's own words and the functions it was in.
fn failure(store: &Store<Sandbox>, error: &wasmtime::Error) -> Failure {
    let sandbox = store.data();
    let frames = error.downcast_ref::<WasmBacktrace>().map(function_names);
    let kind = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => FailureKind::Deadline,
        Some(Trap::StackOverflow) => FailureKind::Stack,
        // No guest code was running: it had answered already, but with what is no value of the answer's type, or too long.
        None if frames.is_none() => FailureKind::OutOfBounds,
        _ if sandbox.limiter.denied => FailureKind::Memory,
        _ => FailureKind::Trap,
    };
    let mut message = error.root_cause().to_string();
    let said = sandbox.output.stderr_in_one_line();
    if !said.is_empty() {
        message = format!("{message}: {}", bounded(&said, STDERR_MAX_BYTES));
    }
    if let Some(frames) = frames.filter(|frames| !frames.is_empty()) {
        message = format!("{message} [in {}]", frames.join(" < "));
    }
    Failure { kind, message: bounded(&message, MESSAGE_MAX_BYTES), instance_lost: true, is_borne: false }
}
