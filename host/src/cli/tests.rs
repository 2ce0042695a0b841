//! Tests of the command line: which arguments each command accepts, and what they mean.

use std::{ffi::OsString, path::PathBuf};

use clap::CommandFactory;
use pointwork_policy::SlotName;
use pointwork_tools::{check::CheckArgs, replay::ReplayArgs, test::TestArgs};

use super::{
    arguments::{Cli, Command},
    exp::ExpCommand,
    policy::PolicyCommand,
};
use crate::config::{self, ConfigError};

fn cli(line: &str) -> Result<Cli, clap::Error> {
    Cli::parse_arguments(line.split(' ').map(OsString::from))
}

fn settings(line: &str) -> Result<config::Config, ConfigError> {
    config::load(cli(line).unwrap().settings.sources([])?)
}

#[test]
fn defines_no_argument_twice() {
    Cli::command().debug_assert();
}

#[test]
fn serves_without_a_command() {
    assert!(matches!(cli("pointwork").unwrap().command.unwrap_or_default(), Command::Serve));
    assert!(matches!(cli("pointwork serve").unwrap().command, Some(Command::Serve)));
    assert!(matches!(cli("pointwork config").unwrap().command, Some(Command::Config)));
}

#[test]
fn accepts_settings_before_and_after_the_command() {
    for line in [
        "pointwork --listen 0.0.0.0:1 --admin 127.0.0.1:2 --policy-dir p --set rpc.grace_ms=3 serve",
        "pointwork serve --listen 0.0.0.0:1 --admin 127.0.0.1:2 --policy-dir p --set rpc.grace_ms=3",
    ] {
        let config = settings(line).unwrap();
        assert_eq!(config.listen.address.to_string(), "0.0.0.0:1");
        assert_eq!(config.admin.address.to_string(), "127.0.0.1:2");
        assert_eq!(config.policy.dir.unwrap().to_str(), Some("p"));
        assert_eq!(config.rpc.grace_ms.get(), 3);
    }
}

#[test]
fn names_the_flag_of_a_wrong_setting() {
    let message = |line| settings(line).unwrap_err().to_string();
    assert!(message("pointwork --listen localhost:1").ends_with("(flag --listen)"));
    assert!(message("pointwork --set rpc.grace=1").contains("flag --set rpc.grace"));
    assert!(message("pointwork --set rpc.grace_ms").contains("section.key=value"));
    assert!(message("pointwork --config /no/such/file.toml").contains("/no/such/file.toml"));
}

#[test]
fn prefers_the_last_set_to_other_flags() {
    let config = settings("pointwork --set listen.address=1.1.1.1:1 --set listen.address=2.2.2.2:2 --listen 3.3.3.3:3");
    assert_eq!(config.unwrap().listen.address.to_string(), "2.2.2.2:2");
}

#[test]
fn hides_settings_in_debug_output() {
    let cli = cli("pointwork --set auth.hs256_secret=sesame").unwrap();
    assert!(!format!("{cli:?}").contains("sesame"));
}

#[test]
fn parses_a_token_request() {
    let cli_given = cli("pointwork token --sub ada --ttl-s 60 --claim a=1 --claim b=x").unwrap();
    let Some(Command::Token(args)) = cli_given.command else { panic!("{cli_given:?}") };
    assert_eq!((args.sub.as_str(), args.ttl_s), ("ada", Some(60)));
    assert_eq!(args.claims, ["a=1", "b=x"]);
    assert!(cli("pointwork token").is_err());
}

#[test]
fn requires_arms_and_weights_for_an_experiment() {
    let line = "pointwork exp create e --slot settle --arm a=current --arm b=x.wasm,x.json --weights 95,5 --guardrail units_min=3";
    let Some(Command::Exp(ExpCommand::Create(args))) = cli(line).unwrap().command else { panic!("{line}") };
    assert_eq!((args.slot, args.arms.len(), args.weights.as_str()), (SlotName::Settle, 2, "95,5"));
    let list = cli("pointwork exp list --admin-url http://h:1").unwrap();
    assert_eq!(list.admin_url.as_deref(), Some("http://h:1"));
    assert!(cli("pointwork exp create e --slot settle --weights 95,5").is_err());
    assert!(cli("pointwork exp create e --slot sale --arm a=current --weights 95,5").is_err());
}

fn policy_command(line: &str) -> PolicyCommand {
    match cli(line).unwrap().command {
        Some(Command::Policy(command)) => command,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requires_files_to_check() {
    let PolicyCommand::Check(CheckArgs { files, slot: None }) = policy_command("pointwork policy check a.wasm b.wasm")
    else {
        panic!("it is a check")
    };
    assert_eq!(files, [PathBuf::from("a.wasm"), PathBuf::from("b.wasm")]);
    assert!(cli("pointwork policy check").is_err());
    assert!(cli("pointwork policy check --slot settle a.wasm").is_ok());
    assert!(cli("pointwork policy check --slot sale a.wasm").is_err());
}

#[test]
fn parses_a_replay_with_a_configuration() {
    let line = r#"pointwork policy replay --policy a.wasm --records r --config {"a":1}"#;
    let PolicyCommand::Replay(ReplayArgs { config, examples, deadline_ms, .. }) = policy_command(line) else {
        panic!("it is a replay")
    };
    assert_eq!(config.unwrap().to_str(), Some(r#"{"a":1}"#));
    assert_eq!((examples, deadline_ms), (3, None));
    assert!(cli("pointwork policy replay --policy a.wasm").is_err());
    assert!(cli("pointwork policy replay --policy a.wasm --records r --deadline-ms 0").is_err());
}

#[test]
fn requires_one_policy_to_test() {
    let line = "pointwork policy test a.wasm --count 5 --config c.json";
    let PolicyCommand::Test(TestArgs { count, seed, vectors, .. }) = policy_command(line) else {
        panic!("it is a test")
    };
    assert_eq!((count, seed, vectors), (5, 1, None));
    assert!(cli("pointwork policy test").is_err());
}

#[test]
fn takes_a_config_after_push_for_the_policy() {
    let push = |line: &str| {
        let cli = cli(line).unwrap();
        match cli.command {
            Some(Command::Policy(PolicyCommand::Push(args))) => (cli.settings, args),
            other => panic!("{other:?}"),
        }
    };
    let (settings, args) =
        push("pointwork --config settings.toml policy push a.wasm --slot settle --config {} --force");
    assert_eq!(settings.config.unwrap(), PathBuf::from("settings.toml"));
    assert_eq!((args.policy_config.as_deref(), args.force, args.slot), (Some("{}"), true, Some(SlotName::Settle)));
    let (_, args) = push("pointwork policy push a.wasm --config=@a.json");
    assert_eq!(args.policy_config.as_deref(), Some("@a.json"));
    assert!(cli("pointwork serve --config settings.toml").unwrap().settings.config.is_some());
}
