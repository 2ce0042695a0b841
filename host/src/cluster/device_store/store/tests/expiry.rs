//! What becomes of records that expire in Redis. Days do not pass here: the expiry that Redis was told is looked at, and records are
//! taken away as it would.

use super::*;

/// What is left of a key, in milliseconds; -1: for good; -2: there is none.
fn left_ms(server: &RedisServer, key: &str) -> i64 {
    server.command(&format!("PTTL p#device:{key}")).trim_start_matches(':').trim().parse().unwrap()
}

/// How many there are of something.
fn count(server: &RedisServer, command: &str) -> i64 {
    server.command(command).trim_start_matches(':').trim().parse().unwrap()
}

/// As Redis does it when the time has come.
fn expire(server: &RedisServer, device: &str) {
    assert_eq!(count(server, &format!("DEL p#device:record:{device}")), 1);
}

#[tokio::test]
async fn only_what_nobody_paired_or_blocked_expires() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    let day_ms = 24 * 60 * 60 * 1000;
    let waiting = coded("c").accepted(held_by("r", 1), Fate::Evicted, 0, NOW_MS);
    put(&store, "d", &waiting).await;
    for key in ["record:d", "code:c"] {
        assert!((day_ms - 60_000..=day_ms).contains(&left_ms(&server, key)), "{key}");
    }
    let blocked = waiting.blocked(NOW_MS);
    put(&store, "d", &blocked).await;
    assert_eq!((left_ms(&server, "record:d"), left_ms(&server, "code:c")), (-1, -1));
    let unblocked = blocked.unblocked(NOW_MS);
    put(&store, "d", &unblocked).await;
    assert!(left_ms(&server, "record:d") > 0 && left_ms(&server, "code:c") > 0);
    put(&store, "d", &unblocked.paired_with(None, NOW_MS)).await;
    assert_eq!((left_ms(&server, "record:d"), left_ms(&server, "code:c")), (-1, -2));
    assert_eq!(count(&server, "ZCARD p#device:expiring"), 0);
}

#[tokio::test]
async fn a_change_begins_the_day_anew() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    put(&store, "d", &coded("c")).await;
    for key in ["record:d", "code:c"] {
        assert_eq!(count(&server, &format!("PEXPIRE p#device:{key} 100000")), 1);
    }
    put(&store, "d", &DeviceRecord { epoch: 2, ..coded("c") }).await;
    assert!(left_ms(&server, "record:d") > 100_000 && left_ms(&server, "code:c") > 100_000);
}

#[tokio::test]
async fn nothing_leads_to_a_record_that_has_expired() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    for number in 0..200 {
        let waiting = coded(&format!("c-{number}")).accepted(held_by("r", 1), Fate::Evicted, 0, NOW_MS);
        put(&store, &format!("d-{number:03}"), &waiting).await;
    }
    for number in 0..199 {
        expire(&server, &format!("d-{number:03}"));
    }
    let page = store.page(None, 1).await.unwrap();
    assert_eq!((page[0].0.as_str(), page.len()), ("d-199", 1));
    assert_eq!(count(&server, "ZCARD p#device:ids"), 1);
    assert_eq!(store.of_replica("r").await.unwrap(), ["d-199"]);
    assert_eq!(store.by_pairing_code("c-0").await.unwrap(), None);
    put(&store, "other", &coded("c-0")).await;
    assert_eq!(store.by_pairing_code("c-0").await.unwrap().as_deref(), Some("other"));
}

#[tokio::test]
async fn what_led_to_expired_records_is_swept() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    for number in 0..20 {
        let waiting = coded(&format!("c-{number}")).accepted(held_by("r", 1), Fate::Evicted, 0, NOW_MS);
        put(&store, &format!("d-{number}"), &waiting).await;
    }
    for number in 0..20 {
        expire(&server, &format!("d-{number}"));
        assert_eq!(count(&server, &format!(r#"ZADD p#device:expiring 1 "r\nd-{number}""#)), 0);
    }
    // One is back, elsewhere, before the sweep.
    put(&store, "d-0", &held("s")).await;
    for number in 0..3 {
        put(&store, &format!("paired-{number}"), &DeviceRecord { is_paired: true, ..held("t") }).await;
    }
    assert_eq!(count(&server, "ZCARD p#device:ids"), 4);
    assert_eq!(count(&server, "EXISTS p#device:of:r"), 0);
    assert_eq!(count(&server, "ZCARD p#device:expiring"), 1);
    assert_eq!(store.replicas().await.unwrap(), ["s", "t"]);
    assert_eq!(store.of_replica("s").await.unwrap(), ["d-0"]);
}

#[tokio::test]
async fn a_sweep_spares_what_is_there_again() {
    let server = RedisServer::start();
    let store = connected(&server, "p#").await;
    put(&store, "d", &held("r")).await;
    expire(&server, "d");
    // What is left of the first time is due while the device is back at the same place, for good.
    put(&store, "d", &DeviceRecord { is_paired: true, ..held("r") }).await;
    server.command(r#"ZADD p#device:expiring 1 "r\nd" 1 "no member of ours""#);
    put(&store, "e", &DeviceRecord { is_paired: true, ..held("s") }).await;
    assert_eq!(count(&server, "ZCARD p#device:expiring"), 0);
    assert_eq!(store.of_replica("r").await.unwrap(), ["d"]);
    assert_eq!(store.page(None, 10).await.unwrap().len(), 2);
}
