//! Turns the settings into what each part is started with, and warns of settings that do not fit each other.

use std::time::Duration;

use pointwork_core::CallSettings;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};
use wildmatch::WildMatch;

use crate::{
    calls::{CallsConfig, Deadlines, LookupSettings},
    config::{Config, CorsOrigins, ListenConfig},
    telemetry::MethodLabels,
};

/// Warns of settings that are allowed and seldom meant.
pub(super) fn warn(config: &Config) {
    if config.listen.max_buffer_packets.get() <= config.rpc.calls_per_user_max.get() {
        tracing::warn!(
            "listen.max_buffer_packets is not above rpc.calls_per_user_max: a burst of calls can cut off a daemon"
        );
    }
    if config.redis.lost_after_ms.get() < 2 * config.redis.heartbeat_ms.get() {
        tracing::warn!("redis.lost_after_ms is less than two heartbeats: replicas that live can be taken for silent");
    }
    if config.admin.is_plain_beyond_loopback() {
        tracing::warn!(
            "admin.address is no loopback address and there is no admin.tls: the token crosses the network unencrypted, \
             unless something in front of the host speaks TLS"
        );
    }
}

/// The settings of the calls.
pub(super) fn call_settings(Config { rpc, metrics, .. }: &Config) -> CallsConfig {
    let ruled = rpc.method.iter().map(|rule| &rule.pattern);
    let labels = MethodLabels {
        patterns: metrics.method_labels.iter().chain(ruled).cloned().collect(),
        registered_max: metrics.methods_max.as_usize(),
    };
    let limits = CallSettings {
        calls_per_user_max: rpc.calls_per_user_max.as_usize(),
        waiting_per_room_max: rpc.waiting_per_method_max.as_usize(),
        methods_per_socket_max: rpc.methods_per_socket_max.as_usize(),
        method_bytes_per_socket_max: rpc.method_bytes_per_socket_max.as_usize(),
        method_bytes_max: rpc.method_bytes_max.as_usize(),
        ..CallSettings::default()
    };
    CallsConfig {
        deadlines: Deadlines {
            methods: rpc
                .method
                .iter()
                .map(|rule| (WildMatch::new(&rule.pattern), rule.timeout_ms.as_millis()))
                .collect(),
            default: rpc.call_timeout_ms.as_millis(),
            asked_max: rpc.asked_timeout_max_ms.as_millis(),
        },
        calls_max: rpc.calls_max.as_usize(),
        request_memory_max: rpc.request_memory_mib.as_usize() << 20,
        params_bytes_max: rpc.params_bytes_max.as_usize(),
        lookup: LookupSettings {
            timeout: rpc.presence_fetch_timeout_ms.as_millis(),
            while_waiting: rpc.reconnect_poll_ms.as_millis(),
            while_in_flight: rpc.presence_poll_ms.as_millis(),
        },
        limits,
        labels,
    }
}

/// Who may call from a browser. Clients send credentials from any origin, and browsers refuse `*` with credentials, so the origin is
/// mirrored.
pub(super) fn cors(listen: &ListenConfig) -> CorsLayer {
    let origin = match &listen.cors_origins {
        CorsOrigins::Any => AllowOrigin::mirror_request(),
        CorsOrigins::Listed(origins) => AllowOrigin::list(origins.iter().cloned()),
    };
    CorsLayer::new()
        .allow_origin(origin)
        .allow_credentials(true)
        .allow_headers(AllowHeaders::mirror_request())
        .allow_methods(AllowMethods::mirror_request())
}

/// How long a connection may be silent. A client answers a ping of every interval, and a poll lasts one interval at most. This is a
/// little more, so that Engine.IO notices first whenever it can.
pub(super) fn silence_max(listen: &ListenConfig) -> Duration {
    listen.ping_interval_ms.as_millis() + listen.ping_timeout_ms.as_millis() + Duration::from_secs(1)
}
