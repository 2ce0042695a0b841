//! Tests that the store in Redis and the store in the process behave the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointwork_core::experiments::{Arm, ArmModule, Experiment, ExperimentStatus, Guardrails, Slot};
use socketioxide_redis_streams::transport::redis::{Redis, RedisOptions};

use bytes::Bytes;

use super::*;
use crate::cluster::test_redis::RedisServer;
use crate::policies::experiments::store::{
    error::ExperimentStoreError, module_digests::UNNEEDED_MAX, units::UserGuard,
};

const AT_LAST: Duration = Duration::from_secs(10);

fn experiment(name: &str, digest: &str) -> Experiment {
    let arm = |name: &str, module| Arm { name: name.to_owned(), module };
    let treatment = ArmModule::try_from(digest.to_owned()).unwrap();
    Experiment {
        name: name.to_owned(),
        slot: Slot::Settle,
        salt: "s".to_owned(),
        arms: vec![arm("control", ArmModule::Current), arm("treatment", treatment)],
        weights: vec![9_500, 500],
        status: ExperimentStatus::Running,
        shadow_only: false,
        horizon_ms: 60_000,
        window_ms: 2_500,
        silence_ms: 25_000,
        guardrails: Guardrails { stranded_ms_mean_max: None, ..Guardrails::default() },
        created_ms: 1,
        ended_ms: None,
        version: 0,
    }
}

