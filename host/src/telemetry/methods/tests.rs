#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeSet, time::Duration};

use metrics_exporter_prometheus::PrometheusBuilder;

use super::{CallOutcome, MethodLabels, MethodMetrics};
use crate::telemetry::{catalog, metrics_page::MetricsPage};

const SERIES_MAX: usize = 2_000;

fn methods(patterns: &[&str], registered_max: usize) -> MethodMetrics {
    let patterns = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
    MethodMetrics::new(&MethodLabels { patterns, registered_max })
}

fn label(methods: &MethodMetrics, method: &str) -> String {
    methods.series(methods.label(method)).unwrap().label.to_string()
}

/// What Prometheus reads: every line is one that it can parse, and belongs to a metric that was explained. Gives the series.
fn parsed(text: &str) -> BTreeSet<&str> {
    let (mut explained, mut series) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            explained.insert(rest.split_once(' ').unwrap().0);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            assert!(explained.contains(rest.split_once(' ').unwrap().0), "typed without help: {line}");
        } else {
            let (one, value) = line.rsplit_once(' ').unwrap();
            assert!(value == "+Inf" || value.parse::<f64>().is_ok(), "{line}");
            let name = one.split('{').next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
            assert!(explained.contains(name) || explained.contains(family), "not explained: {line}");
            assert!(series.insert(one), "twice: {line}");
        }
    }
    series
}

#[test]
fn prefers_patterns_then_registered_names_then_other() {
    let methods = methods(&["term-*", "*:spawn*"], 50);
    for registered in ["term-1", "machine-1:spawn-session", "cm9xyz123:bash", "readFile"] {
        methods.registered(registered, || 1);
    }
    for (method, want) in [
        ("term-1", "term-*"),
        ("machine-2:spawn-happy-session", "*:spawn*"),
        ("another:bash", "bash"),
        ("readFile", "readFile"),
        ("a:b:readFile", "readFile"),
        ("never registered", "other"),
        ("other", "other"),
        ("", "other"),
    ] {
        assert_eq!(label(&methods, method), want, "{method}");
    }
}

#[test]
fn a_name_equal_to_a_pattern_shares_its_label() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        catalog::describe();
        let methods = methods(&["*:read", "bash"], 3);
        for method in ["m1:bash", "m1:spawn", "m1:list", "m1:none"] {
            methods.registered(method, || u64::from(method.as_bytes()[4]));
        }
        assert_eq!(methods.label("m1:bash"), methods.label("bash"));
        for method in ["m1:bash", "bash", "m1:spawn", "m1:list", "m1:none"] {
            methods.answered(methods.label(method), CallOutcome::Success, Duration::from_millis(1));
        }
        let labels = ["bash", "m1:spawn", "m1:list", "m1:none"].map(|method| label(&methods, method));
        assert_eq!(labels, ["bash", "spawn", "list", "other"]);
        let mut page = MetricsPage::default();
        methods.expose(&mut page);
        let text = handle.render() + &page.into_text();
        assert!(!parsed(&text).contains("rpc_calls_total"), "a series without labels beside those that have them");
        assert!(text.contains("rpc_calls_total{method=\"bash\",result=\"success\"} 2"), "{text}");
    });
}

#[test]
fn rejects_ids_and_gives_one_user_half_of_the_labels() {
    let methods = methods(&[], 10);
    for garbage in ["", "a:", "a b", "ünï", "\"}\n", "x1234y5", "0f8fad5b-d9cb-469f-a165-70867728950e", &"a".repeat(65)]
    {
        methods.registered(garbage, || 1);
        assert_eq!(label(&methods, garbage), "other", "{garbage}");
    }
    (0..1_000).for_each(|index| methods.registered(&format!("flood-{index}"), || 1));
    assert_eq!((label(&methods, "flood-4"), label(&methods, "flood-5")), ("flood-4".into(), "other".into()));
    (0..1_000).for_each(|index| methods.registered(&format!("honest-{index}"), || 2 + index));
    assert_eq!((label(&methods, "m:honest-4"), label(&methods, "honest-5")), ("honest-4".into(), "other".into()));
}

#[test]
fn without_room_every_label_is_other() {
    let methods = methods(&[], 0);
    methods.registered("bash", || 1);
    assert_eq!(label(&methods, "bash"), "other");
}

/// What an hour leaves behind, by count: each of 5,000 users registers 50 of 500 methods on a machine of its own, and they are called
/// with every end that a call can have.
#[test]
fn many_methods_of_many_users_stay_below_the_bound() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        catalog::describe();
        let methods = methods(&[], 50);
        for user in 0..5_000_u64 {
            for turn in 0..50 {
                let index = (user as usize * 7 + turn * 10) % 500;
                let method = format!("machine-{user}:method-{index}");
                methods.registered(&method, || user);
                let ended = CallOutcome::ALL[(turn + user as usize) % CallOutcome::ALL.len()];
                match ended {
                    CallOutcome::Refused | CallOutcome::Forgotten => methods.ended(methods.label(&method), ended),
                    _ => methods.answered(methods.label(&method), ended, Duration::from_millis(user)),
                }
            }
        }
        let mut page = MetricsPage::default();
        methods.expose(&mut page);
        let text = handle.render() + &page.into_text();
        let series = parsed(&text);
        let calls = series.iter().filter(|one| one.starts_with("rpc_calls_total{"));
        assert_eq!(calls.count(), 51 * CallOutcome::ALL.len(), "50 methods and `other`, with every result");
        assert!(series.len() < SERIES_MAX, "{} series", series.len());
    });
}
