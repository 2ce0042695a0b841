//! Tells dashboards the status of devices.

use std::sync::Arc;

use pointwork_core::devices::DeviceStatus;
use serde_json::json;

use super::{
    carry_out::word,
    state::{DASHBOARD_NSP, Devices},
    tokens::owner,
};
use crate::edge::{
    auth::TokenClaims,
    send::{broadcast, emit},
    socketio::SocketRef,
};

/// The event that carries the status of a device.
const STATUS: &str = "dashboard:device-status";
/// How many devices a dashboard hears of when it connects, for each owner that it stands for.
const DEVICES_MAX: usize = 20_000;
/// How many at a time.
const PAGE: usize = 500;

/// Whose devices a dashboard may know.
#[derive(Clone)]
pub(crate) struct Owners(Arc<[Arc<str>]>);

impl Owners {
    pub(crate) fn of(claims: &TokenClaims) -> Self {
        let owners = [owner("user", Some(&claims.sub)), owner("org", claims.org.as_deref())];
        Self(owners.into_iter().flatten().collect())
    }

    /// The rooms that hear of their devices.
    pub(crate) fn rooms(&self) -> Vec<String> {
        self.0.iter().map(|owner| room(owner)).collect()
    }
}

impl Devices {
    /// Tells dashboards of a device, on all replicas.
    pub(super) fn tell_dashboards(
        &self,
        device: &str,
        status: DeviceStatus,
        epoch: u64,
        owner: Option<&str>,
        last_seen_ms: u64,
    ) {
        let Some(owner) = owner else { return };
        if let Some(dashboards) = self.io.get().and_then(|io| io.of(DASHBOARD_NSP)) {
            broadcast(dashboards.to(room(owner)), STATUS, &told(device, status, epoch, last_seen_ms));
        }
    }

    /// Tells a dashboard that begins of each device that it may know.
    pub(crate) async fn tell_all(self: Arc<Self>, socket: SocketRef, owners: Owners) {
        for owner in &*owners.0 {
            let mut after: Option<String> = None;
            for _ in 0..DEVICES_MAX / PAGE {
                let Ok(page) = self.store.owned(owner, after.as_deref(), PAGE).await else { return };
                for (device, record) in &page {
                    // It may have changed hands since it was found.
                    if record.owner.as_ref() == Some(owner) {
                        emit(&socket, STATUS, &told(device, record.status, record.epoch, record.last_seen_ms));
                    }
                }
                if page.len() < PAGE {
                    break;
                }
                after = page.into_iter().next_back().map(|(device, _)| device);
            }
        }
    }
}

/// If two events describe the same device, the one with the higher `epoch` is newer.
fn told(device: &str, status: DeviceStatus, epoch: u64, last_seen_ms: u64) -> serde_json::Value {
    json!({ "device_id": device, "status": word(status), "epoch": epoch, "last_seen_ms": last_seen_ms })
}

fn room(owner: &str) -> String {
    format!("devices:{owner}")
}
