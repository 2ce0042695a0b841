//! What replicas ask each other about devices, and what becomes of the devices of one that is gone.

use std::{sync::Arc, time::Duration};

use pointwork_core::{SocketId, devices::OwnerAnswer};
use rmpv::Value;
use tokio::time::sleep;

use super::state::Devices;
use crate::cluster::News;

/// `[device, socket]`, answered by what the replica says of its holder: false if it has none, else `[age, idle, heartbeat]` in ms.
const OWNER: &str = "pointwork:device-owner";
/// `[device, epoch, socket, after ms]`, answered by true.
const EVICT: &str = "pointwork:device-evict";
/// How long another replica may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How often the holders here are compared with their records even if nothing happened: somebody may have emptied the store.
const COMPARE: Duration = Duration::from_secs(60);
/// When the devices of a replica that is gone are looked for: what it sent last may be on its way to the store.
const LOOKS: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(5)];

impl Devices {
    /// What becomes of a holder at another replica, or at this one.
    pub(super) async fn ask_owner(&self, device: &str, replica: &str, socket: SocketId) -> OwnerAnswer {
        if replica == self.replicas.cluster().uid() {
            return self.owner_answer(device, socket);
        }
        if self.is_gone(replica) {
            return OwnerAnswer::Gone;
        }
        let args = vec![device.into(), from_socket(socket)];
        match self.namespace.ask_server(replica, OWNER, args, Some(ANSWER_MAX)).await {
            Ok(Some(answer)) => to_answer(&answer).unwrap_or(OwnerAnswer::Silent),
            // It may have died meanwhile.
            Ok(None) | Err(_) if self.is_gone(replica) => OwnerAnswer::Gone,
            Ok(None) | Err(_) => OwnerAnswer::Silent,
        }
    }

    /// Has another replica evict its socket, and says so to the machine when it is done.
    pub(super) async fn evict_at(
        self: &Arc<Self>,
        device: Arc<str>,
        epoch: u64,
        replica: Arc<str>,
        socket: SocketId,
        after_ms: u32,
    ) {
        if *replica == *self.replicas.cluster().uid() {
            self.drive(|state, at| {
                state.sessions.handle_evict(&device, epoch, socket, after_ms, at);
                state.sessions.handle_evict_confirmed(&device, epoch, at);
            });
            return;
        }
        if self.is_gone(&replica) {
            return self.drive(|state, at| state.sessions.handle_replica_gone(&replica, at));
        }
        let args = vec![(*device).into(), epoch.into(), from_socket(socket), after_ms.into()];
        let answer = self.namespace.ask_server(&replica, EVICT, args, Some(ANSWER_MAX)).await;
        if answer.is_ok_and(|answer| answer.is_some_and(|answer| answer == Value::Boolean(true))) {
            self.drive(|state, at| state.sessions.handle_evict_confirmed(&device, epoch, at));
        }
    }

    /// Whether a replica's process is known to be gone.
    fn is_gone(&self, replica: &str) -> bool {
        let cluster = self.replicas.cluster();
        let standing = cluster.standing();
        cluster.uid() != replica && standing.linked && standing.complete && !cluster.knows(replica)
    }

    /// A replica is gone: its devices are to be said to be offline unless they come back.
    pub(crate) fn replica_gone(self: &Arc<Self>, replica: &str) {
        let (devices, replica): (_, Arc<str>) = (self.clone(), replica.into());
        tokio::spawn(async move {
            devices.drive(|state, at| state.sessions.handle_replica_gone(&replica, at));
            for look in LOOKS {
                sleep(look).await;
                devices.find_orphans(&replica).await;
            }
        });
    }

    /// The link is there again: the store may have been restarted, and replicas have gone unseen.
    pub(crate) fn link_up(self: &Arc<Self>) {
        let devices = self.clone();
        tokio::spawn(async move {
            devices.drive(|state, at| state.sessions.handle_store_back(at));
            // By then every replica that lives has been heard from.
            sleep(Duration::from_secs(5)).await;
            for replica in devices.store.replicas().await.unwrap_or_default() {
                if devices.is_gone(&replica) {
                    let replica: Arc<str> = replica.into();
                    devices.drive(|state, at| state.sessions.handle_replica_gone(&replica, at));
                    devices.find_orphans(&replica).await;
                }
            }
        });
    }

