//! Which variables of the environment are settings.
//!
//! `POINTWORK_<SECTION>_<KEY>` is `section.key`: the name is split at its first underscore. In the section `policy`, a key that begins with
//! a slot's name or with `records` belongs to that table. In `listen` and `admin`, the same holds for `tls`. The names of existing
//! deployments are read too, and a `POINTWORK_` name overrides them.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::{error::ConfigError, layers::Assignment};
use crate::config::sections::policy::SLOTS;

const PREFIX: &str = "POINTWORK_";

/// The variable that names the settings file.
const FILE: &str = "POINTWORK_CONFIG";

/// The variables of existing deployments and their settings. Names that other programs may use, such as `IDLE_MS`, are left out.
const FIELD_NAMES: [(&str, &str); 19] = [
    ("REDIS_URL", "redis.url"),
    ("RPC_RECONNECT_GRACE_MS", "rpc.grace_ms"),
    ("RPC_RECONNECT_POLL_MS", "rpc.reconnect_poll_ms"),
    ("RPC_PRESENCE_POLL_MS", "rpc.presence_poll_ms"),
    ("RPC_PRESENCE_FETCH_TIMEOUT_MS", "rpc.presence_fetch_timeout_ms"),
    ("RPC_CALL_TIMEOUT_MS", "rpc.call_timeout_ms"),
    ("SESSION_SETTLE_MS", "device.settle_ms"),
    ("OFFLINE_DEBOUNCE_MS", "device.offline_debounce_ms"),
    ("HEARTBEAT_TIMEOUT_MS", "device.heartbeat_timeout_ms"),
    ("CONNECT_RATE_WINDOW_MS", "device.connect_rate_window_ms"),
    ("CONNECT_RATE_MAX", "device.connect_rate_max"),
    ("ANONYMOUS_CONNECT_RATE_MAX", "device.anonymous_rate_max"),
    ("QUARANTINE_TRIPS", "device.quarantine_trips"),
    ("QUARANTINE_MS", "device.quarantine_ms"),
    ("RECONNECT_WINDOW_MS", "device.reconnect_window_ms"),
    ("RECONNECT_BASE_MAX", "device.reconnect_base_max"),
    ("RECONNECT_HARD_CEILING", "device.reconnect_hard_ceiling"),
    ("RECONNECT_WARMUP_MS", "device.reconnect_warmup_ms"),
    ("RECONNECT_BASE_BACKOFF_MS", "device.reconnect_base_backoff_ms"),
];

/// The settings file that the environment names.
pub(in crate::config) fn file(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let (_, path) = environment.iter().find(|(name, _)| name == FILE)?;
    Some(PathBuf::from(path))
}

/// The settings of the environment, in rising precedence.
pub(in crate::config) fn assignments(environment: &[(OsString, OsString)]) -> Result<Vec<Assignment>, ConfigError> {
    let mut field = Vec::new();
    let mut own = Vec::new();
    for (name, value) in environment {
        // A name that is no text is no setting.
        let Some(name) = name.to_str() else { continue };
        if let Some((_, setting)) = FIELD_NAMES.iter().find(|(known, _)| *known == name) {
            // Existing deployments leave variables empty that they do not set.
            if !value.is_empty() {
                field.push(assignment(name, setting, value)?);
            }
        } else if let Some(rest) = name.strip_prefix(PREFIX)
            && name != FILE
            && !is_service_link(rest, value)
        {
            own.push(assignment(name, &setting_of(rest), value)?);
        }
    }
    field.append(&mut own);
    Ok(field)
}

fn assignment(name: &str, setting: &str, value: &OsStr) -> Result<Assignment, ConfigError> {
    let origin = format!("environment variable {name}");
    match value.to_str() {
        Some(value) => Ok(Assignment::new(setting, value, origin)),
        None => Err(ConfigError::Invalid { setting: setting.to_owned(), origin, problem: "is not UTF-8".to_owned() }),
    }
}

