//! Parses the URL of a Redis.

use fred::types::config::Config;

use crate::transport::types::TransportError;

/// Parses a URL. Errors do not quote it, because it may hold a password.
pub(super) fn parse(url: &str) -> Result<Config, TransportError> {
    let (scheme, rest) = url.trim().split_once("://").ok_or_else(|| wrong("there is no scheme"))?;
    let url = match scheme {
        "redis" | "rediss" | "valkey" | "valkeys" => format!("{scheme}://{rest}"),
        "unix" | "redis+unix" | "valkey+unix" => {
            let path = rest.rsplit_once('@').map_or(rest, |(_, path)| path);
            if !path.starts_with('/') {
                return Err(wrong("the path of a socket must be absolute: unix:///path"));
            }
            format!("redis+unix://{rest}")
        }
        _ => return Err(wrong("the scheme must be redis, rediss or unix")),
    };
    // The error of fred may quote a part of the URL.
    Config::from_url(&url).map_err(|_| wrong("user:password@host:port/database cannot be read"))
}

fn wrong(what: &str) -> TransportError {
    TransportError::Disconnected(format!("the URL of Redis is not usable: {what}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
