//! All settings, as one value.

use serde::{Deserialize, Serialize};

use super::sections::{
    admin::AdminConfig, auth::AuthConfig, device::DeviceConfig, drain::DrainConfig, listen::ListenConfig,
    log::LogConfig, metrics::MetricsConfig, policy::PolicyConfig, redis::RedisConfig, rpc::RpcConfig,
    trace::TraceConfig,
};

/// Every setting. Relative paths are relative to the directory that the host was started in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where and how clients connect.
    pub listen: ListenConfig,
    /// The listener for operators.
    pub admin: AdminConfig,
    /// The keys that tokens are verified with.
    pub auth: AuthConfig,
    /// What replicas share.
    pub redis: RedisConfig,
    /// The policies.
    pub policy: PolicyConfig,
    /// Calls from one client to another.
    pub rpc: RpcConfig,
    /// Sessions of devices.
    pub device: DeviceConfig,
    /// How a replica leaves when it is asked to stop.
    pub drain: DrainConfig,
    /// The log.
    pub log: LogConfig,
    /// What `/metrics` tells apart.
    pub metrics: MetricsConfig,
    /// Spans of calls.
    pub trace: TraceConfig,
}

impl Config {
    /// The settings as TOML that is itself a settings file, except that every secret reads `<set>`.
    ///
    /// # Errors
    /// None that a loaded configuration is known to cause.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}
