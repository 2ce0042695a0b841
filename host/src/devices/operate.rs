//! What operators do with devices: look, pair, disconnect, block.

use std::sync::Arc;

use pointwork_core::devices::{DeviceRecord, StoreAway, SwapResult};
use pointwork_core::experiments::Trial;
use serde_json::{Value, json};

use super::{
    carry_out::{shown, word},
    state::{DEVICE_NSP, Devices},
};
use crate::{
    cluster::device_store::Unread,
    driver::clock::unix_ms,
    edge::{auth::token::TokenError, send::broadcast},
};

/// How often a record is read anew because it changed meanwhile.
const TRIES_MAX: u32 = 8;

/// What an operator wants done with a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Its session ends; it may come back.
    Disconnect,
    /// Its session ends; it may not come back.
    Block,
    /// It may come back.
    Unblock,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// No device has this id or pairing code.
    #[error("no such device")]
    Unknown,
    /// The store cannot be reached.
    #[error("the store of sessions is away")]
    Away,
    /// The device's record is damaged, or of a later version.
    #[error("the device's record cannot be read")]
    Unreadable,
    /// The record changed each time before it could be written.
    #[error("the device's session keeps changing: try again")]
    Contended,
    /// No token can be made for the device.
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl From<Unread> for OperateError {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Away => Self::Away,
            Unread::Unreadable => Self::Unreadable,
        }
    }
}

impl From<StoreAway> for OperateError {
    fn from(_: StoreAway) -> Self {
        Self::Away
    }
}

/// A device as operators see it.
pub type Overview = Value;

impl Devices {
    /// The next devices behind `after`, in the order of their ids.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn list(&self, after: Option<&str>, count: usize) -> Result<Vec<Overview>, OperateError> {
        let page = self.store.page(after, count).await?;
        Ok(page.iter().map(|(device, record)| overview(device, record)).collect())
    }

    /// One device.
    ///
    /// # Errors
    /// When there is none, or the store is away.
    pub async fn show(&self, device: &str) -> Result<Overview, OperateError> {
        Ok(overview(device, &self.known(device).await?))
    }

    /// Changes what a device may. Whoever holds its session is told and evicted.
    ///
    /// # Errors
    /// When it was not done.
    pub async fn change(self: &Arc<Self>, device: &str, change: Change) -> Result<Overview, OperateError> {
        let change_record = |record: &DeviceRecord| match change {
            Change::Disconnect => record.disconnected(unix_ms()),
            Change::Block => record.blocked(unix_ms()),
            Change::Unblock => record.unblocked(unix_ms()),
        };
        let (before, after) = self.rewrite(device, change_record).await?;
        if let Some(holder) = before.holder.filter(|_| after.holder.is_none()) {
            if change == Change::Block {
                self.tell_holder(&holder, "device:unpaired", &json!({ "reason": "blocked" }));
            }
            self.evict_at(device.into(), after.epoch, holder.replica, holder.socket, 0).await;
        }
        self.tell_dashboards(device, after.status, after.epoch, after.owner.as_deref(), after.last_seen_ms);
        Ok(overview(device, &after))
    }

    /// Pairs the device that is connected and has this code, for an owner (`user:ID` or `org:ID`) if one is named. Its id and token.
    ///
    /// # Errors
    /// When it was not done.
    pub async fn pair(&self, code: &str, owner: Option<Arc<str>>) -> Result<(String, String), OperateError> {
        let device = self.store.by_pairing_code(code).await?.ok_or(OperateError::Unknown)?;
        // Whoever reads a code off a device has it before them: one that is not there now is somebody else's.
        if self.known(&device).await?.holder.is_none() {
            return Err(OperateError::Unknown);
        }
        let token = self.tokens.mint(&device, owner.as_deref(), None)?;
        let (_, after) = self.rewrite(&device, |record| record.paired_with(owner.clone(), unix_ms())).await?;
        if let Some(holder) = &after.holder {
            self.tell_holder(holder, "device:paired", &json!({ "device_id": device, "device_token": token }));
        }
        self.tell_dashboards(&device, after.status, after.epoch, after.owner.as_deref(), after.last_seen_ms);
        Ok((device, token))
    }

    /// Whichever replica it is at.
    fn tell_holder(&self, holder: &pointwork_core::devices::Holder, event: &str, data: &Value) {
        let socket = holder.socket.0.to_be_bytes();
        let (Ok(socket), Some(devices)) =
            (std::str::from_utf8(&socket), self.io.get().and_then(|io| io.of(DEVICE_NSP)))
        else {
            return;
        };
        broadcast(devices.to(socket.to_owned()), event, data);
    }

    async fn known(&self, device: &str) -> Result<DeviceRecord, OperateError> {
        let record = self.store.read(device).await?;
        if record.epoch == 0 { Err(OperateError::Unknown) } else { Ok(record) }
    }

    /// Changes a record by compare-and-set. What it was, and what it is.
    async fn rewrite(
        &self,
        device: &str,
        change: impl Fn(&DeviceRecord) -> DeviceRecord,
    ) -> Result<(DeviceRecord, DeviceRecord), OperateError> {
        for _ in 0..TRIES_MAX {
            let before = self.known(device).await?;
            let after = change(&before);
            match self.store.swap(device, before.epoch, &after).await {
                SwapResult::Won => return Ok((before, after)),
                SwapResult::Lost => {}
                SwapResult::Away => return Err(OperateError::Away),
            }
        }
        Err(OperateError::Contended)
    }
}

fn overview(device: &str, record: &DeviceRecord) -> Overview {
    let happened = |event: &pointwork_core::devices::Happened| json!({ "what": format!("{:?}", event.what).to_lowercase(), "at_ms": event.at_ms });
    json!({
        "device_id": device,
        "status": word(record.status),
        "holder": record.holder.as_ref().map(shown),
        "flips": record.flips,
        "refusals": record.refusals,
        "last_seen_ms": record.last_seen_ms,
        "is_blocked": record.is_blocked,
        "is_paired": record.is_paired,
        "owner": record.owner.as_deref(),
        "epoch": record.epoch,
        "events": record.events.iter().map(happened).collect::<Vec<_>>(),
        "trial": record.trial.as_deref().map(|trial| tried(trial, unix_ms())),
    })
}

/// A device's exposure to an experiment and what came of it so far, as operators see it.
fn tried(trial: &Trial, now_ms: u64) -> Value {
    let outcomes = trial.outcomes(now_ms);
    let name = trial.experiment.split(':').next().unwrap_or_default();
    json!({
        "experiment": name,
        "arm": &*trial.arm,
        "exposed_ms": trial.exposed_ms,
        "ends_ms": trial.ends_ms(),
        "decisions": outcomes.decisions,
        "failures": outcomes.failures,
        "flips": outcomes.flips,
        "refused": outcomes.refused,
        "stranded_ms": outcomes.stranded_ms,
        "offline_ms": outcomes.offline_ms,
        "stable_ms": outcomes.is_stable.then_some(outcomes.stable_ms),
    })
}