/// `POLICY_TARGET_DEADLINE_MS` → `policy.target.deadline_ms`.
fn setting_of(rest: &str) -> String {
    let name = rest.to_ascii_lowercase();
    let Some((section, key)) = name.split_once('_') else {
        return name;
    };
    if section == "policy"
        && let Some((slot, key)) = key.split_once('_')
        && (SLOTS.contains(&slot) || slot == "records")
    {
        return format!("policy.{slot}.{key}");
    }
    if (section == "listen" || section == "admin")
        && let Some(key) = key.strip_prefix("tls_")
    {
        return format!("{section}.tls.{key}");
    }
    format!("{section}.{key}")
}

/// Whether Kubernetes set the variable. For a Service `pointwork` (or `pointwork-admin`), each pod of the namespace has
/// `POINTWORK_SERVICE_HOST`, `POINTWORK_PORT=tcp://10.0.0.1:3000`, `POINTWORK_PORT_3000_TCP_ADDR` and similar. They must not prevent the
/// start, and no setting has such a name.
fn is_service_link(rest: &str, value: &OsStr) -> bool {
    let rest = format!("_{rest}");
    if rest.ends_with("_SERVICE_HOST") || rest.ends_with("_SERVICE_PORT") || rest.contains("_SERVICE_PORT_") {
        return true;
    }
    let protocols = ["tcp", "udp", "sctp"];
    if rest.ends_with("_PORT") {
        let scheme = value.to_str().and_then(|value| value.split_once("://"));
        if scheme.is_some_and(|(scheme, _)| protocols.contains(&scheme)) {
            return true;
        }
    }
    let Some((_, port)) = rest.split_once("_PORT_") else {
        return false;
    };
    let mut parts = port.split('_');
    let number = parts.next().is_some_and(|part| part.parse::<u16>().is_ok());
    let protocol = parts.next().is_some_and(|part| protocols.contains(&part.to_ascii_lowercase().as_str()));
    number && protocol
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_at_its_first_underscore() {
        assert_eq!(setting_of("LISTEN_PING_INTERVAL_MS"), "listen.ping_interval_ms");
        assert_eq!(setting_of("POLICY_DIR"), "policy.dir");
        assert_eq!(setting_of("POLICY_QUIET_MS"), "policy.quiet_ms");
        assert_eq!(setting_of("POLICY_TARGET_DEADLINE_MS"), "policy.target.deadline_ms");
        assert_eq!(setting_of("POLICY_RECORDS_FILE_MIB"), "policy.records.file_mib");
        assert_eq!(setting_of("POLICY_TARGET"), "policy.target");
        assert_eq!(setting_of("LISTEN_TLS_CERT"), "listen.tls.cert");
        assert_eq!(setting_of("ADMIN_TLS_CLIENT_CA"), "admin.tls.client_ca");
        assert_eq!(setting_of("ADMIN_CLIENT_CERT"), "admin.client_cert");
        assert_eq!(setting_of("NONSENSE"), "nonsense");
    }

    #[test]
    fn distinguishes_service_links_from_settings() {
        let link = |rest: &str, value: &str| is_service_link(rest, OsStr::new(value));
        assert!(link("SERVICE_HOST", "10.0.0.1"));
        assert!(link("SERVICE_PORT", "3000"));
        assert!(link("SERVICE_PORT_HTTP", "3000"));
        assert!(link("PORT", "tcp://10.0.0.1:3000"));
        assert!(link("PORT_3000_TCP", "tcp://10.0.0.1:3000"));
        assert!(link("PORT_3000_TCP_ADDR", "10.0.0.1"));
        assert!(link("ADMIN_SERVICE_HOST", "10.0.0.1"));
        assert!(link("ADMIN_PORT_9090_TCP_PROTO", "tcp"));
        assert!(!link("ADMIN_PORT", "9090"));
        assert!(!link("LISTEN_PORT_HTTP", "3000"));
        assert!(!link("ADMIN_ADDRESS", "127.0.0.1:1"));
    }
}
