//! Tests the server in memory, with simulated time.

use std::{sync::Arc, time::Duration};

use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::transport::{EntryId, Received, Transport, TransportError};
use tokio::time::Instant;

use crate::contract_tests::contract;
use crate::rig::{Rig, entry, is_disconnected, message, names, received, send, subscribe, subscribers, texts, within};

struct InMemory(Memory);

impl Rig for InMemory {
    fn connect(&self) -> Arc<dyn Transport> {
        Arc::new(self.0.connect())
    }

    fn messages_max(&self) -> usize {
        16_384
    }

    async fn stop(&mut self) {
        self.0.stop();
    }

    async fn start(&mut self) {
        self.0.start(true);
    }
}

contract!([start_paused = true], InMemory(Memory::new()));

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_block_takes_no_real_time_and_ids_follow_the_clock() {
    let transport = Memory::new().connect();
    send(&transport, vec![entry("s", "a"), entry("s", "b")]).await;
    let before = transport.extent("s").await.unwrap().last;
    assert_eq!(transport.read("s", before, 1, HOUR).await, Ok(Vec::new()));
    send(&transport, vec![entry("s", "c")]).await;
    let after = transport.extent("s").await.unwrap().last;
    assert_eq!((before.seq, after), (1, EntryId { ms: before.ms + 3_600_000, seq: 0 }));
}

#[tokio::test(start_paused = true)]
async fn a_cut_affects_one_connection() {
    let server = Memory::new();
    let (one, other) = (server.connect(), server.connect());
    subscribe(&one, &["a"]).await;
    subscribe(&other, &["a"]).await;
    assert_eq!([one.receive().await, other.receive().await], [Received::Restored, Received::Restored]);

    server.cut(one.id());
    assert_eq!(one.receive().await, Received::Interrupted);
    assert!(one.send(vec![message("a", 0)]).await.iter().all(is_disconnected));
    assert!(is_disconnected(&one.read("s", EntryId::default(), 1, HOUR).await));
    assert_eq!(subscribers(&other, &["a"]).await, [1]);
    send(&other, vec![message("a", 1)]).await;
    assert_eq!(other.receive().await, received("a", 1));

    server.restore(one.id());
    assert_eq!(one.receive().await, Received::Restored);
    send(&other, vec![message("a", 2)]).await;
    assert_eq!(one.receive().await, received("a", 2), "what was published meanwhile is missed");
    assert_eq!(server.delivered("a"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_a_read_that_blocks() {
    let server = Memory::new();
    let transport = server.connect();
    let read = transport.read("s", EntryId::default(), 1, HOUR);
    let (read, ()) = tokio::join!(read, async { server.cut(transport.id()) });
    assert!(is_disconnected(&read));
}

#[tokio::test(start_paused = true)]
async fn requests_to_a_hung_server_take_effect_later() {
    let server = Memory::new();
    let transport = server.connect();
    subscribe(&transport, &["a"]).await;
    server.hang();
    let began = Instant::now();
    assert_eq!(transport.send(vec![message("a", 1), entry("s", "x")]).await, vec![Err(TransportError::Timeout); 2]);
    assert_eq!(transport.subscribe(names(&["b"])).await, Err(TransportError::Timeout));
    assert_eq!(transport.extent("s").await, Err(TransportError::Timeout));
    let read = transport.read("s", EntryId::default(), 1, Duration::from_secs(5)).await;
    assert_eq!((read, began.elapsed().as_secs()), (Err(TransportError::Timeout), 9));

    server.resume();
    assert_eq!(transport.receive().await, Received::Restored);
    assert_eq!(transport.receive().await, received("a", 1));
    assert_eq!(subscribers(&transport, &["a", "b"]).await, [1, 1]);
    let entries = transport.read("s", EntryId::default(), 1, HOUR).await.unwrap();
    assert_eq!(texts(&entries), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn a_short_hang_only_delays() {
    let server = Memory::new();
    let transport = server.connect();
    server.hang();
    let (results, ()) = tokio::join!(transport.send(vec![entry("s", "x")]), async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        server.resume();
    });
    assert_eq!(results, [Ok(())]);
}

#[tokio::test(start_paused = true)]
async fn a_server_may_keep_its_streams() {
    let server = Memory::new();
    let transport = server.connect();
    send(&transport, vec![entry("s", "x")]).await;
    server.stop();
    server.start(false);
    assert_eq!(transport.extent("s").await.unwrap().added, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_lag_drops_the_next_messages() {
    let server = Memory::new();
    let transport = server.connect();
    subscribe(&transport, &["a"]).await;
    assert_eq!(transport.receive().await, Received::Restored);
    server.lag(transport.id(), 2);
    send(&transport, (0..4).map(|number| message("a", number)).collect()).await;
    assert_eq!(within(transport.receive()).await, Received::Missed(2));
    assert_eq!(within(transport.receive()).await, received("a", 2));
}
