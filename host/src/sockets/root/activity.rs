//! Signs of life of sessions and machines, as they are told to a user's apps.

use std::time::Duration;

use pointwork_core::decisions::Departure;
use serde::Serialize;

use crate::config::ID_BYTES_MAX;
use crate::edge::payload::{IncomingEvent, take_field};

/// A sign of life older than this says nothing about now.
const STALE_MS: u64 = 10 * 60 * 1_000;

/// The payload of an `ephemeral` event. Times are milliseconds since the Unix epoch.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Activity {
    /// Of a session.
    #[serde(rename = "activity")]
    Session { id: String, active: bool, active_at: u64, thinking: bool },
    /// Of a machine. With the end of its connection: when it was last heard of on it, and why it ended. An app that has heard of the
    /// machine since then knows better.
    #[serde(rename = "machine-activity")]
    Machine {
        id: String,
        active: bool,
        active_at: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        last_seen_at: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'static str>,
    },
}

impl Activity {
    /// A machine's connection began.
    pub(super) fn machine_came(id: &str, now_ms: u64) -> Self {
        Self::Machine { id: id.to_owned(), active: true, active_at: now_ms, last_seen_at: None, reason: None }
    }

    /// A machine's connection ended.
    pub(super) fn machine_went(id: &str, now_ms: u64, idle: Duration, departure: Departure) -> Self {
        let idle_ms = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
        Self::Machine {
            id: id.to_owned(),
            active: false,
            active_at: now_ms,
            last_seen_at: Some(now_ms.saturating_sub(idle_ms)),
            reason: Some(reason(departure)),
        }
    }
}

/// Why a connection ended, as apps are told: the names of the policies' contract.
const fn reason(departure: Departure) -> &'static str {
    match departure {
        Departure::Closed => "closed",
        Departure::Drained => "drained",
        Departure::Evicted => "evicted",
        Departure::TransportLost
        | Departure::NeverSeen
        | Departure::Unregistered
        | Departure::ReplicaLost
        | Departure::ReplicaSilent => "transport-lost",
    }
}

/// `session-alive {sid, time, thinking?, mode}`; `None` when it makes no sense or is stale.
pub(super) fn session_alive(incoming: IncomingEvent, now_ms: u64) -> Option<Activity> {
    let mut body = incoming.into_first()?;
    let (id, active_at) = (id(&mut body, "sid")?, time(&mut body, now_ms)?);
    let thinking = take_field(&mut body, "thinking").and_then(|thinking| thinking.as_bool()).unwrap_or(false);
    Some(Activity::Session { id, active: true, active_at, thinking })
}

/// `session-end {sid, time}`; `None` when it makes no sense or is stale.
pub(super) fn session_end(incoming: IncomingEvent, now_ms: u64) -> Option<Activity> {
    let mut body = incoming.into_first()?;
    let (id, active_at) = (id(&mut body, "sid")?, time(&mut body, now_ms)?);
    Some(Activity::Session { id, active: false, active_at, thinking: false })
}

/// `machine-alive {machineId, time}`; `None` when it makes no sense or is stale.
pub(super) fn machine_alive(incoming: IncomingEvent, now_ms: u64) -> Option<Activity> {
    let mut body = incoming.into_first()?;
    let (id, active_at) = (id(&mut body, "machineId")?, time(&mut body, now_ms)?);
    Some(Activity::Machine { id, active: true, active_at, last_seen_at: None, reason: None })
}

fn id(body: &mut rmpv::Value, key: &str) -> Option<String> {
    let rmpv::Value::String(id) = take_field(body, key)? else { return None };
    id.into_str().filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX)
}

/// The client's own time: one ahead of ours is cut to now, an old one ignored.
fn time(body: &mut rmpv::Value, now_ms: u64) -> Option<u64> {
    let time = take_field(body, "time")?.as_f64().filter(|time| time.is_finite())?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which is the clamp")]
    let time = (time as u64).min(now_ms);
    (time.saturating_add(STALE_MS) >= now_ms).then_some(time)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use crate::edge::payload::Args;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn alive(body: &serde_json::Value) -> Option<Activity> {
        let args = Ok(serde_json::from_value::<Args>(serde_json::json!([body])).expect("a list"));
        session_alive(IncomingEvent { args, bytes: 0 }, NOW_MS)
    }

    #[test]
    fn times_are_clamped_and_stale_ones_ignored() {
        let at = |time: f64| alive(&serde_json::json!({"sid": "s", "time": time, "mode": "remote"}));
        let active_at = |active_at| Activity::Session { id: "s".into(), active: true, active_at, thinking: false };
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century are exact")]
        let now = NOW_MS as f64;
        assert_eq!(at(now + 60_000.0), Some(active_at(NOW_MS)));
        assert_eq!(at(now - 600_000.0), Some(active_at(NOW_MS - 600_000)));
        assert_eq!(at(now - 600_001.0), None);
        assert_eq!(at(-1.0), None);
    }

    #[test]
    fn what_makes_no_sense_is_ignored() {
        for body in [
            serde_json::json!(null),
            serde_json::json!({"time": NOW_MS}),
            serde_json::json!({"sid": 7, "time": NOW_MS}),
            serde_json::json!({"sid": "", "time": NOW_MS}),
            serde_json::json!({"sid": "s"}),
            serde_json::json!({"sid": "s", "time": "now"}),
            serde_json::json!({"sid": "s".repeat(ID_BYTES_MAX + 1), "time": NOW_MS}),
        ] {
            assert_eq!(alive(&body), None, "{body}");
        }
    }

    #[test]
    fn the_end_of_a_machines_connection_says_when_it_was_heard_of_and_why_it_ended() {
        let json = |activity: Activity| serde_json::to_value(activity).expect("serializes");
        let went = Activity::machine_went("m", NOW_MS, Duration::from_millis(2_500), Departure::TransportLost);
        let want = serde_json::json!({"type": "machine-activity", "id": "m", "active": false, "activeAt": NOW_MS,
            "lastSeenAt": NOW_MS - 2_500, "reason": "transport-lost"});
        assert_eq!(json(went), want);
        let want = serde_json::json!({"type": "machine-activity", "id": "m", "active": true, "activeAt": NOW_MS});
        assert_eq!(json(Activity::machine_came("m", NOW_MS)), want);
    }

    #[test]
    fn the_payload_is_what_the_apps_read() {
        let activity = alive(&serde_json::json!({"sid": "s", "time": NOW_MS, "thinking": true}));
        let json = serde_json::to_value(activity.expect("understood")).expect("serializes");
        let want =
            serde_json::json!({"type": "activity", "id": "s", "active": true, "activeAt": NOW_MS, "thinking": true});
        assert_eq!(json, want);
    }
}
