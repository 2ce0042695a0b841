//! A device: who it is, how it registers, and what it sends while it has its session.

use std::{sync::Arc, time::SystemTime};

use anyhow::{Context, Result, bail};
use pointwork::{
    config::AuthConfig,
    edge::auth::token::{self, TokenRequest},
};
use serde_json::json;

use crate::common::{Client, PING};

/// So many devices belong to one user.
const DEVICES_PER_USER: usize = 20;

/// A device; as many copies as wanted are the same one.
#[derive(Clone)]
pub(crate) struct Device {
    register: Arc<str>,
    heartbeat: Arc<str>,
}

impl Device {
    /// The device of that number, with a token that the host takes.
    pub(crate) fn new(index: usize, auth: &AuthConfig) -> Result<Self> {
        let id = format!("7b1f2a90-0d3e-4c58-b1f7-{index:012}");
        let user = format!("9f6d3c1e-58a2-4b07-8c44-{:012}", index / DEVICES_PER_USER);
        let claims = vec!["scope=device".to_owned(), format!("user=\"{user}\"")];
        let now_s = SystemTime::UNIX_EPOCH.elapsed().context("the clock is before 1970")?.as_secs();
        let token = token::mint(auth, &TokenRequest { sub: id.clone(), ttl_s: None, claims }, now_s)?;
        let register = json!(["device:register", {
            "device_id": id,
            "device_token": token,
            "fingerprint": format!("print-of-{id}"),
            "device_info": { "model": "bench", "version": "1" },
        }]);
        let heartbeat = json!(["device:heartbeat", { "device_id": id, "telemetry": { "battery": 50 } }]);
        Ok(Self {
            register: format!("42/device,{register}").into(),
            heartbeat: format!("42/device,{heartbeat}").into(),
        })
    }

    /// Connects, and waits until it has its session. An error when it is told anything else.
    pub(crate) async fn register(&self, url: &str) -> Result<Client> {
        let mut client = Client::connect(url, "/device,", "").await?;
        client.send(self.register.to_string()).await?;
        loop {
            let packet = client.receive().await?;
            if packet.starts_with("42/device,[\"device:registered\"") {
                return Ok(client);
            }
            if packet != PING {
                bail!("a register was answered by {packet}");
            }
        }
    }

    /// Reads one packet, which is a ping, and has a heartbeat follow it. May be dropped while it waits.
    pub(crate) async fn stay(&self, client: &mut Client) -> Result<()> {
        let packet = client.receive().await?;
        if packet != PING {
            bail!("a device that has its session was sent {packet}");
        }
        client.send(self.heartbeat.to_string()).await
    }
}
