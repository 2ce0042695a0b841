//! Rooms and sockets as one server would have them.

use std::time::Duration;

use socketioxide_core::adapter::{BroadcastFlags, BroadcastOptions, CoreAdapter};
use socketioxide_redis_streams::Settings;
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::wire::{Options, Value};

use crate::fleet::{Replica, everyone, packet, start_known};

fn room(name: &'static str) -> BroadcastOptions {
    let mut selected = BroadcastOptions::default();
    selected.rooms.push(name.into());
    selected
}

/// Waits until another replica has done what it was told before.
async fn follow(fleet: &mut [Replica]) {
    fleet[0].broadcast("fence", 0).await;
    for replica in fleet {
        assert_eq!(replica.got().await, r#"2["fence",0]"#);
    }
}

#[tokio::test(start_paused = true)]
async fn sockets_everywhere_join_and_leave() {
    let redis = Memory::new();
    let mut fleet = start_known(&redis, 3, &Settings::default()).await;
    fleet[0].adapter.add_sockets(everyone(), "a").await.unwrap();
    fleet[0].adapter.add_sockets(BroadcastOptions::new(fleet[2].sockets.sid), "b").await.unwrap();
    follow(&mut fleet).await;
    let mut rooms = fleet[1].adapter.rooms(everyone()).await.unwrap();
    rooms.sort();
    assert_eq!(rooms, ["a", "b"]);
    fleet[1].adapter.broadcast(packet("to b", &[]), room("b")).await.unwrap();
    assert_eq!(fleet[2].got().await, r#"2["to b"]"#);
    fleet[0].adapter.del_sockets(room("b"), "a").await.unwrap();
    follow(&mut fleet).await;
    fleet[0].adapter.broadcast(packet("to a", &[]), room("a")).await.unwrap();
    for at in [0, 1] {
        assert_eq!(fleet[at].got().await, r#"2["to a"]"#);
    }
    fleet[0].adapter.disconnect_socket(room("b")).await.unwrap();
    assert_eq!(fleet[2].got().await, "disconnect");
    for replica in &mut fleet {
        replica.got_nothing().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_not_everyone_and_local_is_not_told() {
    let redis = Memory::new();
    let mut fleet = start_known(&redis, 2, &Settings::default()).await;
    let mut local = everyone();
    local.add_flag(BroadcastFlags::Local);
    fleet[0].adapter.broadcast(packet("local", &[]), local.clone()).await.unwrap();
    fleet[0].adapter.broadcast(packet("nobody", &[]), BroadcastOptions::default()).await.unwrap();
    fleet[0].adapter.disconnect_socket(BroadcastOptions::default()).await.unwrap();
    assert_eq!(fleet[0].got().await, r#"2["local"]"#);
    follow(&mut fleet).await;
    fleet[1].got_nothing().await;
    assert_eq!(fleet[0].adapter.fetch_sockets(local).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hung_replica_costs_no_answers_of_the_others() {
    let redis = Memory::new();
    let fleet = start_known(&redis, 4, &Settings::default()).await;
    fleet[3].line.set_hung(true);
    let within = Some(Duration::from_millis(500));
    let answers = fleet[0].namespace.fetch_sockets(Options::everyone(), within).await.unwrap();
    assert_eq!((answers.given.len(), answers.missing), (2, 1));
    let server = fleet[1].cluster.uid();
    let one = fleet[0].namespace.fetch_sockets_of(server, Options::everyone(), within).await.unwrap().unwrap();
    assert_eq!(one[0].id, fleet[1].sockets.sid.to_string());
    let none = fleet[0].namespace.fetch_sockets_of(fleet[3].cluster.uid(), Options::everyone(), within).await.unwrap();
    assert!(none.is_none());
}

#[tokio::test(start_paused = true)]
async fn server_side_events_are_answered() {
    let redis = Memory::new();
    let fleet = start_known(&redis, 3, &Settings::default()).await;
    for replica in &fleet {
        let uid = replica.cluster.uid().to_owned();
        replica.namespace.answer_server_side(move |event, args| {
            Value::Array([vec![event.into(), uid.as_str().into()], args].concat())
        });
    }
    let answers = fleet[0].namespace.server_side_emit_with_ack("who", vec![1.into()], None).await.unwrap();
    assert_eq!((answers.given.len(), answers.missing), (2, 0));
    for (server, answer) in answers.given {
        assert_eq!(answer, Value::Array(vec!["who".into(), server.as_str().into(), 1.into()]));
    }
    assert_eq!(fleet[0].adapter.server_count().await.unwrap(), 3);
}
