//! Both stores through the same cases, and what can become of the one in Redis.

mod away;
mod expiry;
pub(in crate::cluster::device_store) mod random;
mod same;

use std::time::Duration;

use pointwork_core::SocketId;
use pointwork_core::devices::Holder;
use pointwork_core::devices::record::Fate;
use socketioxide_redis_streams::transport::redis::RedisOptions;

use super::*;
use crate::cluster::test_redis::RedisServer;

const NOW_MS: u64 = 1_800_000_000_000;
/// Longer than anything takes on a machine that is busy.
const AT_LAST: Duration = Duration::from_secs(20);

fn held_by(replica: &str, socket: u128) -> Holder {
    Holder {
        replica: replica.into(),
        socket: SocketId(socket),
        epoch: 0,
        accepted_ms: NOW_MS,
        has_proved: true,
        fingerprint: Some(7),
        address: None,
    }
}

/// A device without anything, held by a replica.
fn held(replica: &str) -> DeviceRecord {
    DeviceRecord::default().accepted(held_by(replica, 1), Fate::Evicted, 0, NOW_MS)
}

/// A device that waits for being paired.
fn coded(code: &str) -> DeviceRecord {
    DeviceRecord { epoch: 1, pairing_code: Some(code.into()), ..DeviceRecord::default() }
}

/// Writes what must be written.
async fn put(store: &DeviceStore, device: &str, record: &DeviceRecord) {
    let expected = store.read(device).await.unwrap().epoch;
    assert_eq!(store.swap(device, expected, record).await, SwapResult::Won);
}

/// A replica's store in a server, connected.
async fn connected(server: &RedisServer, prefix: &str) -> DeviceStore {
    let options = RedisOptions { command_timeout: Duration::from_millis(500), ..RedisOptions::default() };
    let store = DeviceStore::redis(Arc::new(Redis::start(&server.url(), options).unwrap()), prefix);
    until_read(&store).await;
    store
}

/// Waits until the store is not away.
async fn until_read(store: &DeviceStore) -> DeviceRecord {
    let read = async {
        loop {
            match store.read("d").await {
                Ok(record) => return record,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    };
    tokio::time::timeout(AT_LAST, read).await.expect("the store stays away")
}

/// A case with a store alone, and with one in Redis.
async fn both(case: impl AsyncFn(&Arc<DeviceStore>)) {
    case(&Arc::new(DeviceStore::alone())).await;
    let server = RedisServer::start();
    case(&Arc::new(connected(&server, "p#").await)).await;
}