fn units(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn row(arm: usize) -> UnitRow {
    UnitRow {
        arm,
        weights: vec![9_500, 500],
        exposed_ms: 7,
        values: vec![Some(0.5), None],
        decisions: 3,
        failures: 1,
        stranded_ms: 2,
        offline_ms: 4,
    }
}

fn delta(arm: usize, at_ms: u64, counts: &[(&'static str, u64)]) -> UserDelta {
    UserDelta { arm, weights: vec![9_500, 500], horizon_ms: 1_000, at_ms, counts: counts.iter().copied().collect() }
}

async fn assert_behaviour(store: &ExperimentStore) {
    experiments_are_compared_and_set(store).await;
    units_are_noted_once(store).await;
    users_are_summed_within_their_horizon(store).await;
    cells_add_up(store).await;
    modules_that_nobody_needs_make_room(store).await;
}

async fn experiments_are_compared_and_set(store: &ExperimentStore) {
    let digest = "0123456789abcdef".repeat(4);
    assert_eq!(store.read().await, Ok(ExperimentList::default()));
    let one = ExperimentList::default().create(experiment("e", &digest)).unwrap();
    assert_eq!(store.swap(0, &one).await, Err(ExperimentStoreError::NoModule));
    assert!(store.module(&digest).await.unwrap().is_none());
    let module = PolicyModule { wasm: Bytes::from_static(b"\0asm\xff"), config: "{}".to_owned() };
    store.put_module(&digest, module.clone()).await.unwrap();
    assert_eq!(store.swap(0, &one).await, Ok(true));
    assert!(store.module(&digest).await.unwrap() == Some(module));
    assert_eq!(store.swap(0, &one).await, Ok(false), "another change was faster");
    let two = one.abort("e", "no", 9).unwrap();
    assert_eq!(store.swap(1, &two).await, Ok(true));
    assert_eq!(store.read().await, Ok(two));
}

/// What was promoted last is needed, too, by a replica that starts later.
async fn modules_that_nobody_needs_make_room(store: &ExperimentStore) {
    let digest = |number: usize| format!("{number:064x}");
    let put = async |number| {
        let module = PolicyModule { wasm: Bytes::from_static(b"\0asm"), config: "{}".to_owned() };
        store.put_module(&digest(number), module).await.unwrap();
    };
    let is_there = async |number| store.module(&digest(number)).await.unwrap().is_some();
    // Two were promoted, one runs: the smallest digests.
    let mut known = store.read().await.unwrap();
    for number in 0..3 {
        put(number).await;
        let name = format!("m{number}");
        let next = known.create(experiment(&name, &digest(number))).unwrap();
        assert_eq!(store.swap(known.version, &next).await, Ok(true));
        known = next;
        if number < 2 {
            let next = known.promote(&name, None, 9).unwrap();
            assert_eq!(store.swap(known.version, &next).await, Ok(true));
            known = next;
        }
    }
    for number in 3..3 + 2 * UNNEEDED_MAX {
        put(number).await;
        assert!(is_there(number).await, "it was just stored");
        // Coarse clocks of file systems tell these apart.
        tokio::time::sleep(Duration::from_millis(12)).await;
    }
    assert_eq!((is_there(0).await, is_there(1).await, is_there(2).await), (false, true, true));
    for number in 3..3 + 2 * UNNEEDED_MAX {
        assert_eq!(is_there(number).await, number >= 3 + UNNEEDED_MAX, "{number}");
    }
    let ended = known.abort("m2", "", 9).unwrap();
    assert_eq!(store.swap(known.version, &ended).await, Ok(true));
    put(99).await;
    put(98).await;
    let there = (is_there(1).await, is_there(98).await, is_there(99).await);
    assert_eq!(there, (true, true, true));
}

async fn units_are_noted_once(store: &ExperimentStore) {
    assert_eq!(store.expose("e:s", &units(&["a", "b"])).await, Ok(0));
    let first = store.exposed("e:s", 0).await.unwrap();
    assert_eq!(first.units, units(&["a", "b"]));
    let mut now_ms = first.now_ms;
    while now_ms <= first.now_ms {
        now_ms = store.exposed("e:s", 0).await.unwrap().now_ms;
    }
    assert_eq!(store.expose("e:s", &units(&["a", "c"])).await, Ok(0));
    assert_eq!(store.exposed("e:s", 0).await.unwrap().units, units(&["a", "b", "c"]));
    assert_eq!(store.exposed("e:s", now_ms).await.unwrap().units, units(&["a", "c"]), "as they were noted last");
    assert!(store.exposed("other:s", 0).await.unwrap().units.is_empty());
    let many: BTreeSet<String> = (0..1_234).map(|number| format!("d{number}")).collect();
    assert_eq!(store.expose("many:s", &many).await, Ok(0));
    assert_eq!(store.exposed("many:s", 0).await.unwrap().units, many, "over several pages");
    store.finish("e:s", &[("a".to_owned(), row(0)), ("b".to_owned(), row(1))]).await.unwrap();
    store.finish("e:s", &[("a".to_owned(), row(1))]).await.unwrap();
    let finished = store.finished("e:s").await.unwrap();
    assert_eq!(finished, BTreeMap::from([("a".to_owned(), row(0)), ("b".to_owned(), row(1))]));
}

async fn users_are_summed_within_their_horizon(store: &ExperimentStore) {
    let add = async |delta: UserDelta| store.add_users("u:s", &BTreeMap::from([("u1".to_owned(), delta)])).await;
    assert_eq!(add(delta(1, 100, &[("decisions", 2), ("success", 1)])).await, Ok(0));
    assert_eq!(add(delta(1, 1_099, &[("decisions", 1)])).await, Ok(0));
    assert_eq!(add(delta(1, 1_100, &[("calls", 50)])).await, Ok(0), "its horizon is over");
    assert_eq!(add(delta(0, 200, &[("decisions", 50)])).await, Ok(0), "it is not in that arm");
    let users = store.users("u:s", &["u1".to_owned(), "nobody".to_owned()]).await.unwrap();
    let counts = [("decisions", 3), ("success", 1)].map(|(name, count)| (name.to_owned(), count));
    let expected = UserSums { arm: 1, weights: vec![9_500, 500], exposed_ms: 100, counts: counts.into(), guard: None };
    let guard = |since_ms, decisions, failures| Some(UserGuard { arm: 1, since_ms, decisions, failures });
    assert_eq!(users, [Some(expected.clone()), None]);
    let exposed = store.exposed("u:s", 0).await.unwrap();
    assert_eq!(exposed.units, units(&["u1"]));
    let mut now_ms = exposed.now_ms;
    while now_ms <= exposed.now_ms {
        now_ms = store.exposed("u:s", 0).await.unwrap().now_ms;
    }
    assert_eq!(add(delta(1, 1_100, &[("calls", 1)])).await, Ok(0), "only a decision begins it");
    assert_eq!(add(delta(1, 1_200, &[("decisions", 4), ("failures", 3)])).await, Ok(0));
    assert_eq!(add(delta(1, 2_199, &[("decisions", 1), ("calls", 1)])).await, Ok(0));
    let guarded = UserSums { guard: guard(1_200, 5, 3), ..expected.clone() };
    assert_eq!(store.users("u:s", &["u1".to_owned()]).await.unwrap(), [Some(guarded)], "the observation stays");
    assert_eq!(store.exposed("u:s", now_ms).await.unwrap().units, units(&["u1"]), "it is looked at again");
    assert_eq!(add(delta(1, 2_200, &[("decisions", 1)])).await, Ok(0));
    let again = UserSums { guard: guard(2_200, 1, 0), ..expected.clone() };
    assert_eq!(store.users("u:s", &["u1".to_owned()]).await.unwrap(), [Some(again)]);
    assert_eq!(add(delta(0, 2_300, &[("decisions", 1)])).await, Ok(0), "the control has no guardrails");
    assert_eq!(store.users("u:s", &["u1".to_owned()]).await.unwrap(), [Some(expected)]);
}

async fn cells_add_up(store: &ExperimentStore) {
    let cell = |shadow: &str| DisagreementCell { arm: "t".into(), served: "refuse".into(), shadow: shadow.into() };
    store.add_cells("e:s", &[(cell("accept"), 2), (cell("failed"), 1)]).await.unwrap();
    store.add_cells("e:s", &[(cell("accept"), 3)]).await.unwrap();
    let cells = store.cells("e:s").await.unwrap();
    assert_eq!(cells, BTreeMap::from([(cell("accept"), 5), (cell("failed"), 1)]));
}

#[test]
fn one_of_several_simultaneous_changes_wins() {
    let folder = tempfile::tempdir().unwrap();
    let local = LocalStore::new(Some(folder.path().to_owned()));
    let mut known = ExperimentList::default();
    for _ in 0..30 {
        let next = ExperimentList { version: known.version + 1, ..known.clone() };
        let start = std::sync::Barrier::new(4);
        let swap = || {
            start.wait();
            local.swap(known.version, &next).unwrap()
        };
        let won = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(swap)).collect();
            all.into_iter().map(|one| one.join().unwrap()).filter(|is_won| *is_won).count()
        });
        assert_eq!(won, 1);
        known = next;
    }
}

