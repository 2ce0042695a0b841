//! Redis stopped, restarted, emptied, or full of something else.

use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;

#[tokio::test]
async fn scripts_that_redis_forgot_run_all_the_same() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    put(&store, "d", &held("r")).await;
    assert!(server.command("SCRIPT FLUSH").starts_with("+OK"));
    put(&store, "d", &held("r").refused(NOW_MS)).await;
    assert_eq!(store.read("d").await.unwrap().refusals, 1);
}

#[tokio::test]
async fn a_redis_that_is_gone_is_away_and_comes_back_empty() {
    let mut server = RedisServer::start();
    let store = connected(&server, "p#").await;
    put(&store, "d", &held("r")).await;
    server.kill();
    tokio::time::timeout(AT_LAST, is_away(&store)).await.expect("no answer at all");
    server.resurrect();
    assert_eq!(until_read(&store).await, DeviceRecord::default());
    assert_eq!(store.swap("d", held("r").epoch, &held("s")).await, SwapResult::Lost);
    assert_eq!(store.swap("d", 0, &held("s")).await, SwapResult::Won);
}

#[tokio::test]
async fn a_redis_that_hangs_is_away_until_it_answers() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    let one = held("r");
    put(&store, "d", &one).await;
    server.hang();
    tokio::time::timeout(AT_LAST, is_away(&store)).await.expect("no answer at all");
    server.resume();
    // Nobody knows whether it was written; it is one of the two.
    let now = until_read(&store).await;
    assert!(now == one || now == later(&one), "{now:?}");
}

#[tokio::test]
async fn a_redis_that_was_demoted_is_away_for_writers() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    put(&store, "d", &held("r")).await;
    server.command("REPLICAOF 127.0.0.1 1");
    assert_eq!(store.swap("d", 7, &held("s")).await, SwapResult::Lost);
    assert_eq!(store.swap("d", held("r").epoch, &later(&held("r"))).await, SwapResult::Away);
    server.command("REPLICAOF NO ONE");
    assert_eq!(until_read(&store).await, held("r"));
    assert_eq!(store.swap("d", held("r").epoch, &later(&held("r"))).await, SwapResult::Won);
}

/// Each operation, without an answer.
async fn is_away(store: &DeviceStore) {
    assert_eq!(store.read("d").await, Err(Unread::Away));
    assert_eq!(store.swap("d", held("r").epoch, &later(&held("r"))).await, SwapResult::Away);
    assert_eq!(store.page(None, 5).await, Err(StoreAway));
    assert_eq!(store.by_pairing_code("c").await, Err(StoreAway));
    assert_eq!(store.of_replica("r").await, Err(StoreAway));
    assert_eq!(store.replicas().await, Err(StoreAway));
}

fn later(record: &DeviceRecord) -> DeviceRecord {
    record.refused(NOW_MS + 1)
}

#[tokio::test]
async fn two_replicas_see_one_record() {
    let server = RedisServer::start();
    let (one, two, other) =
        (connected(&server, "p#").await, connected(&server, "p#").await, connected(&server, "q#").await);
    put(&one, "d", &held("r")).await;
    let (epoch, left, right) = (held("r").epoch, held("r").refused(NOW_MS + 1), held("r").refused(NOW_MS + 2));
    let (left, right) = tokio::join!(one.swap("d", epoch, &left), two.swap("d", epoch, &right));
    assert!(matches!((left, right), (SwapResult::Won, SwapResult::Lost) | (SwapResult::Lost, SwapResult::Won)));
    assert_eq!(one.read("d").await, two.read("d").await);
    assert_eq!(other.read("d").await.unwrap(), DeviceRecord::default());
}

#[tokio::test]
async fn what_cannot_be_read_is_not_taken_for_none() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _counted = metrics::set_default_local_recorder(&recorder);
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    put(&store, "d", &held("r")).await;
    put(&store, "e", &held("r")).await;
    server.command("HSET p#device:record:d record {}");
    assert_eq!(store.read("d").await, Err(Unread::Unreadable));
    let page = store.page(None, 5).await.unwrap();
    assert_eq!(page.iter().map(|(device, _)| device.as_str()).collect::<Vec<_>>(), ["e"], "the others are not held up");
    assert!(metrics.render().lines().any(|line| line == "pointwork_device_records_malformed_total 2"));
    // A writer that knows the epoch may still replace it.
    assert_eq!(store.swap("d", held("r").epoch, &later(&held("r"))).await, SwapResult::Won);
    assert_eq!(store.read("d").await.unwrap(), later(&held("r")));
}

#[tokio::test]
async fn keys_of_another_kind_are_as_good_as_away() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    server.command("SET p#device:record:d x");
    assert_eq!((store.read("d").await, store.swap("d", 0, &held("r")).await), (Err(Unread::Away), SwapResult::Away));
    assert_eq!(
        (store.read("e").await, store.swap("e", 0, &held("r")).await),
        (Ok(DeviceRecord::default()), SwapResult::Won)
    );
}
