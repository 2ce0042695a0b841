//! Files of scenarios: those that ship are good, and what is wrong with another one is said.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pointwork_simulation::scenario::{FILE_MAX_BYTES, SHIPPED, Scenario, ScenarioError, Span, Worlds};

const LEAST: &str =
    "summary = \"s\"\n[settle]\ndevices = 1\nduration_s = 60\n[settle.clients]\nfirst_open_ms = [0, 5]\n";

fn error(text: &str) -> String {
    Scenario::parse(text).unwrap_err().to_string()
}

#[test]
fn ships_every_scenario_file_and_each_is_valid() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/scenarios");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort_unstable();
    let mut names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(files, names);
    for name in names {
        let scenario = Scenario::shipped(name).unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!scenario.summary.is_empty());
    }
    assert!(Scenario::shipped("nope").is_none());
}

#[test]
fn applies_the_documented_defaults() {
    let Worlds::Settle(scenario) = Scenario::parse(LEAST).unwrap().worlds else { panic!("it is of devices") };
    assert_eq!((scenario.settle_ms, scenario.limiters, scenario.replicas.count), (2_500, true, 2));
    assert_eq!(scenario.clients.first_open_ms, Span { min: 0, max: 5 });
    assert_eq!(scenario.clients.heartbeat_ms, Span::one(15_000));
}

#[test]
fn says_what_is_wrong_with_a_file() {
    assert!(error(&format!("{LEAST}opnes = 3\n")).contains("unknown field `opnes`"));
    assert!(error(&format!("{LEAST}opens = [9, 3]\n")).contains("[9, 3]: the least comes first"));
    assert!(error(&format!("{LEAST}opens = [1, 2, 3]\n")).contains("expected a number that is not negative"));
    assert!(error(&format!("{LEAST}opens = -3\n")).contains("must not be negative"));
    assert!(error(&format!("{LEAST}opens = \"3\"\n")).contains("expected a number"));
    assert_eq!(error(&format!("{LEAST}opens = [1, 2000]\n")), "settle.clients.opens: must be from 1 to 1000");
    assert!(error(&format!("{LEAST}when_refused = \"sulks\"\n")).contains("unknown variant `sulks`"));
    assert!(error("summary = \"s\"\n[settle]\ndevices = 1\n").contains("missing field `duration_s`"));
    let rpc = "summary = \"s\"\n[rpc]\nsteps = 9\n";
    assert!(error(&format!("{rpc}[rpc.clients]\ncall = 0\n")).contains("without calls there is nothing to measure"));
    assert!(error(&format!("{rpc}[rpc.faults]\nkill = 3\n")).contains("percent and weights go together"));
    assert_eq!(error(&format!("{rpc}callers = 99\n")), "rpc.callers: must be from 1 to 8");
    let late = LEAST.replace("[0, 5]", "[0, 60000]");
    assert_eq!(error(&late), "settle.clients.first_open_ms: must be from 0 to 59999");
    assert_eq!(Scenario::parse("summary = \"s\"\n"), Err(ScenarioError::WhichWorlds));
    assert_eq!(Scenario::parse(&" ".repeat(FILE_MAX_BYTES + 1)), Err(ScenarioError::TooLong));
    assert!(error("summary = ").contains("line 1"));
}
