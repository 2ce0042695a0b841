//! Measures each call by what is true in the world, not by what the replicas know.

use std::time::Duration;

use pointwork_core::calls::message;

use super::state::CallWorld;
use crate::calls::client::ClientConnection;
use crate::calls::events::{CallToken, ClientPacket};
use crate::calls::outcomes::{ERRORS, MeasuredCall, RpcOutcomes, error_index};
use crate::calls::rooms::Room;

impl CallWorld<'_> {
    pub(super) fn measure_end(&mut self, token: CallToken, error: Option<&'static str>) {
        let now = self.now;
        let call = &mut self.calls[token];
        call.ended = Some((now, error));
        match error {
            Some(message::UNAVAILABLE) => {
                let (room, bit) = (call.room, call.room.bit());
                let user = |connection: &ClientConnection| self.clients[connection.client].user;
                let mut connections = self.connections.iter();
                let is_served = connections.any(|entry| {
                    entry.is_accepted && !entry.is_cut && entry.rooms & bit != 0 && user(entry) == room.user()
                });
                self.calls[token].is_aborted_wrongly = is_served;
                self.given_up.push(token);
            }
            Some(message::TARGET_DISCONNECTED) => self.given_up.push(token),
            _ => {}
        }
    }

    /// A daemon has registered a method. Calls that were given up for lack of it could have waited.
    pub(super) fn measure_return(&mut self, room: Room) {
        for token in &self.given_up {
            let call = &mut self.calls[*token];
            let is_waited_for = matches!(call.ended, Some((_, Some(message::UNAVAILABLE)))) && call.room == room;
            call.is_aborted_wrongly |= is_waited_for && self.now < call.deadline();
        }
    }

    /// A packet of a client arrives. It may be the result of a call that was given up.
    pub(super) fn measure_result(&mut self, packet: &ClientPacket) {
        let token = match packet {
            ClientPacket::Ack { token, given: crate::calls::events::DaemonResult::Value(_) } => Some(*token),
            ClientPacket::HandIn { call, .. } => {
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

    /// The outcomes for callers.
    pub(crate) fn outcomes(&self) -> RpcOutcomes {
        let calls: Vec<&MeasuredCall> =
            self.calls.iter().filter(|call| call.arrived.is_some() || call.ended.is_some()).collect();
        let mut outcomes = RpcOutcomes { calls: calls.len() as u64, ..RpcOutcomes::default() };
        let (one, one_percent) = (1.0 / calls.len().max(1) as f64, 100.0 / calls.len().max(1) as f64);
        let ms = |span: Duration| span.as_micros() as f64 / 1_000.0;
        let mut latencies = Vec::new();
        for call in calls {
            let error = call.ended.map(|(_, error)| error);
            match (call.answered, error) {
                (Some(answered), Some(None)) => latencies.push(ms(answered.since(call.made))),
                (Some(_), Some(Some(error))) => outcomes.errors[error_index(error)] += one_percent,
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
