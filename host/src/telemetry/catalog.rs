//! Every metric of the host: its name, its meaning, and the series that exist from the start.
//!
//! Names that begin with `rpc_`, `websocket_` and `redis_` are those of existing deployments, so that their dashboards still work. The
//! adapter's own begin with `adapter_`, the usual ones of a process with `process_`, all others with `pointwork_`. A test finds metrics in
//! the source that are missing here.

use self::MetricKind::{Counter, Gauge, Histogram};
use super::socket_metrics::EventKind;
use crate::config::OTHER;

/// How the values of a metric behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// They grow.
    Counter,
    /// They rise and fall.
    Gauge,
    /// They are counted by size.
    Histogram,
}

impl MetricKind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Counter => "counter",
            Gauge => "gauge",
            Histogram => "histogram",
        }
    }
}

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) kind: MetricKind,
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Its labels. All combinations of the values exist from the start, as 0.
    labels: &'static [LabelValues],
    /// Its owner writes it into the [`MetricsPage`](super::MetricsPage), and the recorder does not know it.
    is_on_scrape: bool,
}

/// A label and the values of it that are known at the start.
type LabelValues = (&'static str, &'static [&'static str]);

/// Marks a metric that its owner writes when the metrics are scraped.
const ON_SCRAPE: bool = true;

macro_rules! catalog {
    ($($kind:ident $name:literal $([$($label:expr),*])? $($on_scrape:ident)?, $help:literal;)*) => {
        &[$(Metric {
            kind: $kind,
            name: $name,
            help: $help,
            labels: &[$($($label),*)?],
            is_on_scrape: false $(|| $on_scrape)?,
        }),*]
    };
}

const SLOTS: LabelValues = ("slot", &["target", "grace", "presence", "settle"]);
const LISTENERS: LabelValues = ("listener", &["clients", "admin"]);
const MEDIA: LabelValues = ("medium", &["stream", "channel"]);
const GAPS: LabelValues = ("reason", &["trimmed", "unknown", "too-many", "unreachable"]);

/// All metrics.
pub(super) const CATALOG: &[Metric] = catalog! {
    // Calls.
    Counter "rpc_calls_total" [("method", &[OTHER]), ("result", &["success"])],
        "Calls that ended, by method and result.";
    Histogram "rpc_call_duration_seconds" ON_SCRAPE,
        "From a call's arrival to its answer: of successes by method, of all others by result (method any).";
    Histogram "rpc_lookup_retries" ON_SCRAPE,
        "Looks at servers of another kind after the first one, for calls of a method that found nobody.";
    Counter "rpc_fetchsockets_timeouts_total" [("context", &["lookup", "presence"])],
        "Servers of another kind that did not answer a look in time.";
    Counter "rpc_refused_total" [("reason", &["params", "method", "in-flight", "waiting", "caller"])],
        "Calls that were not taken on.";
    Counter "rpc_errors_total" [("type", &["register", "unregister"])], "Registrations that were refused.";
    Counter "rpc_handed_in_total" [("result", &["taken", "unknown", "unreachable"])],
        "Results that daemons brought on another connection.";
    Gauge "rpc_calls_open", "Calls that wait or are in flight.";
    Gauge "rpc_calls_open_max", "As many may be (rpc.calls_max).";
    Gauge "rpc_request_memory_bytes", "Memory that the parameters of open calls are counted with.";
    Gauge "rpc_request_memory_max_bytes", "As much may be (rpc.request_memory_mib).";
    Gauge "pointwork_metric_methods", "Methods that have a label of their own by registration.";
    Gauge "pointwork_metric_methods_max", "As many may have (metrics.methods_max).";
    // Sockets.
    Gauge "websocket_connections_total"
        [("type", &["user-scoped", "session-scoped", "machine-scoped", "device", "dashboard"])],
        "Connected sockets.";
    Counter "websocket_events_total" [("event_type", &EventKind::LABELS)], "Events of clients of the root namespace.";
    Gauge "pointwork_connections" [LISTENERS], "Open connections.";
    Counter "pointwork_connections_refused_total" [("reason", &["total", "ip", "user", "admin", "late"])],
        "Connections over a bound, or without a request in time.";
    Counter "pointwork_tls_handshakes_failed_total" [LISTENERS], "TLS handshakes that failed.";
    Counter "pointwork_tls_reloads_total" [LISTENERS, ("result", &["loaded", "refused"])],
        "Certificates that changed and were loaded again, or not.";
    Counter "pointwork_handshakes_refused_total"
        [("reason", &["missing_token", "missing_session", "missing_machine", "invalid_token", "too_many"])],
        "Connections that were refused.";
    Counter "pointwork_events_unknown_total", "Events whose name means nothing here.";
    Counter "pointwork_events_dropped_total", "Early events that found no room before their socket was connected.";
    Counter "pointwork_activity_ignored_total", "Signs of life that make no sense or are old.";
    Counter "pointwork_deliveries_failed_total", "Packets that a socket did not take.";
    Counter "pointwork_slow_consumers_total", "Clients that were cut off because they do not read.";
    Counter "pointwork_silent_connections_total", "Connections that were ended because nothing came from them.";
    Counter "pointwork_gaps_total" [GAPS], "Gaps that clients with offsets were told of.";
    Counter "pointwork_emits_total", "Broadcasts of the application's backend that were taken.";
    Counter "pointwork_admin_refused_total", "Requests of operators that were refused.";
    Gauge "pointwork_runtime_lag_p99_ms",
        "How late tasks of the runtime wake up: 99 of 100 in ten seconds were no later.";
    // Devices.
    Gauge "pointwork_device_sockets", "Sockets of devices.";
    Gauge "pointwork_device_holders", "Devices whose session is held by a socket of this replica.";
    Counter "pointwork_device_sessions_total" [("outcome", &["accepted"]), ("reason", &["free"])],
        "Decisions about sessions of devices.";
    Counter "pointwork_device_sockets_refused_total", "Sockets of devices that found no room.";
    Counter "pointwork_device_malformed_total", "Heartbeats that name no device.";
    Counter "pointwork_device_records_dropped_total",
        "Records of devices that a replica without Redis had no room for.";
    Counter "pointwork_device_records_malformed_total", "Records of devices in Redis that cannot be read.";
    // Policies.
    Counter "pointwork_policy_decisions_total" [SLOTS, ("by", &["wasm", "native"])],
        "Decisions, by whose verdict counted.";
    Histogram "pointwork_policy_decision_seconds" ON_SCRAPE, "How long a policy took to decide, its own time alone.";
    Counter "pointwork_policy_failures_total"
        [SLOTS, ("kind", &["deadline", "trap", "stack", "memory", "out-of-bounds", "policy-error", "instantiate", "tripped"])],
        "Decisions that the policy failed at; the native rule answered.";
    Counter "pointwork_policy_trips_total" [SLOTS], "Policies that were given up for their failures.";
    Counter "pointwork_policy_loads_total" [SLOTS, ("result", &["ok"])], "Policies that were loaded, or why not.";
    Gauge "pointwork_policy_load_failed" [SLOTS], "1 while the last load is one that failed.";
    Gauge "pointwork_policy_generation" [SLOTS], "The number of what serves; it grows with each change.";
    Gauge "pointwork_policy_loaded" [SLOTS], "1 while a policy serves, 0 while the native rule does.";
    Gauge "pointwork_policy_info" ON_SCRAPE, "What serves: always 1.";
    Gauge "pointwork_policy_live_generations" [SLOTS],
        "Generations in use: what serves, arms of experiments, and those in which decisions are under way.";
    Gauge "pointwork_policy_quarantined" [SLOTS], "Modules that no load takes until they are retried.";
    Counter "pointwork_policy_rollouts_total" [SLOTS, ("result", &["moved", "failed"])],
        "Rollouts of the cluster, as this replica saw them end.";
    Counter "pointwork_records_written_total" [("sink", &["file", "stream"])], "Decisions that were recorded.";
    Counter "pointwork_records_dropped_total" [("sink", &["file", "stream"])], "Decisions that could not be recorded.";
    Counter "pointwork_experiment_guardrail_total" [("guardrail", &["stranded", "failures", "offline"])],
        "Experiments that a guardrail ended.";
    Counter "pointwork_experiment_units_lost_total", "Units of experiments that found no room.";
    Counter "pointwork_experiment_units_unreadable_total", "Units of experiments in the store that cannot be read.";
    // The cluster.
    Gauge "pointwork_ready", "1 while this replica is ready for clients.";
    Gauge "pointwork_cluster_linked",
        "1 while Redis is reached and messages come back from it; always for a replica without Redis.";
    Gauge "pointwork_cluster_complete", "1 once every replica was heard from, or had its time.";
    Gauge "pointwork_cluster_peers", "Other replicas that are heard from.";
    Counter "pointwork_remote_refused_total", "Methods of other replicas' daemons that found no room.";
    Counter "pointwork_notes_malformed_total", "Notes of other replicas that cannot be read.";
    Counter "pointwork_broadcast_gaps_total", "Times that broadcasts of other replicas were missed.";
    Gauge "redis_stream_lag_ms",
        "How old the oldest entry of the last read of the stream was, by the clocks of Redis and of this host; 0 while there is none.";
    Counter "adapter_published_total" [MEDIA], "Messages that were sent.";
    Counter "adapter_publish_failed_total" [MEDIA], "Messages that could not be sent.";
    Counter "adapter_received_total" [MEDIA], "Messages of other servers.";
    Counter "adapter_malformed_total" [("medium", &["stream", "channel", "packet"])],
        "Messages that were skipped because they cannot be read.";
    Counter "adapter_read_failed_total", "Reads of the stream that failed.";
    Counter "adapter_stream_gaps_total", "Times that the stream was trimmed before it was read.";
    Counter "adapter_stream_missed_total", "Entries that were trimmed before they were read.";
    Counter "adapter_stream_resets_total", "Times that the stream was emptied, or was another one.";
    Counter "adapter_channel_missed_total", "Messages that came in faster than they were taken.";
    Counter "adapter_outbox_full_total", "Messages that found no room in the outbox.";
    Counter "adapter_deliveries_failed_total", "Packets of other servers that a socket did not take.";
    Counter "adapter_answers_failed_total", "Answers to other servers that could not be sent.";
    Counter "adapter_answers_unclaimed_total", "Answers of other servers that nobody waited for any more.";
    Counter "adapter_requests_lost_total", "Requests of which it turned out that they or their answers were lost.";
    Counter "adapter_link_lost_total", "Times that the link to the cluster was lost.";
    Counter "adapter_peers_lost_total" [("loss", &["killed", "left", "silent"])], "Replicas that were lost.";
    Counter "adapter_peers_refused_total", "Replicas beyond the bound.";
    Gauge "adapter_foreign_servers", "Servers of another kind: Node's.";
    Counter "adapter_recoveries_total" [("outcome", &["recovered", "trimmed", "unknown", "too-many", "unreachable"])],
        "Clients with offsets that came back, by what they got of what they missed.";
    Counter "adapter_recovery_reads_total", "Reads of what the log no longer holds.";
    Counter "adapter_followers_overrun_total", "Clients with offsets that did not take a broadcast.";
    // The process.
    Counter "pointwork_trace_spans_total" [("result", &["exported", "dropped", "failed"])],
        "Spans that ended: sent, dropped for want of room, not taken by the collector.";
    Gauge "pointwork_build_info"
        [("version", &[env!("CARGO_PKG_VERSION")]), ("contract", &[pointwork_policy::contract::CONTRACT_VERSION])],
        "What runs: always 1.";
    Counter "process_cpu_seconds_total" ON_SCRAPE, "Processor time in user and kernel mode.";
    Gauge "process_resident_memory_bytes" ON_SCRAPE, "Memory that is resident.";
    Gauge "process_virtual_memory_bytes" ON_SCRAPE, "Memory that is mapped.";
    Gauge "process_threads" ON_SCRAPE, "Threads.";
    Gauge "process_open_fds" ON_SCRAPE, "Open files, sockets among them.";
    Gauge "process_max_fds" ON_SCRAPE, "As many may be open.";
    Gauge "process_start_time_seconds" ON_SCRAPE, "When the process started, since the Unix epoch.";
};

/// A metric by its name.
pub(super) fn find(name: &str) -> Option<&'static Metric> {
    CATALOG.iter().find(|metric| metric.name == name)
}

/// Describes the metrics to the recorder, and starts the series that are known.
pub(super) fn describe() {
    for Metric { kind, name, help, labels, .. } in CATALOG.iter().filter(|metric| !metric.is_on_scrape) {
        match kind {
            Counter => ::metrics::describe_counter!(*name, *help),
            Gauge => ::metrics::describe_gauge!(*name, *help),
            Histogram => ::metrics::describe_histogram!(*name, *help),
        }
        for series in combinations(labels) {
            match kind {
                Counter => ::metrics::counter!(*name, &series).absolute(0),
                Gauge => ::metrics::gauge!(*name, &series).set(f64::from(u8::from(name.ends_with("_info")))),
                Histogram => {}
            }
        }
    }
}

fn combinations(labels: &[LabelValues]) -> Vec<Vec<(&'static str, &'static str)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in labels {
        let with = |series: Vec<_>| values.iter().map(move |value| [series.clone(), vec![(*name, *value)]].concat());
        all = all.into_iter().flat_map(with).collect();
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn each_name_has_a_known_prefix_and_is_unique() {
        let mut names = BTreeSet::new();
        for Metric { name, kind, help, .. } in CATALOG {
            assert!(names.insert(name), "{name} is there twice");
            let families = ["rpc_", "websocket_", "redis_", "adapter_", "process_", "pointwork_"];
            assert!(families.iter().any(|family| name.starts_with(family)), "{name}");
            // Of the field's name for a number that comes and goes.
            let is_total = name.ends_with("_total") && *name != "websocket_connections_total";
            assert_eq!(is_total, *kind == Counter, "{name}");
            assert!(help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn lists_every_metric_in_the_source() {
        let host = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut missing = BTreeSet::new();
        for folder in ["src", "crates/adapter/src", "crates/policy/src"] {
            look(&host.join(folder), &mut missing);
        }
        assert!(missing.is_empty(), "not in the catalogue: {missing:?}");
    }

    /// Names in `counter!("…` and the like, wherever they stand.
    fn look(folder: &Path, missing: &mut BTreeSet<String>) {
        let is_name =
            |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                look(&path, missing);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for start in ["counter!(", "gauge!(", "histogram!("] {
                    let quoted = text.split(start).skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
                    let names = quoted.filter_map(|rest| rest.split('"').next()).filter(is_name);
                    missing.extend(names.filter(|name| find(name).is_none()).map(str::to_owned));
                }
            }
        }
    }
}
