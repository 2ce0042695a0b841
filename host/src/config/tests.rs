#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::path::{Path, PathBuf};

use axum::http::HeaderValue;
use tempfile::NamedTempFile;

use std::ffi::OsString;

use super::*;

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let pairs = variables.iter();
    pairs.map(|(name, value)| (name.into(), value.into())).collect()
}

fn layered(text: &str, variables: &[(&str, &str)], sets: &[&str]) -> Result<Config, ConfigError> {
    let file = file(text);
    load(Sources {
        file: Some(file.path().to_owned()),
        environment: environment(variables),
        flags: sets.iter().map(|set| Assignment::parse(set)).collect::<Result<_, _>>()?,
    })
}

fn refusal(text: &str, variables: &[(&str, &str)], sets: &[&str]) -> String {
    layered(text, variables, sets).unwrap_err().to_string()
}

#[test]
fn uses_the_defaults_without_any_layer() {
    let config = load(Sources::default()).unwrap();
    assert_eq!(config.listen.address.to_string(), "127.0.0.1:3000");
    assert_eq!(config.listen.path.as_str(), "/socket.io");
    assert_eq!(config.listen.cors_origins, CorsOrigins::Any);
    assert_eq!(config.admin.address.to_string(), "127.0.0.1:9090");
    assert_eq!(config.policy.target.deadline_ms.get(), 4);
    assert_eq!(config.policy.settle.path(Path::new("p")), Path::new("p/settle.wasm"));
    assert_eq!(config.policy.grace.config.to_json(), "{}");
    assert_eq!(config.rpc.grace_ms.get(), 10_000);
    assert_eq!(config.device.settle_ms.get(), 2_500);
    assert_eq!(config.log.format, LogFormat::Human);
    assert!(config.auth.hs256_secret.is_none() && config.redis.url.is_none());
}

#[test]
fn a_later_layer_overrides_the_ones_before() {
    let text = "[rpc]\ngrace_ms = 1\n";
    let field = ("RPC_RECONNECT_GRACE_MS", "2");
    let own = ("POINTWORK_RPC_GRACE_MS", "3");
    let sets = ["rpc.grace_ms=4", "rpc.grace_ms=5"];
    let grace = |text, variables: &[_], sets: &[_]| layered(text, variables, sets).unwrap().rpc.grace_ms.get();
    assert_eq!(grace("", &[], &[]), 10_000);
    assert_eq!(grace(text, &[], &[]), 1);
    assert_eq!(grace(text, &[field], &[]), 2);
    // Whichever of the two comes first.
    assert_eq!(grace(text, &[field, own], &[]), 3);
    assert_eq!(grace(text, &[own, field], &[]), 3);
    assert_eq!(grace(text, &[field, own], &sets[..1]), 4);
    assert_eq!(grace(text, &[field, own], &sets), 5);
}

#[test]
fn a_layer_overrides_only_its_own_settings() {
    let text = "[policy.target]\ndeadline_ms = 7\n[policy.grace]\nfile = \"a/b.wasm\"\n";
    let config = layered(text, &[("POINTWORK_POLICY_TARGET_MEMORY_MIB", "32")], &[]).unwrap();
    assert_eq!(config.policy.target.deadline_ms.get(), 7);
    assert_eq!(config.policy.target.memory_mib.get(), 32);
    assert_eq!(config.policy.target.path(Path::new("p")), Path::new("p/target.wasm"));
    assert_eq!(config.policy.grace.path(Path::new("p")), Path::new("p/a/b.wasm"));
}

#[test]
fn reads_the_variables_of_existing_deployments() {
    let names = [
        ("REDIS_URL", "redis://:pw@host:6379"),
        ("RPC_RECONNECT_GRACE_MS", "11"),
        ("RPC_RECONNECT_POLL_MS", "12"),
        ("RPC_PRESENCE_POLL_MS", "13"),
        ("RPC_PRESENCE_FETCH_TIMEOUT_MS", "14"),
        ("RPC_CALL_TIMEOUT_MS", "15"),
        ("SESSION_SETTLE_MS", "16"),
    ];
    let config = layered("", &names, &[]).unwrap();
    assert_eq!(config.redis.url.as_ref().unwrap().expose(), "redis://:pw@host:6379");
    assert_eq!(config.rpc.grace_ms.get(), 11);
    assert_eq!(config.rpc.reconnect_poll_ms.get(), 12);
    assert_eq!(config.rpc.presence_poll_ms.get(), 13);
    assert_eq!(config.rpc.presence_fetch_timeout_ms.get(), 14);
    assert_eq!(config.rpc.call_timeout_ms.get(), 15);
    assert_eq!(config.device.settle_ms.get(), 16);
    for (name, _) in names {
        assert!(layered("", &[(name, "")], &[]).is_ok(), "{name} empty is not set");
        assert!(refusal("", &[(name, "soon")], &[]).contains(name), "{name}");
    }
}

