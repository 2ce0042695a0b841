//! What both stores do alike.

use pointwork_core::decisions::Departure;
use tokio::task::JoinSet;

use super::*;

#[tokio::test]
async fn what_nobody_wrote_is_the_default() {
    both(async |store| {
        assert_eq!(store.read("d").await.unwrap(), DeviceRecord::default());
        assert_eq!(store.page(None, 10).await.unwrap(), []);
        assert_eq!(store.by_pairing_code("c").await.unwrap(), None);
        assert_eq!(store.of_replica("r").await.unwrap(), [""; 0]);
        assert_eq!(store.replicas().await.unwrap(), [""; 0]);
    })
    .await;
}

#[tokio::test]
async fn only_the_expected_epoch_is_replaced() {
    both(async |store| {
        let (one, two) = (held("r"), held("r").refused(NOW_MS + 5));
        assert_eq!(store.swap("d", 3, &one).await, SwapResult::Lost);
        assert_eq!(store.swap("d", 0, &one).await, SwapResult::Won);
        let other = DeviceRecord { pairing_code: Some("c".into()), ..held("s") };
        for wrong in [0, one.epoch - 1, one.epoch + 1, u64::MAX] {
            assert_eq!(store.swap("d", wrong, &other).await, SwapResult::Lost);
        }
        assert_eq!(store.read("d").await.unwrap(), one);
        assert_eq!((store.by_pairing_code("c").await, store.of_replica("s").await), (Ok(None), Ok(vec![])));
        assert_eq!(store.swap("d", one.epoch, &two).await, SwapResult::Won);
        assert_eq!(store.read("d").await.unwrap(), two);
    })
    .await;
}

