//! What one decision costs, warm, on one thread: the floor, each default policy, and the native rule beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::hint::black_box;

use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main, measurement::WallTime};
use fastrand::Rng;
use pointwork::{
    config::{PolicyConfig, RpcConfig},
    policies::slots::Policies,
};
use pointwork_policy::SlotName;
use pointwork_tests::{built, questions};

fn policies(loaded: Option<(SlotName, Vec<u8>)>) -> Policies {
    let policies = Policies::new(&PolicyConfig::default(), &RpcConfig::default()).unwrap();
    if let Some((slot, module)) = loaded {
        policies.load(slot, &module, "{}");
    }
    policies
}

/// No decision of `served` came from the native rule in the policy's place.
fn assert_own_answers(policies: &Policies, slot: SlotName) {
    let status = policies.status().into_iter().find(|status| status.slot == slot).unwrap();
    assert_eq!((status.source, status.native), ("wasm", 0), "{:?} {:?}", status.last_load_error, status.failures);
}

fn target(c: &mut Criterion) {
    let mut group = c.benchmark_group("target");
    let rng = &mut Rng::with_seed(1);
    let call = pointwork_core::decisions::Call { method: "machine-1:bash".into(), ..questions::call(rng) };
    let contestants = [
        ("nop", Some(built::guest("nop").unwrap())),
        ("target-first", Some(built::policy("target-first").unwrap())),
        ("target-least-loaded", Some(built::policy("target-least-loaded").unwrap())),
        ("native", None),
    ];
    for (name, module) in contestants {
        let is_wasm = module.is_some();
        let policies = policies(module.map(|module| (SlotName::Target, module)));
        for count in [1, 8, 32] {
            let candidates = questions::candidates(rng, count);
            group.bench_function(BenchmarkId::new(name, count), |b| {
                b.iter(|| policies.choose(1, black_box(&call), black_box(&candidates)));
            });
        }
        if is_wasm {
            assert_own_answers(&policies, SlotName::Target);
        }
    }
    group.finish();
}

/// The wasm policy and the native rule on the same question.
fn pair<T>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    slot: SlotName,
    names: &[&str],
    mut decide: impl FnMut(&Policies) -> T,
) {
    for name in names {
        let wasm = policies(Some((slot, built::policy(name).unwrap())));
        group.bench_function(*name, |b| b.iter(|| decide(&wasm)));
        assert_own_answers(&wasm, slot);
    }
    let native = policies(None);
    group.bench_function("native", |b| b.iter(|| decide(&native)));
}

fn other_slots(c: &mut Criterion) {
    let rng = &mut Rng::with_seed(2);
    let call = pointwork_core::decisions::Call { method: "machine-1:bash".into(), ..questions::call(rng) };
    let (absence, doubt) = (questions::absence(rng), questions::doubt(rng));
    let (incumbent, newcomer) = (questions::incumbent(rng, 2_500), questions::newcomer(rng));
    let history = questions::history(rng);

    let mut group = c.benchmark_group("grace");
    pair(&mut group, SlotName::Grace, &["grace-fixed", "grace-adaptive"], |policies| {
        policies.wait(1, black_box(&call), black_box(&absence))
    });
    group.finish();
    let mut group = c.benchmark_group("presence");
    pair(&mut group, SlotName::Presence, &["presence-seed", "presence-tolerant"], |policies| {
        policies.judge(1, black_box(&call), black_box(&doubt))
    });
    group.finish();
    let mut group = c.benchmark_group("settle");
    pair(&mut group, SlotName::Settle, &["settle-hold", "settle-newest", "settle-adaptive"], |policies| {
        policies.settle(1, 2_500, black_box(&incumbent), &newcomer, black_box(&history))
    });
    group.finish();
}

criterion_group!(benches, target, other_slots);
criterion_main!(benches);