#[test]
fn reads_text_as_the_type_of_the_setting() {
    let variables = [
        ("POINTWORK_AUTH_HS256_SECRET", "0123"),
        ("POINTWORK_AUTH_ISSUER", "true"),
        ("POINTWORK_POLICY_WATCH", "false"),
        ("POINTWORK_POLICY_DIR", "7"),
        ("POINTWORK_POLICY_TARGET_CONFIG", r#"{"weight": 3}"#),
        ("POINTWORK_LISTEN_CORS_ORIGINS", "https://a.example,https://b.example"),
        ("POINTWORK_LOG_FORMAT", "json"),
    ];
    let config = layered("[policy.target.config]\ncovered = true\n", &variables, &[]).unwrap();
    assert_eq!(config.auth.hs256_secret.unwrap().expose(), "0123");
    assert_eq!(config.auth.issuer.unwrap(), "true");
    assert!(!config.policy.watch);
    assert_eq!(config.policy.dir.unwrap().to_str(), Some("7"));
    assert_eq!(config.policy.target.config.to_json(), r#"{"weight":3}"#);
    assert_eq!(config.log.format, LogFormat::Json);
    let origins = ["https://a.example", "https://b.example"].map(HeaderValue::from_static);
    assert_eq!(config.listen.cors_origins, CorsOrigins::Listed(origins.to_vec()));
}

#[test]
fn a_file_must_have_the_right_types() {
    let message = refusal("[policy.target]\ndeadline_ms = \"5\"\n", &[], &[]);
    assert!(message.contains("policy.target.deadline_ms"), "{message}");
    let message = refusal("[policy]\nwatch = \"yes\"\n", &[], &[]);
    assert!(message.contains("policy.watch` must be a boolean, not a text"), "{message}");
}

#[test]
fn names_an_unknown_setting_and_its_layer() {
    let message = refusal("[rpc]\ngrace = 1\n", &[], &[]);
    assert!(message.starts_with("unknown setting `rpc.grace` (file "), "{message}");
    assert!(message.contains("grace_ms"), "{message}");
    let message = refusal("[nonsense]\n", &[], &[]);
    assert!(message.starts_with("unknown setting `nonsense` (file "), "{message}");
    for (name, setting) in [
        ("POINTWORK_RPC_GRACE", "rpc.grace"),
        ("POINTWORK_NONSENSE", "nonsense"),
        ("POINTWORK_POLICY_TARGET_FUEL", "policy.target.fuel"),
        ("POINTWORK_POLICY_NOSUCHSLOT_FILE", "policy.nosuchslot_file"),
    ] {
        let message = refusal("", &[(name, "1")], &[]);
        let expected = format!("unknown setting `{setting}` (environment variable {name})");
        assert!(message.starts_with(&expected), "{message}");
    }
    let message = refusal("", &[], &["rpc.grace=1"]);
    assert!(message.starts_with("unknown setting `rpc.grace` (flag --set rpc.grace)"), "{message}");
}

#[test]
fn names_a_wrong_value_even_if_a_later_layer_overrides_it() {
    let range = "setting `policy.target.deadline_ms` must be a whole number from 1 to 1000, not 0";
    let text = "[policy.target]\ndeadline_ms = 0\n";
    let variable = ("POINTWORK_POLICY_TARGET_DEADLINE_MS", "0");
    let good = "policy.target.deadline_ms=5";
    let message = refusal(text, &[], &[good]);
    assert!(message.starts_with(&format!("{range} (file ")), "{message}");
    let message = refusal("", &[variable], &[good]);
    assert_eq!(message, format!("{range} (environment variable {})", variable.0));
    let message = refusal("", &[], &["policy.target.deadline_ms=0", good]);
    assert_eq!(message, format!("{range} (flag --set policy.target.deadline_ms)"));
    let message = refusal("", &[("SESSION_SETTLE_MS", "ten")], &[]);
    let expected =
        "must be a whole number from 0 to 3600000, not the text \"ten\" (environment variable SESSION_SETTLE_MS)";
    assert!(message.ends_with(expected), "{message}");
    let message = refusal("", &[], &["policy.target=3"]);
    assert_eq!(message, "setting `policy.target` must be a table, not a text (flag --set policy.target)");
    let message = refusal("", &[("POINTWORK_AUTH_ISSUER", "")], &[]);
    assert!(message.contains("`auth.issuer` must not be empty"), "{message}");
}

#[test]
fn a_single_key_of_a_policy_config_cannot_be_set() {
    let message = refusal("", &[], &["policy.target.config.weight=3"]);
    assert!(message.contains("Set `policy.target.config` to a JSON object"), "{message}");
    let text = "[policy.target.config]\nweight = 3\nzones = [\"a\"]\n";
    let config = layered(text, &[], &[]).unwrap();
    assert_eq!(config.policy.target.config.to_json(), r#"{"weight":3,"zones":["a"]}"#);
}

#[test]
fn rejects_other_as_a_pattern_of_methods() {
    let rule = "[[rpc.method]]\nmatch = \"other\"\ntimeout_ms = 1\n";
    for refused in [refusal(rule, &[], &[]), refusal("", &[], &["metrics.method_labels=*:bash,other"])] {
        assert!(refused.contains("must not be `other`"), "{refused}");
    }
    assert!(layered(&rule.replace("other", "othe?"), &[], &[]).is_ok());
}

#[test]
fn an_assignment_needs_a_section_a_key_and_a_value() {
    for wrong in ["", "=", "rpc", "rpc=1", "rpc.grace_ms", ".grace_ms=1", "rpc.=1", "rpc..grace_ms=1"] {
        let error = Assignment::parse(wrong).unwrap_err();
        assert!(error.to_string().contains("section.key=value"), "{wrong}");
    }
}

#[test]
fn the_environment_may_name_the_file() {
    let named = file("[rpc]\ngrace_ms = 1\n");
    let given = file("[rpc]\ngrace_ms = 2\n");
    let environment = vec![("POINTWORK_CONFIG".into(), named.path().into())];
    let sources = |file| Sources { file, environment: environment.clone(), flags: vec![] };
    assert_eq!(load(sources(None)).unwrap().rpc.grace_ms.get(), 1);
    assert_eq!(load(sources(Some(given.path().to_owned()))).unwrap().rpc.grace_ms.get(), 2);
    let missing = load(sources(Some(PathBuf::from("/no/such/file.toml")))).unwrap_err();
    assert!(missing.to_string().contains("/no/such/file.toml"), "{missing}");
}

#[test]
fn an_admin_listener_that_others_reach_needs_a_token_from_any_layer() {
    let text = "[admin]\naddress = \"0.0.0.0:9090\"\n";
    let message = refusal(text, &[], &[]);
    assert!(message.starts_with("setting `admin.token` must have at least 16"), "{message}");
    assert!(message.contains("0.0.0.0:9090") && message.contains("(address from file "), "{message}");
    assert!(layered(text, &[("POINTWORK_ADMIN_TOKEN", "0123456789abcdef")], &[]).is_ok());
}

#[test]
fn prints_no_secret() {
    let variables = [
        ("POINTWORK_AUTH_HS256_SECRET", "sesame-1"),
        ("POINTWORK_ADMIN_TOKEN", "sesame-2-and-more"),
        ("REDIS_URL", "redis://:sesame-3@host"),
    ];
    let config = layered("", &variables, &[]).unwrap();
    let printed = format!("{config:?}\n{}", config.to_toml().unwrap());
    assert!(!printed.contains("sesame"), "{printed}");
    assert_eq!(printed.matches("= \"<set>\"").count(), 3, "{printed}");
    for (text, variables, sets) in [
        // Not closed: the parser would quote the line.
        ("[auth]\nhs256_secret = \"sesame\n", &[][..], &[][..]),
        ("[auth]\nhs256_secret = [\"sesame\"]\n", &[], &[]),
        ("auth = \"sesame\"\n", &[], &[]),
        ("", &[("REDIS_URL", "rediss:sesame")], &[]),
        ("", &[], &["auth.hs256secret=sesame"]),
        ("", &[], &["hs256_secret=sesame"]),
        ("", &[], &["auth=sesame"]),
    ] {
        let error = layered(text, variables, sets).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("sesame"), "{error:?}");
    }
}

#[test]
fn the_printed_settings_are_a_settings_file() {
    let config = layered("", &[], &["policy.dir=p", r#"policy.settle.config={"a":null}"#]).unwrap();
    let printed = config.to_toml().unwrap();
    assert_eq!(layered(&printed, &[], &[]).unwrap().to_toml().unwrap(), printed);
}

#[test]
fn ignores_the_variables_that_kubernetes_sets_for_a_service() {
    let variables = [
        ("POINTWORK_SERVICE_HOST", "10.0.0.1"),
        ("POINTWORK_PORT", "tcp://10.0.0.1:3000"),
        ("POINTWORK_PORT_3000_TCP_PROTO", "tcp"),
        ("POINTWORK_ADMIN_SERVICE_PORT_HTTP", "9090"),
    ];
    assert!(layered("", &variables, &[]).is_ok());
    assert!(refusal("", &[("POINTWORK_ADMIN_PORT", "9090")], &[]).contains("admin.port"));
}
