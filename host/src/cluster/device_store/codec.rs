//! A record as JSON. Replicas of different versions read each other's: a name is never used for anything else, a member that is
//! not known is not read, and what an older version cannot do without has a new number in `v`.
//!
//! ```json
//! {"v":1,"epoch":1800000000000,"status":"online","flips":0,"refusals":0,"seen_ms":1800000000000,"paired":true,"owner":"o",
//!  "holder":{"replica":"r","socket":"00000000000000000000000000000001","epoch":1800000000000,"since_ms":1800000000000,
//!            "proved":true,"fingerprint":"00000000000000ff","address":"00000000000000ff"},
//!  "events":[[1800000000000,"accepted"]]}
//! ```
//!
//! A holder that ended is in `ended` (`how`, `at_ms`, `replica`), the pairing code in `code`; an operator's block is `blocked`; what
//! an experiment counts is in `trial`, by the names of [`Trial`]. Hashes are text, because other programs' numbers do not hold 64 bits.

use pointwork_core::SocketId;
use pointwork_core::decisions::{Departure, HISTORY_MAX, Happening};
use pointwork_core::devices::{DeviceRecord, DeviceStatus, Ended, Happened, Holder};
use pointwork_core::experiments::Trial;
use serde::{Deserialize, Serialize};
use thiserror::Error;

const VERSION: u32 = 1;

/// Why a text is no record.
#[derive(Debug, Error)]
pub(super) enum Malformed {
    /// It is not the JSON of a record.
    #[error("no record: {0}")]
    Json(#[from] serde_json::Error),
    /// A later version wrote it.
    #[error("version {0} is not known")]
    Version(u32),
    /// A socket or hash is not hexadecimal.
    #[error("no number: {0:?}")]
    Hex(String),
}

/// Writes a record.
pub(super) fn write(record: &DeviceRecord) -> String {
    // Only a map whose keys are no texts cannot be written, and there is none in it.
    serde_json::to_string(&Written::from(record)).unwrap_or_default()
}

/// Reads a record.
pub(super) fn read(text: &[u8]) -> Result<DeviceRecord, Malformed> {
    let Versioned { v } = serde_json::from_slice(text)?;
    if v != VERSION {
        return Err(Malformed::Version(v));
    }
    serde_json::from_slice::<Written>(text)?.try_into()
}

#[derive(Deserialize)]
struct Versioned {
    v: u32,
}

#[derive(Serialize, Deserialize)]
struct Written {
    v: u32,
    epoch: u64,
    #[serde(with = "StatusName")]
    status: DeviceStatus,
    flips: u64,
    refusals: u64,
    seen_ms: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    paired: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    blocked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    holder: Option<WrittenHolder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<WrittenEnded>,
    events: Vec<WrittenEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trial: Option<Box<Trial>>,
}

#[derive(Serialize, Deserialize)]
struct WrittenHolder {
    replica: String,
    socket: String,
    epoch: u64,
    since_ms: u64,
    #[serde(default, skip_serializing_if = "is_false")]
    proved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct WrittenEnded {
    #[serde(with = "DepartureName")]
    how: Departure,
    at_ms: u64,
    replica: String,
}

#[derive(Serialize, Deserialize)]
struct WrittenEvent(u64, #[serde(with = "HappeningName")] Happening);

#[derive(Serialize, Deserialize)]
#[serde(remote = "DeviceStatus", rename_all = "snake_case")]
enum StatusName {
    Offline,
    Online,
    Provisioning,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Departure", rename_all = "snake_case")]
enum DepartureName {
    NeverSeen,
    Closed,
    Unregistered,
    TransportLost,
    ReplicaLost,
    ReplicaSilent,
    Drained,
    Evicted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Happening", rename_all = "snake_case")]
enum HappeningName {
    Accepted,
    Refused,
    Evicted,
    Lost,
    Closed,
    Refreshed,
}

impl From<&DeviceRecord> for Written {
    fn from(record: &DeviceRecord) -> Self {
        let ended =
            |ended: &Ended| WrittenEnded { how: ended.how, at_ms: ended.at_ms, replica: ended.replica.to_string() };
        Self {
            v: VERSION,
            epoch: record.epoch,
            status: record.status,
            flips: record.flips,
            refusals: record.refusals,
            seen_ms: record.last_seen_ms,
            paired: record.is_paired,
            blocked: record.is_blocked,
            owner: record.owner.as_deref().map(str::to_owned),
            code: record.pairing_code.as_deref().map(str::to_owned),
            holder: record.holder.as_ref().map(WrittenHolder::from),
            ended: record.ended.as_ref().map(ended),
            events: record.events.iter().map(|event| WrittenEvent(event.at_ms, event.what)).collect(),
            trial: record.trial.clone(),
        }
    }
}

impl From<&Holder> for WrittenHolder {
    fn from(holder: &Holder) -> Self {
        Self {
            replica: holder.replica.to_string(),
            socket: format!("{:032x}", holder.socket.0),
            epoch: holder.epoch,
            since_ms: holder.accepted_ms,
            proved: holder.has_proved,
            fingerprint: holder.fingerprint.map(|hash| format!("{hash:016x}")),
            address: holder.address.map(|hash| format!("{hash:016x}")),
        }
    }
}

impl TryFrom<Written> for DeviceRecord {
    type Error = Malformed;

    fn try_from(written: Written) -> Result<Self, Malformed> {
        let ended = |ended: WrittenEnded| Ended { how: ended.how, at_ms: ended.at_ms, replica: ended.replica.into() };
        let event = |WrittenEvent(at_ms, what)| Happened { at_ms, what };
        Ok(DeviceRecord {
            epoch: written.epoch,
            holder: written.holder.map(Holder::try_from).transpose()?,
            ended: written.ended.map(ended),
            events: written.events.into_iter().take(HISTORY_MAX).map(event).collect(),
            flips: written.flips,
            refusals: written.refusals,
            status: written.status,
            is_blocked: written.blocked,
            is_paired: written.paired,
            owner: written.owner.map(Into::into),
            pairing_code: written.code.map(Into::into),
            last_seen_ms: written.seen_ms,
            trial: written.trial,
        })
    }
}

impl TryFrom<WrittenHolder> for Holder {
    type Error = Malformed;

    fn try_from(written: WrittenHolder) -> Result<Self, Malformed> {
        let hash = |hash: Option<String>| {
            let read = |hash: String| u64::from_str_radix(&hash, 16).map_err(|_| Malformed::Hex(hash));
            hash.map(read).transpose()
        };
        let socket = u128::from_str_radix(&written.socket, 16).map_err(|_| Malformed::Hex(written.socket))?;
        Ok(Holder {
            replica: written.replica.into(),
            socket: SocketId(socket),
            epoch: written.epoch,
            accepted_ms: written.since_ms,
            has_proved: written.proved,
            fingerprint: hash(written.fingerprint)?,
            address: hash(written.address)?,
        })
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests;
