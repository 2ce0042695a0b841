//! Tests what works without Redis, and which requests fail.

use std::time::Duration;

use futures_util::StreamExt;
use metrics_exporter_prometheus::PrometheusBuilder;
use socketioxide_core::adapter::errors::BroadcastError;
use socketioxide_core::adapter::{BroadcastOptions, CoreAdapter};
use socketioxide_redis_streams::transport::memory::Memory;
use socketioxide_redis_streams::wire::Options;
use socketioxide_redis_streams::{ClusterError, OutboxError, RequestFailed, Settings};
use tokio::time::{Instant, sleep, timeout};

use crate::rig::replicas::{everyone, packet, start_known};

const LONG: Duration = Duration::from_secs(30);
/// What takes no time under a simulated clock.
const AT_ONCE: Duration = Duration::from_millis(20);
/// How long a request survives without the link, and a look more.
const RECONNECT: Duration = Duration::from_millis(700);

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[tokio::test(start_paused = true)]
async fn open_requests_fail_if_the_link_does_not_come_back() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    let open = [(); 3].map(|()| tokio::spawn(replicas[0].ask(&replicas[1], "mute", LONG).answer()));
    let fetch = replicas[1].namespace.clone();
    replicas[0].line.set_hung(true);
    let fetch = tokio::spawn(async move { fetch.fetch_sockets(Options::everyone(), Some(LONG)).await.unwrap() });
    sleep(millis(50)).await;
    replicas[0].line.set_hung(false);
    redis.stop();
    assert_eq!(timeout(AT_ONCE, fetch).await.expect("what all are asked fails at once").unwrap().missing, 1);
    for request in open {
        assert_eq!(timeout(RECONNECT, request).await.expect("soon").unwrap(), Err(RequestFailed::Lost));
    }
    let asked = timeout(AT_ONCE, replicas[0].ask(&replicas[1], "ask", LONG).answer()).await;
    assert_eq!(asked.expect("while it is down"), Err(RequestFailed::Lost));
    redis.start(true);
    let answer = async {
        while replicas[0].ask(&replicas[1], "ask", LONG).answer().await != Ok(replicas[1].ack()) {
            sleep(millis(10)).await;
        }
    };
    timeout(Duration::from_secs(2), answer).await.expect("within two seconds");
}

#[tokio::test(start_paused = true)]
async fn a_served_request_survives_a_reconnect() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    for cut in [0, 1] {
        let request = tokio::spawn(replicas[0].ask(&replicas[1], "slow", LONG).answer());
        sleep(millis(100)).await;
        replicas[cut].line.cut();
        // Shorter than it takes until the other one is taken for dead.
        sleep(millis(30)).await;
        replicas[cut].line.restore();
        assert_eq!(request.await.unwrap(), Ok(replicas[1].ack()), "{cut} was cut off");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_lost_answer_fails_when_the_link_is_back() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    let request = tokio::spawn(replicas[0].ask(&replicas[1], "slow", LONG).answer());
    sleep(millis(980)).await;
    replicas[0].line.cut();
    sleep(millis(100)).await;
    replicas[0].line.restore();
    let failed = timeout(millis(100), request).await.expect("soon after it is back").unwrap();
    assert_eq!(failed, Err(RequestFailed::Lost));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_arrived_fails_when_the_peer_is_back() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    replicas[1].line.cut();
    let request = tokio::spawn(replicas[0].ask(&replicas[1], "ask", LONG).answer());
    sleep(millis(30)).await;
    replicas[1].line.restore();
    let failed = timeout(millis(100), request).await.expect("soon after it is back").unwrap();
    assert_eq!(failed, Err(RequestFailed::Lost));
}

