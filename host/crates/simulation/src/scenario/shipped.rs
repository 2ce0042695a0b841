//! The scenarios that ship, compiled in.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../../tests/scenarios/", $name, ".toml")))),*]
    };
}

/// The scenarios that ship: name and file.
pub const SHIPPED: &[(&str, &str)] = shipped![
    "eviction-storm",
    "spaced-opens",
    "flapping-network",
    "moves",
    "half-open",
    "restarts",
    "rpc-reconnect-storm",
    "rpc-restarts",
    "rpc-flapping",
    "rpc-load",
];
