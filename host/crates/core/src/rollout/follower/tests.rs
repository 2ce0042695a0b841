use super::steps::REPORTS_MS;
use super::*;
use crate::rollout::view::RolloutView;

const TIMEOUT_MS: u64 = 1_000;

fn pushed(document: &Document, digest: &str, force: bool) -> Document {
    document.push(&digest.into(), force, 10).unwrap().unwrap()
}

fn seen(document: &Document, live: &[&str]) -> RolloutView {
    let live = live.iter().map(|uid| Uid::from(*uid)).collect();
    RolloutView {
        now_ms: 20,
        document: document.clone(),
        live,
        is_complete: true,
        is_current_stored: true,
        ..RolloutView::default()
    }
}

fn report(push: u64, prepared: Option<&str>, error: Option<&str>) -> ReplicaReport {
    let failed = |digest: &str| ReportError { digest: digest.into(), kind: "link".into(), message: "why".into() };
    ReplicaReport {
        push: Some(push),
        prepared: prepared.map(Into::into),
        error: error.map(failed),
        ..ReplicaReport::default()
    }
}

fn follower() -> Follower {
    Follower::new("a".into(), TIMEOUT_MS)
}

fn written(step: Option<RolloutStep>) -> Document {
    match step {
        Some(RolloutStep::Write(document)) => document,
        other => panic!("{other:?}"),
    }
}

/// A replica that has `digest` prepared for the push of `seen`.
fn ready(seen: &RolloutView, digest: &str) -> Follower {
    let mut follower = follower();
    assert_eq!(follower.step(seen), Some(RolloutStep::Prepare(digest.into())));
    follower.prepared(&digest.into());
    follower
}

#[test]
fn the_pointer_moves_when_all_that_live_are_prepared() {
    let document = pushed(&Document::default(), "x", false);
    let mut seen = seen(&document, &["a", "b"]);
    let mut follower = ready(&seen, "x");
    assert_eq!(follower.step(&seen), None, "b has not answered");
    seen.reports.insert("b".into(), report(9, Some("x"), None));
    assert_eq!(follower.step(&seen), None, "b answered to another push");
    seen.reports.insert("b".into(), report(10, Some("x"), None));
    seen.is_complete = false;
    assert_eq!(follower.step(&seen), None, "there may be more");
    seen.is_complete = true;
    let moved = written(follower.step(&seen));
    assert_eq!((moved.current.as_deref(), moved.pending.is_some()), (Some("x"), false));
    seen.document = moved;
    assert_eq!(follower.step(&seen), Some(RolloutStep::Switch("x".into())));
    assert!(!follower.is_in_step());
    follower.serves(Some("x".into()), 1);
    assert_eq!((follower.step(&seen), follower.is_in_step()), (None, true));
}

#[test]
fn one_error_fails_a_push_and_says_who_and_why() {
    let document = pushed(&Document::default(), "x", false);
    let mut seen = seen(&document, &["a", "b"]);
    seen.reports.insert("b".into(), report(10, None, Some("x")));
    let failed = written(follower().step(&seen)).failed.unwrap();
    assert_eq!((failed.replica.as_deref(), failed.kind.as_str(), failed.message.as_str()), (Some("b"), "link", "why"));
    let mut own = follower();
    seen.reports.clear();
    assert_eq!(own.step(&seen), Some(RolloutStep::Prepare("x".into())));
    own.refused(&"x".into(), "memory", "none left", 20);
    assert_eq!(written(own.step(&seen)).failed.unwrap().replica.as_deref(), Some("a"));
}

#[test]
fn force_moves_it_for_those_that_can_once_all_have_answered_or_time_is_up() {
    let document = pushed(&Document::default(), "x", true);
    let mut seen = seen(&document, &["a", "b", "c"]);
    let mut follower = ready(&seen, "x");
    seen.reports.insert("b".into(), report(10, None, Some("x")));
    assert_eq!(follower.step(&seen), None, "c has not answered");
    seen.now_ms += TIMEOUT_MS;
    assert_eq!(written(follower.step(&seen)).current.as_deref(), Some("x"));
    seen.now_ms = 20;
    seen.live.remove("c");
    assert_eq!(written(follower.step(&seen)).current.as_deref(), Some("x"));
    follower.refused(&"x".into(), "memory", "none left", 20);
    assert_eq!(written(follower.step(&seen)).failed.unwrap().replica.as_deref(), Some("a"), "nobody can");
}

