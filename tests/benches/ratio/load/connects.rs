//! Connections: many at once, each with the handshakes of a browser's client and the token of its own user.

use std::sync::Arc;

use anyhow::Result;
use tokio::{sync::Semaphore, task::JoinSet};

use super::{users::User, wire::Wire};
use crate::servers::cluster::Replica;

/// Handshakes under way at once.
const CONNECTING_MAX: usize = 32;

/// Connects an app of each user, at the replicas in turns. Errors when one is refused.
pub(crate) async fn connect(replicas: &[&Replica], users: &[User]) -> Result<Vec<Wire>> {
    let connecting = Arc::new(Semaphore::new(CONNECTING_MAX));
    let mut connected = JoinSet::new();
    for (user, replica) in users.iter().zip(replicas.iter().cycle()) {
        let (url, auth) = (replica.socketio().to_owned(), user.app());
        let permit = connecting.clone().acquire_owned().await?;
        connected.spawn(async move {
            let wire = Wire::connect(&url, &auth).await;
            drop(permit);
            wire
        });
    }
    let mut wires = Vec::with_capacity(users.len());
    while let Some(wire) = connected.join_next().await {
        wires.push(wire??);
    }
    Ok(wires)
}
