//! The namespace `/dashboard`: users who watch the devices of their own and of their organisation.

use std::{future::ready, sync::Arc};

use pointwork_core::device::Status;
use serde::Deserialize;
use serde_json::json;
use socketioxide::{extract::TryData, handler::ConnectHandler};

use super::{DASHBOARD_NSP, Devices, carry::word, tokens::owner};
use crate::{
    auth::Claims,
    deliver::{broadcast, tell},
    identity::Refusal,
    io::{SocketIo, SocketRef},
};

/// The event that tells of a device.
const STATUS: &str = "dashboard:device-status";
/// How many devices a dashboard that begins is told of, for each that it stands for.
const DEVICES_MAX: usize = 20_000;
/// How many at a time.
const PAGE: usize = 500;

/// The `auth` payload; a token of any other type proves nothing.
#[derive(Default, Deserialize)]
struct Handshake {
    #[serde(default)]
    token: serde_json::Value,
}

/// Whose devices a dashboard may know.
#[derive(Clone)]
struct Owners(Arc<[Arc<str>]>);

impl Owners {
    fn of(claims: &Claims) -> Self {
        let owners = [owner("user", Some(&claims.sub)), owner("org", claims.org.as_deref())];
        Self(owners.into_iter().flatten().collect())
    }
}

/// Mounts the namespace.
pub(super) fn mount(devices: &Arc<Devices>, io: &SocketIo) {
    let verifying = devices.clone();
    let admit = move |socket: SocketRef, TryData(handshake): TryData<Handshake>| {
        let token = handshake.unwrap_or_default().token;
        let claims = match token.as_str().filter(|token| !token.is_empty()) {
            None => Err(Refusal::MissingToken),
            Some(token) => verifying.tokens.user(token).map_err(Refusal::InvalidToken),
        };
        ready(claims.map(|claims| {
            let owners = Owners::of(&claims);
            socket.join(owners.0.iter().map(|owner| room(owner)).collect::<Vec<_>>());
            socket.extensions.insert(owners);
        }))
    };
    let devices = devices.clone();
    let connected = move |socket: SocketRef| {
        if let Some(owners) = socket.extensions.get::<Owners>() {
            tokio::spawn(devices.clone().tell_all(socket, owners));
        }
        ready(())
    };
    io.ns(DASHBOARD_NSP, connected.with(admit));
}

impl Devices {
    /// Tells dashboards of a device, on all replicas.
    pub(super) fn tell_dashboards(
        &self,
        device: &str,
        status: Status,
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
    async fn tell_all(self: Arc<Self>, socket: SocketRef, owners: Owners) {
        for owner in &*owners.0 {
            let mut after: Option<String> = None;
            for _ in 0..DEVICES_MAX / PAGE {
                let Ok(page) = self.store.owned(owner, after.as_deref(), PAGE).await else { return };
                for (device, record) in &page {
                    // It may have changed hands since it was found.
                    if record.owner.as_ref() == Some(owner) {
                        tell(&socket, STATUS, &told(device, record.status, record.epoch, record.last_seen_ms));
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

/// Of two about one device the one with the greater epoch is the later.
fn told(device: &str, status: Status, epoch: u64, last_seen_ms: u64) -> serde_json::Value {
    json!({ "device_id": device, "status": word(status), "epoch": epoch, "last_seen_ms": last_seen_ms })
}

fn room(owner: &str) -> String {
    format!("devices:{owner}")
}
