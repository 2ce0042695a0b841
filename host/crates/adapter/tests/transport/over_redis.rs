//! Tests a real Redis with several configurations of server and clients.

use std::{sync::Arc, time::Duration};

use socketioxide_redis_streams::transport::redis::{Redis, RedisOptions};
use socketioxide_redis_streams::transport::{EntryId, Received, Transport, TransportError};

use crate::contract_tests::contract;
use crate::redis_server::RedisServer;
use crate::rig::{
    Rig, connected, entry, is_disconnected, message, names, read, received, send, settled, subscribe, texts, until,
    within,
};

pub(crate) struct OverRedis {
    pub(crate) server: RedisServer,
    pub(crate) options: RedisOptions,
}

impl OverRedis {
    pub(crate) async fn new() -> OverRedis {
        // Less patience than the machine may need would make other tests of it.
        let options = RedisOptions {
            command_timeout: Duration::from_secs(5),
            silence_max: Duration::from_secs(60),
            subscription_messages_max: 1024,
            ..RedisOptions::default()
        };
        OverRedis { server: RedisServer::start(&[]).await, options }
    }

    async fn sharded() -> OverRedis {
        let mut rig = OverRedis::new().await;
        rig.options.sharded = true;
        rig
    }

    pub(crate) fn redis(&self, url: &str) -> Redis {
        Redis::start(url, self.options.clone()).unwrap()
    }
}

impl Rig for OverRedis {
    fn connect(&self) -> Arc<dyn Transport> {
        Arc::new(self.redis(&self.server.url()))
    }

    fn messages_max(&self) -> usize {
        self.options.subscription_messages_max
    }

    async fn stop(&mut self) {
        self.server.kill().await;
    }

    async fn start(&mut self) {
        assert!(self.server.resurrect().await, "the port was taken meanwhile");
    }
}

contract!([flavor = "multi_thread", worker_threads = 2], OverRedis::new().await);

mod sharded {
    use super::*;

    contract!([flavor = "multi_thread", worker_threads = 2], OverRedis::sharded().await);
}

#[tokio::test]
async fn starts_while_redis_is_away() {
    let mut rig = OverRedis { server: RedisServer::stopped(&[]), ..OverRedis::new().await };
    let transport = rig.connect();
    assert!(within(transport.send(vec![entry("s", "a")])).await.iter().all(is_disconnected));
    assert!(is_disconnected(&within(transport.subscribe(names(&["a"]))).await));
    rig.start().await;
    settled(&*transport).await;
    send(&*transport, vec![message("a", 1)]).await;
    assert_eq!(within(transport.receive()).await, received("a", 1));
}

#[tokio::test]
async fn delivers_a_whole_burst() {
    let mut rig = OverRedis::new().await;
    rig.options.subscription_messages_max = 32_768;
    let [one, other] = [connected(&rig).await, connected(&rig).await];
    subscribe(&*other, &["a"]).await;
    send(&*one, (0..20_000).map(|number| message("a", number)).collect()).await;
    for number in 0..20_000 {
        assert_eq!(within(other.receive()).await, received("a", number));
    }
}

#[tokio::test]
async fn a_read_is_given_the_time_that_a_dropped_one_still_blocks() {
    let mut rig = OverRedis::new().await;
    rig.options.command_timeout = Duration::from_millis(1500);
    let transport = connected(&rig).await;
    let dropped = transport.read("s", EntryId::default(), 10, Duration::from_secs(4));
    tokio::time::timeout(Duration::from_millis(50), dropped).await.unwrap_err();
    let next = transport.read("s", EntryId::default(), 10, Duration::from_millis(10));
    assert_eq!(within(next).await, Ok(Vec::new()));
}

