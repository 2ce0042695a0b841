//! Tests that rooms and sockets of all replicas behave like those of one server.

use std::time::Duration;

use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreAdapter};
use socketioxide_redis_streams::Settings;
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::wire::{Options, Value};

use crate::rig::replicas::{Replica, everyone, packet, start_known};

fn room(name: &'static str) -> BroadcastOptions {
    let mut selected = BroadcastOptions::default();
    selected.rooms.push(name.into());
    selected
}

/// Waits until another replica has done what it was told before.
async fn follow(replicas: &mut [Replica]) {
    replicas[0].broadcast("fence", 0).await;
    for replica in replicas {
        assert_eq!(replica.got().await, r#"2["fence",0]"#);
    }
}

#[tokio::test(start_paused = true)]
async fn sockets_of_all_replicas_join_and_leave_rooms() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 3, &Settings::default()).await;
    replicas[0].adapter.add_sockets(everyone(), "a").await.unwrap();
    replicas[0].adapter.add_sockets(BroadcastOptions::new(replicas[2].sockets.sid), "b").await.unwrap();
    follow(&mut replicas).await;
    let mut rooms = replicas[1].adapter.rooms(everyone()).await.unwrap();
    rooms.sort();
    assert_eq!(rooms, ["a", "b"]);
    replicas[1].adapter.broadcast(packet("to b", &[]), room("b")).await.unwrap();
    assert_eq!(replicas[2].got().await, r#"2["to b"]"#);
    replicas[0].adapter.del_sockets(room("b"), "a").await.unwrap();
    follow(&mut replicas).await;
    replicas[0].adapter.broadcast(packet("to a", &[]), room("a")).await.unwrap();
    for at in [0, 1] {
        assert_eq!(replicas[at].got().await, r#"2["to a"]"#);
    }
    replicas[0].adapter.disconnect_socket(room("b")).await.unwrap();
    assert_eq!(replicas[2].got().await, "disconnect");
    for replica in &mut replicas {
        replica.got_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn publishes_neither_empty_selections_nor_local_broadcasts() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 2, &Settings::default()).await;
    let mut local = everyone();
    local.add_flag(BroadcastFlags::Local);
    replicas[0].adapter.broadcast(packet("local", &[]), local.clone()).await.unwrap();
    replicas[0].adapter.broadcast(packet("nobody", &[]), BroadcastOptions::default()).await.unwrap();
    replicas[0].adapter.disconnect_socket(BroadcastOptions::default()).await.unwrap();
    assert_eq!(replicas[0].got().await, r#"2["local"]"#);
    follow(&mut replicas).await;
    replicas[1].got_nothing().await;
    assert_eq!(replicas[0].adapter.fetch_sockets(local).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hung_replica_does_not_lose_the_answers_of_others() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 4, &Settings::default()).await;
    replicas[3].line.set_hung(true);
    let within = Some(Duration::from_millis(500));
    let answers = replicas[0].namespace.fetch_sockets(Options::everyone(), within).await.unwrap();
    assert_eq!((answers.given.len(), answers.missing), (2, 1));
    let server = replicas[1].cluster.uid();
    let one = replicas[0].namespace.fetch_sockets_of(server, Options::everyone(), within).await.unwrap().unwrap();
    assert_eq!(one[0].id, replicas[1].sockets.sid.to_string());
    let none =
        replicas[0].namespace.fetch_sockets_of(replicas[3].cluster.uid(), Options::everyone(), within).await.unwrap();
    assert!(none.is_none());
}

#[tokio::test(start_paused = true)]
async fn answers_server_side_events() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 3, &Settings::default()).await;
    for replica in &replicas {
        let uid = replica.cluster.uid().to_owned();
        replica.namespace.answer_server_side(move |event, args| {
            Value::Array([vec![event.into(), uid.as_str().into()], args].concat())
        });
    }
    let answers = replicas[0].namespace.server_side_emit_with_ack("who", vec![1.into()], None).await.unwrap();
    assert_eq!((answers.given.len(), answers.missing), (2, 0));
    for (server, answer) in answers.given {
        assert_eq!(answer, Value::Array(vec!["who".into(), server.as_str().into(), 1.into()]));
    }
    assert_eq!(replicas[0].adapter.server_count().await.unwrap(), 3);
}