#[tokio::test]
async fn the_store_in_memory_behaves_like_the_others() {
    assert_behaviour(&ExperimentStore::local(None)).await;
}

#[tokio::test]
async fn experiments_in_a_folder_outlive_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let store = ExperimentStore::local(Some(folder.path().to_owned()));
    assert_behaviour(&store).await;
    let known = store.read().await.unwrap();
    assert_eq!(ExperimentStore::local(Some(folder.path().to_owned())).read().await, Ok(known));
    std::fs::write(folder.path().join("experiments.json"), "{").unwrap();
    let read = ExperimentStore::local(Some(folder.path().to_owned())).read().await;
    assert!(matches!(read, Err(ExperimentStoreError::Unreadable(_))), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_redis_one_replica_at_a_time_has_the_turn() {
    let server = RedisServer::start();
    let redis = Arc::new(Redis::start(&server.url(), RedisOptions::default()).unwrap());
    let store = ExperimentStore::redis(redis, "p");
    let began = Instant::now();
    while store.read().await.is_err() {
        assert!(began.elapsed() < AT_LAST, "no connection");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_behaviour(&store).await;
    assert_eq!(
        (store.lease("r1").await, store.lease("r2").await, store.lease("r1").await),
        (Ok(true), Ok(false), Ok(true))
    );
    assert!(server.command("TTL p#experiment:e:s:units").starts_with(':'));
    assert_ne!(server.command("TTL p#experiment:e:s:units"), ":-1\r\n", "what is kept is kept for a while");
    server.command("HSET p#experiment:e:s:over c nonsense");
    server.command("HSET p#experiment:u:s:user:u2 at nonsense");
    assert_eq!(store.finished("e:s").await.unwrap().len(), 2, "one that is unreadable is skipped");
    let users = store.users("u:s", &["u2".to_owned(), "u1".to_owned()]).await.unwrap();
    assert!(users[0].is_none() && users[1].is_some());
    server.command("HSET p#experiments state nonsense");
    assert!(matches!(store.read().await, Err(ExperimentStoreError::Unreadable(_))));
}