#[tokio::test]
async fn one_refusal_hides_no_other_result() {
    let rig = OverRedis::new().await;
    let transport = connected(&rig).await;
    rig.server.command("SET text x").await;
    let results = within(transport.send(vec![entry("s", "a"), entry("text", "b"), entry("s", "c")])).await;
    assert!(matches!(&results[..], [Ok(()), Err(TransportError::Refused(_)), Ok(())]), "{results:?}");
    assert_eq!(texts(&read(&*transport, "s", EntryId::default(), 10).await), ["a", "c"]);
    assert!(matches!(transport.extent("text").await, Err(TransportError::Refused(_))));
    let wrong = transport.read("text", EntryId::default(), 1, Duration::from_millis(1)).await;
    assert!(matches!(wrong, Err(TransportError::Refused(_))), "{wrong:?}");
}

#[tokio::test]
async fn a_refused_subscription_is_an_error_and_is_forgotten() {
    for is_sharded in [false, true] {
        let mut rig = OverRedis::new().await;
        rig.options.sharded = is_sharded;
        rig.server.command("ACL SETUSER ann on >s3cret ~* +@all resetchannels &good*").await;
        let transport = rig.redis(&format!("redis://ann:s3cret@127.0.0.1:{}", rig.server.port));
        settled(&transport).await;
        let refused = within(transport.subscribe(names(&["bad"]))).await;
        assert!(matches!(refused, Err(TransportError::Refused(_))), "{refused:?}");
        subscribe(&transport, &["good"]).await;
        send(&transport, vec![message("good", 1)]).await;
        assert_eq!(within(transport.receive()).await, received("good", 1));

        // The next connection does not ask for it again. Redis has forgotten the user too.
        rig.stop().await;
        assert_eq!(within(transport.receive()).await, Received::Interrupted);
        rig.start().await;
        rig.server.command("ACL SETUSER ann on >s3cret ~* +@all resetchannels &good*").await;
        assert_eq!(within(transport.receive()).await, Received::Restored);
    }
}

#[tokio::test]
async fn connects_to_a_unix_socket() {
    let rig = OverRedis::new().await;
    for scheme in ["unix", "redis+unix"] {
        let transport = rig.redis(&format!("{scheme}://{}", rig.server.socket()));
        settled(&transport).await;
        subscribe(&transport, &["a"]).await;
        send(&transport, vec![entry(scheme, "x"), message("a", 1)]).await;
        assert_eq!(within(transport.receive()).await, received("a", 1));
        assert_eq!(texts(&read(&transport, scheme, EntryId::default(), 10).await), ["x"]);
    }
}

#[tokio::test]
async fn a_password_is_used_and_never_shown() {
    let rig = OverRedis { server: RedisServer::start(&["--requirepass", "s3cret"]).await, ..OverRedis::new().await };
    let good = rig.redis(&format!("redis://:s3cret@127.0.0.1:{}", rig.server.port));
    settled(&good).await;
    assert!(!format!("{good:?}").contains("s3cret"));
    assert!(format!("{good:?}").contains(&rig.server.port.to_string()));

    let bad = rig.redis(&format!("redis://:wr0ng@127.0.0.1:{}", rig.server.port));
    let refusal = until(|| async {
        match bad.extent("s").await {
            Err(TransportError::Disconnected(why)) => why.contains("WRONGPASS").then_some(why),
            other => panic!("{other:?}"),
        }
    })
    .await;
    assert!(!refusal.contains("wr0ng"), "{refusal}");
    assert!(!format!("{bad:?}").contains("wr0ng"));
}

#[tokio::test]
async fn connects_with_tls() {
    let rig = OverRedis::new().await;
    // This server cannot; what matters is that the client is built and tries.
    let transport = rig.redis(&rig.server.url().replace("redis://", "rediss://"));
    let why = until(|| async {
        match transport.extent("s").await {
            Err(TransportError::Disconnected(why)) => (why != "not connected yet").then_some(why),
            other => panic!("{other:?}"),
        }
    })
    .await;
    assert!(!why.is_empty());
}