#[test]
fn a_push_that_hangs_fails_and_says_who_is_missing() {
    let document = pushed(&Document::default(), "x", false);
    let mut seen = seen(&document, &["a", "b"]);
    let mut follower = ready(&seen, "x");
    seen.now_ms = 10 + TIMEOUT_MS + 1;
    let failed = written(follower.step(&seen)).failed.unwrap();
    assert_eq!((failed.replica.as_deref(), failed.kind.as_str()), (Some("b"), "timeout"));
    assert!(failed.message.ends_with("from b"), "{}", failed.message);
}

#[test]
fn what_was_prepared_for_a_failed_push_is_discarded_and_its_error_forgotten() {
    let document = pushed(&Document::default(), "x", false);
    let mut shown = seen(&document, &["a"]);
    shown.is_complete = false;
    let mut follower = ready(&shown, "x");
    shown.document = document.fail(None, "timeout", "", 20);
    assert_eq!(follower.step(&shown), Some(RolloutStep::Discard("x".into())));
    shown.document = pushed(&shown.document, "x", false);
    assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare("x".into())), "again, for another push");
    follower.refused(&"x".into(), "link", "why", 20);
    assert!(follower.report().error.is_some());
    shown.document = shown.document.fail(None, "link", "why", 21);
    assert_eq!((follower.step(&shown), follower.report().error), (None, None));
}

#[test]
fn the_breakers_news_reach_the_document_and_the_documents_quarantine_the_engine() {
    let document = pushed(&pushed(&Document::default(), "x", false).moved(20), "y", false).moved(30);
    let mut shown = seen(&document, &["a"]);
    let mut follower = follower();
    follower.tripped("y".into(), "traps".into());
    let back = written(follower.step(&shown));
    assert_eq!((back.current.as_deref(), &*back.quarantined[0].replica), (Some("x"), "a"));
    let mut other = Follower::new("b".into(), TIMEOUT_MS);
    other.serves(Some("y".into()), 2);
    shown.document = back.clone();
    assert_eq!(other.step(&shown), Some(RolloutStep::Quarantine("y".into(), "traps".into())));
    assert_eq!(other.step(&shown), Some(RolloutStep::Prepare("x".into())));
    shown.document = back.retry(&"y".into(), true, false, 50).unwrap();
    assert_eq!(other.step(&shown), Some(RolloutStep::Free("y".into())));
}

#[test]
fn an_emptied_store_is_filled_by_the_newest() {
    let document = pushed(&Document::default(), "x", false).moved(20);
    let mut follower = follower();
    follower.keep("x".into());
    follower.serves(Some("x".into()), 1);
    assert_eq!(follower.step(&seen(&document, &["a"])), None);
    let empty = seen(&Document::default(), &["a"]);
    let Some(RolloutStep::Restore(restored)) = follower.step(&empty) else { panic!("it is not restored") };
    assert_eq!((restored.current.as_deref(), restored.since_ms), (Some("x"), document.since_ms));
    let newer = document.undo(900).unwrap();
    assert_eq!(follower.step(&seen(&newer, &["a"])), Some(RolloutStep::Unload), "another knew more");
    let mut without = Follower::new("b".into(), TIMEOUT_MS);
    without.serves(Some("x".into()), 1);
    assert_eq!(without.step(&seen(&document, &["b"])), None);
    assert_eq!(without.step(&empty), None, "its module is not here");
}

#[test]
fn what_cannot_be_followed_is_tried_again_later() {
    let document = pushed(&Document::default(), "x", true).moved(20);
    let mut shown = seen(&document, &["a"]);
    let mut follower = follower();
    assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare("x".into())));
    assert_eq!(follower.step(&shown), None, "it is being prepared");
    follower.refused(&"x".into(), "unreadable", "gone", 20);
    assert_eq!((follower.step(&shown), follower.was_in_step()), (None, false));
    assert_eq!(follower.report().error.unwrap().kind, "unreadable");
    shown.now_ms += RETRY_MS;
    assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare("x".into())));
}

#[test]
fn a_module_that_the_store_lacks_is_put_back_by_whoever_serves_it() {
    let document = pushed(&Document::default(), "x", false).moved(20);
    let mut shown = seen(&document, &["a"]);
    shown.is_current_stored = false;
    let mut follower = follower();
    follower.serves(Some("x".into()), 1);
    assert_eq!(follower.step(&shown), None, "it is not here");
    follower.keep("x".into());
    assert_eq!(follower.step(&shown), Some(RolloutStep::Store("x".into())));
}