#[tokio::test(start_paused = true)]
async fn after_missed_messages_only_requests_with_lost_answers_fail() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    let open = tokio::spawn(replicas[0].ask(&replicas[1], "slow", LONG).answer());
    sleep(millis(50)).await;
    replicas[0].line.lag(1);
    let missed = replicas[0].ask(&replicas[1], "ask", LONG).answer();
    assert_eq!(timeout(AT_ONCE, missed).await.expect("its answer is lost"), Err(RequestFailed::Lost));
    assert_eq!(open.await.unwrap(), Ok(replicas[1].ack()), "this one is still being served");
    assert_eq!(replicas[0].ask(&replicas[1], "ask", LONG).answer().await, Ok(replicas[1].ack()));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_redis_loses_no_request_that_it_took() {
    let redis = Memory::new();
    let replicas = start_known(&redis, 2, &Settings::default()).await;
    let open = tokio::spawn(replicas[0].ask(&replicas[1], "mute", Duration::from_secs(4)).answer());
    sleep(millis(50)).await;
    redis.hang();
    sleep(Duration::from_secs(2)).await;
    let refused = Instant::now();
    assert_eq!(
        replicas[0].ask(&replicas[1], "ask", LONG).answer().await,
        Err(RequestFailed::Lost),
        "it is not confirmed"
    );
    assert!(refused.elapsed() < Duration::from_millis(2_100), "{:?}", refused.elapsed());
    redis.resume();
    assert_eq!(open.await.unwrap(), Err(RequestFailed::TimedOut), "it was waited for");
}

#[tokio::test(start_paused = true)]
async fn serves_local_sockets_without_redis() {
    let redis = Memory::new();
    let mut replicas = start_known(&redis, 2, &Settings::default()).await;
    redis.stop();
    let alone = &mut replicas[0];
    alone.broadcast("alone", 1).await;
    assert_eq!(alone.got().await, r#"2["alone",1]"#);
    let acks = alone.adapter.broadcast_with_ack(packet("ask", &[]), everyone(), None).await.unwrap();
    assert_eq!(timeout(AT_ONCE, acks.count()).await.expect("nobody else is waited for"), 1);
    assert_eq!(alone.got().await, r#"2["ask"]"#);
    alone.adapter.add_sockets(everyone(), "shelter").await.unwrap();
    let mut shelter = BroadcastOptions::default();
    shelter.rooms.push("shelter".into());
    alone.adapter.broadcast(packet("inside", &[]), shelter.clone()).await.unwrap();
    assert_eq!(alone.got().await, r#"2["inside"]"#);
    alone.adapter.disconnect_socket(shelter).await.unwrap();
    assert_eq!(alone.got().await, "disconnect");
    assert!(matches!(alone.adapter.fetch_sockets(everyone()).await, Err(ClusterError::Transport(_))));
    sleep(millis(50)).await;
    redis.start(false);
    replicas[1].got_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_outbox_is_reported_to_the_caller_and_counted() {
    let redis = Memory::new();
    let settings = Settings { outbox_messages_max: 4, ..Settings::default() };
    let mut replicas = start_known(&redis, 2, &settings).await;
    let recorder = PrometheusBuilder::new().build_recorder();
    replicas[0].line.set_hung(true);
    let send = |number: u64| {
        let (adapter, packet) = (&replicas[0].adapter, packet("many", &[number.into()]));
        metrics::with_local_recorder(&recorder, || adapter.broadcast(packet, everyone()))
    };
    let mut failed = 0;
    for number in 0..10 {
        match send(number).await {
            Ok(()) => assert_eq!(failed, 0, "it stays full"),
            Err(BroadcastError::Adapter(_)) => failed += 1,
            Err(other) => panic!("{other}"),
        }
    }
    // The writer holds a batch, or none yet.
    assert!((5..=6).contains(&failed), "{failed}");
    let asked = replicas[0].namespace.request(
        replicas[1].cluster.uid(),
        replicas[1].sockets.sid.as_str(),
        socketioxide_redis_streams::wire::Packet::event("ask", []),
        LONG,
    );
    assert!(matches!(asked, Err(ClusterError::Outbox(OutboxError::Full))));
    let counted = recorder.handle().render();
    assert!(counted.contains(&format!("adapter_outbox_full_total {failed}")), "{counted}");
    assert!(counted.contains(&format!("adapter_publish_failed_total{{medium=\"stream\"}} {failed}")), "{counted}");
    for number in 0..10 {
        assert_eq!(replicas[0].got().await, format!(r#"2["many",{number}]"#), "local sockets got all");
    }
    replicas[0].line.set_hung(false);
    for number in 0..10 - failed {
        assert_eq!(replicas[1].got().await, format!(r#"2["many",{number}]"#), "what was taken is sent");
    }
    replicas[1].got_nothing().await;
}
