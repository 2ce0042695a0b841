//! Tests how many replicas a message reaches.

use std::time::Duration;

use socketioxide_core::Value as Encoded;
use socketioxide_core::adapter::{BroadcastOptions, CoreAdapter};
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::{RequestFailed, Settings};

use futures_util::{StreamExt, future::join_all};

use crate::rig::replicas::{Replica, everyone, packet, start_known};

const SECOND: Duration = Duration::from_secs(1);

/// How many messages went to the public channel, and to the private one of each replica.
fn delivered(redis: &Memory, replicas: &[Replica]) -> (u64, Vec<u64>) {
    (redis.delivered("socket.io#/#"), replicas.iter().map(|replica| redis.delivered(&replica.channel())).collect())
}

#[tokio::test(start_paused = true)]
async fn a_request_to_one_socket_reaches_only_its_server() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 8, &Settings::default()).await;
    let before = delivered(&redis, &replicas);
    let answer = replicas[0].ask(&replicas[5], "ask", SECOND).answer().await;
    assert_eq!(answer, Ok(replicas[5].ack()));
    assert_eq!(replicas[5].got().await, r#"2["ask","x"]"#);
    for replica in &mut replicas {
        replica.got_nothing().await;
    }
    let after = delivered(&redis, &replicas);
    assert_eq!(after.0, before.0, "nothing to all");
    let each: Vec<u64> = after.1.iter().zip(&before.1).map(|(after, before)| after - before).collect();
    assert_eq!(each, [1, 0, 0, 0, 0, 1, 0, 0], "the request and its ack");
}

#[tokio::test(start_paused = true)]
async fn a_remote_socket_of_socketioxide_is_asked_only_at_its_server() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 4, &Settings::default()).await;
    let found = replicas[0].adapter.fetch_sockets(everyone()).await.unwrap();
    let mut ids: Vec<_> = found.iter().map(|socket| socket.id).collect();
    let mut all: Vec<_> = replicas.iter().map(|replica| replica.sockets.sid).collect();
    ids.sort();
    all.sort();
    assert_eq!(ids, all);
    let remote = found.iter().find(|socket| socket.id == replicas[3].sockets.sid).unwrap();
    assert_eq!(remote.server_id.as_str(), replicas[3].cluster.uid());
    let before = delivered(&redis, &replicas);
    let selected = BroadcastOptions::new_remote(remote);
    let acks = replicas[0].adapter.broadcast_with_ack(packet("ask", &[]), selected, None).await.unwrap();
    assert_eq!(acks.count().await, 1);
    assert_eq!(replicas[3].got().await, r#"2["ask"]"#);
    let after = delivered(&redis, &replicas);
    let each: Vec<u64> = after.1.iter().zip(&before.1).map(|(after, before)| after - before).collect();
    assert_eq!((after.0 - before.0, each), (0, vec![2, 0, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn a_broadcast_reaches_every_replica_once_and_in_order() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 8, &Settings::default()).await;
    for number in 0..500 {
        replicas[2].broadcast("all", number).await;
    }
    for replica in &mut replicas {
        for number in 0..500 {
            assert_eq!(replica.got().await, format!(r#"2["all",{number}]"#));
        }
        replica.got_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn collects_the_acks_of_all_replicas() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 8, &Settings::default()).await;
    let acks = replicas[1].adapter.broadcast_with_ack(packet("ask", &[]), everyone(), Some(SECOND)).await.unwrap();
    let mut acks: Vec<_> = acks.map(|(_, ack)| ack.unwrap()).collect().await;
    let mut sockets: Vec<_> =
        replicas.iter().map(|replica| Encoded::Str(format!("[\"{}\"]", replica.sockets.sid).into(), None)).collect();
    let text = |value: &Encoded| value.as_str().unwrap().as_str().to_owned();
    acks.sort_by_key(text);
    sockets.sort_by_key(text);
    assert_eq!(acks, sockets);
}

#[tokio::test(start_paused = true)]
async fn answers_two_thousand_requests_at_once() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    let requests: Vec<_> = (0..2_000).map(|_| replicas[0].ask(&replicas[1], "ask", SECOND)).collect();
    let answers = join_all(requests.into_iter().map(|request| request.answer())).await;
    assert_eq!(answers, vec![Ok(replicas[1].ack()); 2_000]);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_missing_socket_fails_as_absent() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 3, &Settings::default()).await;
    let packet = socketioxide_redis_streams::wire::Packet::event("ask", []);
    let elsewhere = replicas[2].sockets.sid;
    let request = replicas[0].namespace.request(replicas[1].cluster.uid(), elsewhere.as_str(), packet, SECOND).unwrap();
    assert_eq!(request.answer().await, Err(RequestFailed::Absent));
    assert_eq!(replicas[0].ask(&replicas[1], "mute", SECOND).answer().await, Err(RequestFailed::TimedOut));
}
