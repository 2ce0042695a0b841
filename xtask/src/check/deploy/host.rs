//! Asks the real host whether it takes the settings in `deploy/`, whether they fit the manifests, and whether it answers the probes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde_json::Value;

use super::document::{Set, containers, list, named, text};
use crate::command;
use crate::run::host::Host;
use crate::workspace::Workspace;

/// The seconds that a stopping host needs after the drain, for its last connections and for a Redis that hangs.
const AFTER_DRAIN_S: u64 = 14;
/// Replaces all values of Secrets.
const SECRET: &str = "only-for-this-check-0123456789abcdef";
/// The deadline of a probe, long enough for any machine.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Checks that the host takes the settings files in `deploy/`, and that the unit waits long enough for its end.
pub(super) fn takes_files(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root.join("deploy");
    for file in ["image/pointwork.toml", "systemd/pointwork.toml"] {
        let path = folder.join(file).display().to_string();
        let variables = [("POINTWORK_CONFIG", path.as_str()), ("POINTWORK_AUTH_HS256_SECRET", SECRET)];
        effective(workspace, &variables).with_context(|| format!("deploy/{file}"))?;
    }
    let unit = fs::read_to_string(folder.join("systemd/pointwork.service"))?;
    let stop = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")?.parse().ok());
    let path = folder.join("systemd/pointwork.toml").display().to_string();
    outlasts(&effective(workspace, &[("POINTWORK_CONFIG", &path)])?, stop).context("TimeoutStopSec of the unit")
}

/// Errors when the host refuses the settings of a rendered Deployment, or when they do not fit its ports and its grace period.
pub(super) fn accepts(workspace: &Workspace, set: &Set) -> Result<()> {
    let deployment = named(set, "Deployment", "pointwork").context("there is no Deployment pointwork")?;
    let pod = &deployment["spec"]["template"]["spec"];
    let settings = list(&pod["volumes"])
        .filter_map(|volume| named(set, "ConfigMap", text(&volume["configMap"]["name"])))
        .find_map(|config_map| config_map["data"]["pointwork.toml"].as_str())
        .context("no mounted ConfigMap has a pointwork.toml")?;
    let file = workspace.deploy_scratch()?.join("pointwork.toml");
    fs::write(&file, settings)?;
    let file = file.display().to_string();
    let container = containers(deployment).next().context("a pod has a container")?;
    let variables: Vec<_> =
        list(&container["env"]).map(|variable| (text(&variable["name"]), value(variable, &file))).collect();
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let effective = effective(workspace, &variables).context("the settings in the ConfigMap and the environment")?;
    for (section, port) in [("listen", "socketio"), ("admin", "admin")] {
        let address = setting(&effective, section, "address").with_context(|| format!("{section}.address"))?;
        let is_open = list(&container["ports"]).any(|known| {
            known["name"] == port
                && known["containerPort"].as_u64().is_some_and(|number| address.ends_with(&format!(":{number}\"")))
        });
        ensure!(is_open, "{section}.address is {address}, which is not the container's port `{port}`");
        ensure!(!address.contains("127.0.0.1"), "{section}.address is {address}: nobody outside the pod reaches it");
    }
    outlasts(&effective, pod["terminationGracePeriodSeconds"].as_u64()).context("terminationGracePeriodSeconds")
}

fn value(variable: &Value, file: &str) -> String {
    match text(&variable["name"]) {
        "POINTWORK_CONFIG" => file.to_owned(),
        "POINTWORK_REDIS_URL" if variable["value"].is_null() => "redis://redis.example.com:6379".to_owned(),
        _ if variable["value"].is_null() => SECRET.to_owned(),
        _ => text(&variable["value"]).to_owned(),
    }
}

/// The settings in effect, as the host prints them.
fn effective(workspace: &Workspace, variables: &[(&str, &str)]) -> Result<String> {
    let mut config = Command::new(workspace.host());
    command::output(config.arg("config").env_clear().envs(variables.iter().copied()))
}

/// Errors when `seconds` is shorter than the drain may take.
fn outlasts(effective: &str, seconds: Option<u64>) -> Result<()> {
    let mut drain_ms = 0;
    for key in ["settle_ms", "deadline_ms", "close_ms"] {
        let value = setting(effective, "drain", key).with_context(|| format!("the host has no drain.{key}"))?;
        drain_ms += value.parse::<u64>().with_context(|| format!("drain.{key}"))?;
    }
    let least = drain_ms.div_ceil(1_000) + AFTER_DRAIN_S;
    match seconds {
        Some(seconds) if seconds >= least => Ok(()),
        Some(seconds) => bail!("is {seconds} s; the drain takes up to {drain_ms} ms, so at least {least} s"),
        None => bail!("is not set"),
    }
}

/// A value as it stands in the TOML that the host prints.
fn setting<'a>(toml: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let mut lines = toml.lines().skip_while(|line| *line != format!("[{section}]")).skip(1);
    lines
        .by_ref()
        .take_while(|line| !line.starts_with('['))
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))
}

/// Checks that the host answers the paths of the probes. The client tests check what a replica answers that is not ready.
pub(super) fn answers_probes(workspace: &Workspace) -> Result<()> {
    let environment = vec![
        ("POINTWORK_LISTEN_ADDRESS", "127.0.0.1:0".to_owned()),
        ("POINTWORK_ADMIN_ADDRESS", "127.0.0.1:0".to_owned()),
        ("POINTWORK_AUTH_HS256_SECRET", SECRET.to_owned()),
        ("POINTWORK_LOG_FILTER", "warn".to_owned()),
    ];
    let mut host = Host::start(workspace, &environment, || {})?;
    for path in ["/health/live", "/health/ready"] {
        let answer = get(&host.admin, path)?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "GET {path}: {}", answer.lines().next().unwrap_or_default());
    }
    let status = host.stop()?;
    ensure!(status.success(), "SIGTERM ended the host with {status}");
    Ok(())
}

fn get(url: &str, path: &str) -> Result<String> {
    let address = url.strip_prefix("http://").context("the admin listener speaks HTTP")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    const EFFECTIVE: &str = "[listen]\naddress = \"0.0.0.0:3000\"\n\n[drain]\nsettle_ms = 5000\ndeadline_ms = 15000\nclose_ms = 5000\n\n[log]\n";

    #[test]
    fn a_setting_is_that_of_its_section() {
        assert_eq!(setting(EFFECTIVE, "listen", "address"), Some("\"0.0.0.0:3000\""));
        assert_eq!(setting(EFFECTIVE, "drain", "close_ms"), Some("5000"));
        assert_eq!(setting(EFFECTIVE, "listen", "close_ms"), None);
        assert_eq!(setting(EFFECTIVE, "admin", "address"), None);
    }

    #[test]
    fn whoever_kills_waits_longer_than_the_drain() {
        outlasts(EFFECTIVE, Some(39)).unwrap();
        for short in [Some(38), Some(30), None] {
            outlasts(EFFECTIVE, short).unwrap_err();
        }
        outlasts("[listen]\n", Some(60)).unwrap_err();
    }
}
