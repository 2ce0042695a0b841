//! The settings: one typed value from four layers. Each layer overrides the one before: defaults, a TOML file, the environment,
//! the flags.
//!
//! What [`load`] returns is known to be usable: numbers are in their ranges, texts are what they should be, and no
//! layer holds a setting that does not exist. Each layer is checked as it is laid, so a wrong value is found even
//! where a later layer covers it.

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
