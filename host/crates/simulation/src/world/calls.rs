//! What callers go through: each call, measured by what is true.

use std::time::Duration;

use pointwork_core::CallId;
use pointwork_core::call::message;

use super::World;
use crate::agenda::Moment;
use crate::event::{Connection, Process, Token, Up};
use crate::room::Room;

/// The ways in which a call may end without a result, as outcomes name them.
pub const ERRORS: [&str; 8] =
    ["unavailable", "disconnected", "unreachable", "timed-out", "internal", "same-socket", "refused", "unheard"];

/// What came of a world for its callers. Shares are of its calls, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RpcOutcomes {
    /// How many calls came to a replica.
    pub calls: u64,
    /// Calls whose caller was told a result.
    pub answered: f64,
    /// Calls that were given up although the result would have come in its time: the policies said so and, before
    /// the call's deadline, the
    /// daemon's result came in after all, or a daemon had the method.
    pub aborted_wrongly: f64,
    /// How long a call waited for a daemon, from its arrival until it was sent or ended, in milliseconds; the mean.
    pub waited_ms: f64,
    /// From a call to its result, at the caller, in milliseconds; the mean over those that have one, if there are any.
    pub latency_ms: Option<f64>,
    /// The latency that nine in ten of them have not more than.
    pub latency_p90_ms: Option<f64>,
    /// How calls ended without a result, by [`ERRORS`]; the last is that the caller was told nothing: it had left, or its replica had.
    pub errors: [f64; ERRORS.len()],
}

/// A call that a client made.
pub(crate) struct Asked {
    pub(crate) caller: Connection,
    /// Where it was taken on, and its number there.
    pub(crate) place: Option<(Process, CallId)>,
    /// It is open, and not sent to a daemon that may not hand in.
    pub(crate) may_be_handed_in: bool,
    room: Room,
    timeout: Duration,
    asked: Moment,
    arrived: Option<Moment>,
    sent: Option<Moment>,
    /// When it ended at its replica, and by which error if there was no result.
    ended: Option<(Moment, Option<&'static str>)>,
    /// When its caller was told.
    pub(crate) told: Option<Moment>,
    is_aborted_wrongly: bool,
}

/// Calls that were given up, and may have been wrongly.
#[derive(Default)]
pub(crate) struct Measure {
    given_up: Vec<Token>,
}

impl Asked {
    pub(crate) fn new(caller: Connection, room: Room, timeout_ms: u64, now: Moment) -> Asked {
        Asked {
            caller,
            place: None,
            may_be_handed_in: true,
            room,
            timeout: Duration::from_millis(timeout_ms),
            asked: now,
            arrived: None,
            sent: None,
            ended: None,
            told: None,
            is_aborted_wrongly: false,
        }
    }

    pub(crate) fn arrives(&mut self, now: Moment) {
        self.arrived = Some(now);
    }

    pub(crate) fn is_sent(&mut self, now: Moment) {
        self.sent = Some(now);
    }

    /// Its timeout after its arrival and, once it is sent, its timeout after that.
    fn deadline(&self) -> Moment {
        self.sent.or(self.arrived).unwrap_or(self.asked) + self.timeout
    }
}

impl World<'_> {
    /// A call ends at its replica.
    pub(super) fn measure_end(&mut self, token: Token, error: Option<&'static str>) {
        let now = self.now;
        let call = &mut self.calls[token];
        call.ended = Some((now, error));
        match error {
            Some(message::UNAVAILABLE) => {
                let (room, bit) = (call.room, call.room.bit());
                let user = |connection: &crate::client::Line| self.clients[connection.client].user;
                let mut lines = self.lines.iter();
                let is_served = lines
                    .any(|line| line.is_accepted && !line.is_cut && line.rooms & bit != 0 && user(line) == room.user());
                self.calls[token].is_aborted_wrongly = is_served;
                self.measure.given_up.push(token);
            }
            Some(message::TARGET_DISCONNECTED) => self.measure.given_up.push(token),
            _ => {}
        }
    }

    /// A daemon has a method: those that waited for it might have waited on.
    pub(super) fn measure_return(&mut self, room: Room) {
        for token in &self.measure.given_up {
            let call = &mut self.calls[*token];
            let is_waited_for = matches!(call.ended, Some((_, Some(message::UNAVAILABLE)))) && call.room == room;
            call.is_aborted_wrongly |= is_waited_for && self.now < call.deadline();
        }
    }

    /// A packet of a client arrives: it may be the result of a call that was given up.
    pub(super) fn measure_result(&mut self, packet: &Up) {
        let token = match packet {
            Up::Ack { token, given: crate::event::Given::Value(_) } => Some(*token),
            Up::HandIn { call, .. } => {
                let calls = self.replicas.get(call.process).map(|replica| &replica.calls);
                calls.and_then(|calls| calls.get(call.call.0 as usize - 1)).copied()
            }
            _ => None,
        };
        if let Some(call) = token.map(|token| &mut self.calls[token]) {
            let is_given_up = matches!(call.ended, Some((_, Some(message::TARGET_DISCONNECTED))));
            call.is_aborted_wrongly |= is_given_up && self.now < call.deadline();
        }
    }

    /// What it was like for callers.
    pub(crate) fn outcomes(&self) -> RpcOutcomes {
        let calls: Vec<&Asked> =
            self.calls.iter().filter(|call| call.arrived.is_some() || call.ended.is_some()).collect();
        let mut outcomes = RpcOutcomes { calls: calls.len() as u64, ..RpcOutcomes::default() };
        let (one, one_percent) = (1.0 / calls.len().max(1) as f64, 100.0 / calls.len().max(1) as f64);
        let ms = |span: Duration| span.as_micros() as f64 / 1_000.0;
        let mut latencies = Vec::new();
        for call in calls {
            let error = call.ended.map(|(_, error)| error);
            match (call.told, error) {
                (Some(told), Some(None)) => latencies.push(ms(told.since(call.asked))),
                (Some(_), Some(Some(error))) => outcomes.errors[place(error)] += one_percent,
                _ => outcomes.errors[ERRORS.len() - 1] += one_percent,
            }
            if call.is_aborted_wrongly {
                outcomes.aborted_wrongly += one_percent;
            }
            let until = call.sent.or(call.ended.map(|(at, _)| at));
            if let (Some(arrived), Some(until)) = (call.arrived, until) {
                outcomes.waited_ms += ms(until.since(arrived)) * one;
            }
        }
        outcomes.answered = latencies.len() as f64 * one_percent;
        latencies.sort_by(f64::total_cmp);
        if !latencies.is_empty() {
            outcomes.latency_ms = Some(latencies.iter().sum::<f64>() / latencies.len() as f64);
            outcomes.latency_p90_ms = latencies.get((latencies.len() * 9).div_ceil(10) - 1).copied();
        }
        outcomes
    }
}

/// The place of an error among [`ERRORS`].
fn place(error: &str) -> usize {
    match error {
        message::UNAVAILABLE => 0,
        message::TARGET_DISCONNECTED => 1,
        message::UNREACHABLE => 2,
        message::TIMED_OUT => 3,
        message::SAME_SOCKET => 5,
        "refused" => 6,
        _ => 4,
    }
}
