//! Tests clients that move between replicas while replicas broadcast: each gets everything once, in the order of the stream.

use std::collections::HashMap;

use socketioxide_redis_streams::Settings;
use socketioxide_redis_streams::transport::EntryId;
use socketioxide_redis_streams::transport::memory::Memory;
use tokio::task::yield_now;

use crate::rig::buffered_sockets::Delivery;
use crate::rig::followed_replica::{Client, FollowedReplica};

const CLIENTS: usize = 40;
const NUMBERS: u64 = 1_500;
const REPLICAS: usize = 3;

/// What a client wrote down across its connections.
struct ClientRecord {
    last: EntryId,
    /// Each number with its offset.
    seen: Vec<(u64, EntryId)>,
}

impl ClientRecord {
    fn note(&mut self, got: Delivery) {
        match got {
            Delivery::Event(number, Some(at)) => {
                assert!(at > self.last, "{number} at {at} after {}", self.last);
                self.seen.push((number, at));
                self.last = at;
            }
            Delivery::Recovered(from, to) => {
                assert!(from <= self.last && self.last <= to, "{from} to {to}: {}", self.last);
                self.last = to;
            }
            other => panic!("{other:?}"),
        }
    }

    fn connect(&self, replica: &FollowedReplica) -> Client {
        let mut client = replica.client(&[]);
        client.follow(replica, &[], Some(self.last));
        client
    }
}

/// One client: comes, stays for some packets, goes without looking at all it got, comes back elsewhere.
async fn live(replicas: &[FollowedReplica], began: EntryId, seed: u64) -> Vec<(u64, EntryId)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut diary = ClientRecord { last: began, seen: Vec::new() };
    while diary.seen.len() < 2 * NUMBERS as usize {
        let mut client = diary.connect(random.choice(replicas).unwrap());
        for _ in 0..random.usize(1..200) {
            if diary.seen.len() == 2 * NUMBERS as usize {
                break;
            }
            diary.note(client.got().await);
        }
        drop(client);
        for _ in 0..random.usize(0..20) {
            yield_now().await;
        }
    }
    diary.seen
}

async fn churn(settings: Settings) {
    let redis = Memory::new();
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(FollowedReplica::reading(&redis, settings.clone()).await);
    }
    let replicas: &'static [FollowedReplica] = replicas.leak();
    let (_, began) = replicas[0].fresh(&[]).await;
    let clients: Vec<_> = (0..CLIENTS).map(|seed| tokio::spawn(live(replicas, began, seed as u64))).collect();
    let makers: Vec<_> = (0..2)
        .map(|maker| {
            tokio::spawn(async move {
                for number in 0..NUMBERS {
                    replicas[maker].broadcast(maker as u64 * NUMBERS + number).await;
                    if number % 8 == 0 {
                        yield_now().await;
                    }
                }
            })
        })
        .collect();
    for maker in makers {
        maker.await.unwrap();
    }
    let mut offsets = HashMap::new();
    for client in clients {
        let seen = client.await.unwrap();
        for maker in 0..2 {
            let of_maker = seen.iter().map(|(number, _)| *number).filter(|number| number / NUMBERS == maker);
            assert!(of_maker.eq(maker * NUMBERS..(maker + 1) * NUMBERS), "each number once, in its maker's order");
        }
        for (number, at) in seen {
            assert_eq!(*offsets.entry(number).or_insert(at), at, "one offset everywhere");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_clients_get_everything_once_and_in_order_from_memory() {
    churn(Settings::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_clients_get_everything_once_and_in_order_from_redis() {
    // Who is more than half behind is served from what is read anew, which is forgotten as soon as nobody waits for it.
    churn(Settings { log_entries_max: NUMBERS as usize, ..Settings::default() }).await;
}