    /// The store may not hold any more what it held.
    pub(crate) fn compare(self: &Arc<Self>) {
        self.drive_aside(|state, at| state.sessions.handle_store_back(at));
    }

    async fn find_orphans(self: &Arc<Self>, replica: &Arc<str>) {
        match self.store.of_replica(replica).await {
            Ok(devices) => {
                for device in devices {
                    let device: Arc<str> = device.into();
                    self.drive(|state, at| state.sessions.handle_orphan(&device, replica.clone(), at));
                }
            }
            Err(error) => tracing::debug!(%error, replica = &**replica, "its devices are not known"),
        }
    }
}

/// Brings the news of the cluster to the devices.
pub(super) fn subscribe(devices: &Arc<Devices>) {
    let weak = Arc::downgrade(devices);
    devices.replicas.subscribe(move |news| {
        let Some(devices) = weak.upgrade() else { return };
        match news {
            News::Link { up: true } => devices.link_up(),
            News::ReplicaGone { peer } => devices.replica_gone(peer),
            News::RedisEmptied => devices.compare(),
            News::Link { up: false } | News::Daemons { .. } | News::Draining { .. } | News::Resumed(_) => {}
        }
    });
}

/// Answers what other replicas ask, and compares again and again what this one holds with the store that they share.
pub(super) fn serve(devices: &Arc<Devices>) {
    let weak = Arc::downgrade(devices);
    if !devices.replicas.cluster().is_alone() {
        let weak = weak.clone();
        tokio::spawn(async move {
            loop {
                sleep(COMPARE).await;
                let Some(devices) = weak.upgrade() else { return };
                devices.compare();
            }
        });
    }
    devices.namespace.answer_server_side(move |event, args| {
        let answer = weak.upgrade().and_then(|devices| match event {
            OWNER => {
                let [device, socket] = <[Value; 2]>::try_from(args).ok()?;
                Some(from_answer(devices.owner_answer(device.as_str()?, to_socket(&socket)?)))
            }
            EVICT => {
                let [device, epoch, socket, after_ms] = <[Value; 4]>::try_from(args).ok()?;
                let (device, epoch): (Arc<str>, _) = (device.as_str()?.into(), epoch.as_u64()?);
                let (socket, after_ms) = (to_socket(&socket)?, u32::try_from(after_ms.as_u64()?).ok()?);
                devices.drive_aside(|state, at| state.sessions.handle_evict(&device, epoch, socket, after_ms, at));
                Some(true.into())
            }
            _ => None,
        });
        answer.unwrap_or(Value::Nil)
    });
}

fn from_answer(answer: OwnerAnswer) -> Value {
    match answer {
        OwnerAnswer::Alive { age_ms, idle_ms, heartbeat_ms } => {
            Value::Array(vec![age_ms.into(), idle_ms.into(), heartbeat_ms.into()])
        }
        OwnerAnswer::Gone => false.into(),
        OwnerAnswer::Silent => Value::Nil,
    }
}

fn to_answer(answer: &Value) -> Option<OwnerAnswer> {
    if *answer == Value::Boolean(false) {
        return Some(OwnerAnswer::Gone);
    }
    let spans = answer.as_array()?;
    let span = |index: usize| u32::try_from(spans.get(index)?.as_u64()?).ok();
    Some(OwnerAnswer::Alive { age_ms: span(0)?, idle_ms: span(1)?, heartbeat_ms: span(2)? })
}

fn from_socket(socket: SocketId) -> Value {
    Value::Binary(socket.0.to_be_bytes().to_vec())
}

fn to_socket(value: &Value) -> Option<SocketId> {
    let bytes: [u8; 16] = value.as_slice()?.try_into().ok()?;
    Some(SocketId(u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_were_written() {
        let alive = OwnerAnswer::Alive { age_ms: 1, idle_ms: u32::MAX, heartbeat_ms: 0 };
        for answer in [alive, OwnerAnswer::Gone] {
            assert_eq!(to_answer(&from_answer(answer)), Some(answer));
        }
        assert_eq!(to_answer(&from_answer(OwnerAnswer::Silent)), None);
        assert_eq!(to_socket(&from_socket(SocketId(7))), Some(SocketId(7)));
    }
}
