//! The settings, as one typed value from four layers: defaults, a TOML file, the environment and the flags. A later layer overrides the
//! ones before.
//!
//! What [`load`] returns is valid. Each layer is checked on its own, so an unknown setting or a wrong value is found even if a later layer
//! overrides it.

mod sections;
mod settings;
mod sources;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use self::values::text::OTHER;
pub use self::{
    sections::{
        admin::{AdminConfig, TOKEN_CHARS_MIN},
        auth::AuthConfig,
        device::DeviceConfig,
        drain::DrainConfig,
        listen::{CorsOrigins, EnginePath, ListenConfig},
        log::{LogConfig, LogFilter, LogFormat},
        metrics::MetricsConfig,
        policy::{PolicyConfig, PolicyFile, PolicySource, SlotConfig},
        records::{RecordsConfig, Share},
        redis::RedisConfig,
        rpc::RpcConfig,
        tls::{AdminTlsConfig, ReloadMs, TlsConfig},
        trace::{OtlpEndpoint, TraceConfig},
    },
    settings::Config,
    sources::{
        error::ConfigError,
        layers::Assignment,
        load::{Sources, load},
    },
    values::{bounded::Bounded, networks::Networks, secret::Secret},
};

/// The longest id of a session or machine, in bytes.
pub(crate) const ID_BYTES_MAX: usize = 256;