#[test]
fn what_is_pushed_and_what_is_to_serve_can_both_be_impossible() {
    let document = pushed(&pushed(&Document::default(), "x", true).moved(20), "y", true);
    let shown = seen(&document, &["a", "b"]);
    let mut follower = follower();
    for digest in ["y", "x"] {
        assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare(digest.into())));
        follower.refused(&digest.into(), "unreadable", "gone", 20);
    }
    assert_eq!(follower.step(&shown), None);
    assert_eq!(&*follower.report().error.unwrap().digest, "y", "the push waits for it");
}

#[test]
fn a_module_that_does_not_come_is_asked_for_less_and_less_often() {
    let mut shown = seen(&pushed(&Document::default(), "x", false), &["a", "b"]);
    (shown.document, shown.now_ms) = (shown.document.moved(15), 1_000);
    let mut follower = follower();
    let mut waits = Vec::new();
    for _ in 0..6 {
        assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare("x".into())));
        let wait_ms = follower.postponed(&"x".into(), "unreadable", "no answer in time", shown.now_ms);
        assert_eq!(follower.report().error.map(|error| error.message).as_deref(), Some("no answer in time"));
        shown.now_ms += wait_ms - 1;
        assert_eq!(follower.step(&shown), None, "{wait_ms}");
        shown.now_ms += 1;
        waits.push(wait_ms);
    }
    assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare("x".into())));
    follower.prepared(&"x".into());
    assert_eq!(follower.report().error, None);
}

#[test]
fn a_push_whose_module_is_late_does_not_fail_before_its_time() {
    let mut shown = seen(&pushed(&Document::default(), "x", false), &["a"]);
    let mut follower = follower();
    assert_eq!(follower.step(&shown), Some(RolloutStep::Prepare("x".into())));
    follower.postponed(&"x".into(), "unreadable", "no answer in time", shown.now_ms);
    assert_eq!((follower.step(&shown), follower.report().error), (None, None));
    shown.now_ms = 10 + TIMEOUT_MS + 1;
    assert_eq!(written(follower.step(&shown)).failed.unwrap().kind, "timeout");
}

#[test]
fn a_push_ends_in_its_time_though_the_clock_is_set_back() {
    let mut shown = seen(&Document::default().push(&"x".into(), false, 1_000_000).unwrap().unwrap(), &["a", "b"]);
    shown.now_ms = 1_000_001;
    let mut follower = ready(&shown, "x");
    shown.now_ms = 500;
    assert_eq!(follower.step(&shown), None);
    shown.now_ms += TIMEOUT_MS;
    assert_eq!(follower.step(&shown), None);
    shown.now_ms += 1;
    assert_eq!(written(follower.step(&shown)).failed.unwrap().kind, "timeout");
}

#[test]
fn the_bytes_of_what_is_prepared_are_wanted_until_it_serves() {
    let mut shown = seen(&pushed(&Document::default(), "x", false), &["a"]);
    let mut follower = ready(&shown, "x");
    shown.document = written(follower.step(&shown));
    follower.push = None;
    assert_eq!(follower.wanted(), ["x".into()].into(), "though nothing is pushed any more");
}

#[test]
fn who_joins_an_emptied_store_is_ready_once_the_others_have_said_what_they_serve() {
    let mut shown = seen(&Document::default(), &["a", "b"]);
    shown.is_complete = false;
    let mut joined = follower();
    assert_eq!((joined.step(&shown), joined.was_in_step()), (None, false), "there may be more");
    shown.is_complete = true;
    assert_eq!((joined.step(&shown), joined.was_in_step()), (None, false), "b has not reported");
    let mut others = shown.clone();
    others.reports.insert("b".into(), ReplicaReport { serving: Some("x".into()), ..ReplicaReport::default() });
    assert_eq!((joined.step(&others), joined.was_in_step()), (None, false), "b is about to write the document");
    others.reports.insert("b".into(), ReplicaReport::default());
    assert_eq!((joined.step(&others), joined.was_in_step()), (None, true));
    let mut alone = follower();
    alone.step(&shown);
    shown.now_ms += REPORTS_MS - 1;
    assert_eq!((alone.step(&shown), alone.was_in_step()), (None, false));
    shown.now_ms += 1;
    assert_eq!((alone.step(&shown), alone.was_in_step()), (None, true), "b is one for which its directory rules");
}