#[tokio::test]
async fn epochs_are_compared_to_their_last_bit() {
    both(async |store| {
        let last = DeviceRecord { epoch: u64::MAX - 1, ..held("r") };
        put(store, "d", &last).await;
        assert_eq!(store.swap("d", u64::MAX, &last).await, SwapResult::Lost);
        assert_eq!(store.swap("d", u64::MAX - 2, &last).await, SwapResult::Lost);
        assert_eq!(store.swap("d", u64::MAX - 1, &DeviceRecord { epoch: u64::MAX, ..last }).await, SwapResult::Won);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_fifty_wins() {
    both(async |store| {
        for _ in 0..10 {
            let expected = store.read("d").await.unwrap().epoch;
            let mut racers = JoinSet::new();
            for number in 1..=50 {
                let (store, record) = (store.clone(), DeviceRecord { epoch: expected + number, ..held("r") });
                racers.spawn(async move { (store.swap("d", expected, &record).await, record.epoch) });
            }
            let swapped = racers.join_all().await;
            let won: Vec<_> = swapped.iter().filter(|(swapped, _)| *swapped == SwapResult::Won).collect();
            let lost = swapped.iter().filter(|(swapped, _)| *swapped == SwapResult::Lost).count();
            assert_eq!((won.len(), lost), (1, 49));
            assert_eq!(store.read("d").await.unwrap().epoch, won[0].1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_code_leads_to_its_device_until_that_is_paired() {
    both(async |store| {
        put(store, "d", &coded("c")).await;
        assert_eq!(store.by_pairing_code("c").await.unwrap().as_deref(), Some("d"));
        let other = DeviceRecord { epoch: 2, ..coded("b") };
        put(store, "d", &other).await;
        assert_eq!(store.by_pairing_code("c").await.unwrap(), None);
        assert_eq!(store.by_pairing_code("b").await.unwrap().as_deref(), Some("d"));
        put(store, "d", &other.paired_with(None, 3)).await;
        assert_eq!(store.by_pairing_code("b").await.unwrap(), None);
    })
    .await;
}

#[tokio::test]
async fn a_code_is_that_of_the_device_that_had_it_first() {
    both(async |store| {
        let second = DeviceRecord { epoch: 2, ..coded("c") };
        put(store, "a", &coded("c")).await;
        put(store, "b", &coded("c")).await;
        put(store, "b", &second).await;
        assert_eq!(store.by_pairing_code("c").await.unwrap().as_deref(), Some("a"));
        put(store, "b", &DeviceRecord { epoch: 3, pairing_code: None, ..second.clone() }).await;
        assert_eq!(store.by_pairing_code("c").await.unwrap().as_deref(), Some("a"));
        put(store, "a", &second.paired_with(None, 3)).await;
        assert_eq!(store.by_pairing_code("c").await.unwrap(), None);
        put(store, "b", &DeviceRecord { epoch: 4, ..second }).await;
        assert_eq!(store.by_pairing_code("c").await.unwrap().as_deref(), Some("b"));
    })
    .await;
}

#[tokio::test]
async fn a_replica_leads_to_the_devices_that_it_holds_or_held() {
    both(async |store| {
        let (one, two) = (held("r"), held("r"));
        put(store, "b", &one).await;
        put(store, "a", &two).await;
        assert_eq!(store.of_replica("r").await.unwrap(), ["a", "b"]);
        let gone = one.released(Departure::TransportLost, NOW_MS + 1);
        put(store, "b", &gone).await;
        assert_eq!(store.of_replica("r").await.unwrap(), ["a", "b"]);
        put(store, "b", &gone.offline(0, NOW_MS + 2)).await;
        assert_eq!(store.of_replica("r").await.unwrap(), ["a"]);
        put(store, "a", &two.accepted(held_by("s", 2), Fate::Evicted, 0, NOW_MS + 1)).await;
        assert_eq!(
            (store.of_replica("r").await.unwrap(), store.replicas().await.unwrap()),
            (vec![], vec!["s".to_owned()])
        );
        assert_eq!(store.of_replica("s").await.unwrap(), ["a"]);
    })
    .await;
}

#[tokio::test]
async fn thousands_are_found_by_their_replica_and_page_by_page() {
    both(async |store| {
        let ids: Vec<_> = (0..2_500).map(|number| format!("d-{number:04}")).collect();
        for id in ids.iter().rev() {
            assert_eq!(store.swap(id, 0, &held("r")).await, SwapResult::Won);
        }
        assert_eq!(store.of_replica("r").await.unwrap(), ids);
        let (mut paged, mut after) = (Vec::new(), None);
        for _ in 0..3 {
            let page = store.page(after.as_deref(), 5_000).await.unwrap();
            after = page.last().map(|(id, _)| id.clone());
            assert!(page.len() <= PAGE_MAX && page.iter().all(|(_, record)| *record == held("r")));
            paged.extend(page.into_iter().map(|(id, _)| id));
        }
        assert_eq!(paged, ids);
        assert_eq!(store.page(after.as_deref(), 10).await.unwrap(), []);
        let few = store.page(Some("d-0100x"), 2).await.unwrap();
        assert_eq!((few[0].0.as_str(), few[1].0.as_str(), few.len()), ("d-0101", "d-0102", 2));
        assert_eq!(store.page(None, 0).await.unwrap(), []);
    })
    .await;
}

#[tokio::test]
async fn an_owner_leads_to_its_devices_page_by_page() {
    let of =
        |owner: Option<&str>, epoch| DeviceRecord { epoch, is_paired: true, owner: owner.map(Into::into), ..held("r") };
    let ids = |page: Vec<(String, DeviceRecord)>| page.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    both(async |store| {
        for (id, owner) in [("c", Some("o")), ("a", Some("o")), ("b", Some("p")), ("d", None), ("e", Some("o"))] {
            put(store, id, &of(owner, 1)).await;
        }
        put(store, "f", &DeviceRecord { owner: Some("o".into()), ..held("r") }).await;
        assert_eq!(ids(store.owned("o", None, 10).await.unwrap()), ["a", "c", "e"], "f is not kept for good");
        assert_eq!(ids(store.owned("o", Some("a"), 1).await.unwrap()), ["c"]);
        assert_eq!(ids(store.owned("o", Some("e"), 10).await.unwrap()), [""; 0]);
        put(store, "c", &of(Some("p"), 2)).await;
        put(store, "e", &of(None, 2)).await;
        assert_eq!(ids(store.owned("o", None, 10).await.unwrap()), ["a"]);
        assert_eq!(ids(store.owned("p", None, 10).await.unwrap()), ["b", "c"]);
    })
    .await;
}

#[tokio::test]
async fn any_text_is_an_id() {
    let long = "x".repeat(256);
    let ids = ["", "\n", "\u{0}a", " ", "(", "-", "[a", "a:b", "a\nb", "*", "ü", "\u{10ffff}", "+", "%s", &long];
    both(async |store| {
        let mut sorted: Vec<_> = ids.iter().map(|id| id.to_string()).collect();
        sorted.sort();
        for (number, id) in ids.iter().enumerate() {
            let record = DeviceRecord { pairing_code: Some(format!("{id}{number}").into()), ..held("r") };
            put(store, id, &record).await;
            assert_eq!(store.read(id).await.unwrap(), record);
            assert_eq!(store.by_pairing_code(&format!("{id}{number}")).await.unwrap().as_deref(), Some(*id));
        }
        assert_eq!(store.of_replica("r").await.unwrap(), sorted);
        let mut after: Option<String> = None;
        for id in &sorted {
            let page = store.page(after.as_deref(), 1).await.unwrap();
            assert_eq!(page[0].0, *id);
            after = Some(page[0].0.clone());
        }
    })
    .await;
}

#[tokio::test]
async fn both_are_alike_whatever_is_written() {
    let server = RedisServer::start();
    let (alone, shared) = (DeviceStore::alone(), connected(&server, "p#").await);
    let mut random = fastrand::Rng::with_seed(11);
    for epoch in 1..=600 {
        let device = format!("d-{}", random.u8(..6));
        let now = alone.read(&device).await.unwrap();
        let expected = if random.u8(..8) == 0 { random.u64(..3) } else { now.epoch };
        let record = DeviceRecord { epoch, ..random::record(&mut random) };
        let swapped = alone.swap(&device, expected, &record).await;
        assert_eq!(shared.swap(&device, expected, &record).await, swapped);
        assert_eq!(shared.page(None, 100).await, alone.page(None, 100).await);
        assert_eq!(shared.replicas().await, alone.replicas().await);
        for owner in ["o", "ö\"\\\n", "nobody"] {
            assert_eq!(shared.owned(owner, None, 100).await, alone.owned(owner, None, 100).await);
        }
        for replica in alone.replicas().await.unwrap() {
            assert_eq!(shared.of_replica(&replica).await, alone.of_replica(&replica).await);
        }
        for code in ["", "c-1", "c-2", "ü\n\"\\\u{0}"] {
            assert_eq!(shared.by_pairing_code(code).await, alone.by_pairing_code(code).await);
        }
    }
}
