//! Counts calls and measures their duration, by method and outcome.
//!
//! Clients choose the names of methods, and these often contain ids (`<machineId>:bash`). So the label of a method is:
//! 1. the first pattern of `metrics.method_labels`, and then of `[[rpc.method]]`, that matches the method;
//! 2. or the part after the last `:`, if it looks like a name and is one of the first `metrics.methods_max` that daemons registered, at
//!    most half of them by one user;
//! 3. or `other`.
//!
//! A call matches the patterns and looks into a table. It takes no lock and allocates nothing.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use metrics::Counter;
use wildmatch::WildMatch;

use super::outcome::CallOutcome;
use crate::config::OTHER;
use crate::telemetry::{
    fixed_histogram::{CALL_NS, FixedHistogram, LOOKS},
    metrics_page::MetricsPage,
};

/// A longer name is no label.
const NAME_BYTES_MAX: usize = 64;
/// A name with as many digits is an id.
const ID_DIGITS: usize = 5;

/// Which methods have a label of their own.
#[derive(Debug, Clone, Default)]
pub struct MethodLabels {
    /// Patterns (`*` any text, `?` one character), tried in their order.
    pub patterns: Vec<String>,
    /// How many methods have one because they were registered.
    pub registered_max: usize,
}

/// The index of a method's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MethodLabel(usize);

/// The metrics of calls on this replica.
pub(crate) struct MethodMetrics {
    patterns: Vec<WildMatch>,
    /// The patterns, then `other`, then registered methods.
    series: Box<[OnceLock<MethodSeries>]>,
    /// The duration of failed calls, by outcome.
    failed: [FixedHistogram; CallOutcome::ALL.len()],
    /// Lookups at Node servers after the first one.
    pub(crate) looks: FixedHistogram,
    registered: ArcSwap<HashMap<Box<str>, MethodLabel>>,
    /// The number of registered labels by user.
    brought: Mutex<HashMap<u64, usize>>,
    registered_max: usize,
}

pub(super) struct MethodSeries {
    pub(super) label: Arc<str>,
    /// By outcome, each from its first call on. Most methods have two.
    calls: [OnceLock<Counter>; CallOutcome::ALL.len()],
    took: FixedHistogram,
}

impl MethodMetrics {
    pub(crate) fn new(labels: &MethodLabels) -> Self {
        let patterns: Vec<WildMatch> = labels.patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let fixed =
            labels.patterns.iter().map(String::as_str).chain([OTHER]).map(|label| MethodSeries::new(label).into());
        let free = (0..labels.registered_max).map(|_| OnceLock::new());
        let methods = Self {
            patterns,
            series: fixed.chain(free).collect(),
            failed: std::array::from_fn(|_| FixedHistogram::new(&CALL_NS)),
            looks: FixedHistogram::new(&LOOKS),
            registered: ArcSwap::default(),
            brought: Mutex::default(),
            registered_max: labels.registered_max,
        };
        // These series exist from the start.
        CallOutcome::ALL.into_iter().for_each(|ended| methods.count(methods.other(), ended, 0));
        methods
    }

    /// The label of a method that is called.
    pub(crate) fn label(&self, method: &str) -> MethodLabel {
        let pattern = self.patterns.iter().position(|pattern| pattern.matches(method)).map(MethodLabel);
        let registered = || self.registered.load().get(name(method)).copied();
        pattern.or_else(registered).unwrap_or(self.other())
    }

    /// The label of all methods without one of their own.
    pub(crate) fn other(&self) -> MethodLabel {
        MethodLabel(self.patterns.len())
    }

    /// A daemon has registered the method. `user` is a key of its user.
    pub(crate) fn registered(&self, method: &str, user: impl FnOnce() -> u64) {
        let name = name(method);
        let registered = self.registered.load();
        if registered.len() >= self.registered_max || registered.contains_key(name) {
            return;
        }
        if looks_like_a_name(name) && !self.patterns.iter().any(|pattern| pattern.matches(method)) {
            self.give(name, user());
        }
    }

    fn give(&self, name: &str, user: u64) {
        let mut brought = self.brought.lock();
        let registered = self.registered.load();
        let brought = brought.entry(user).or_default();
        let is_full = registered.len() >= self.registered_max || *brought >= self.registered_max.div_ceil(2);
        if is_full || registered.contains_key(name) {
            return;
        }
        let label = self.pattern_called(name).unwrap_or(MethodLabel(self.other().0 + 1 + registered.len()));
        if let Some(series) = self.series.get(label.0) {
            series.get_or_init(|| MethodSeries::new(name));
            *brought += 1;
            let mut more = HashMap::clone(&registered);
            more.insert(name.into(), label);
            self.registered.store(Arc::new(more));
        }
    }

    /// The pattern that is equal to `name`, even if it does not match the whole method: one label must be one series.
    fn pattern_called(&self, name: &str) -> Option<MethodLabel> {
        let mut patterns = self.series.iter().take(self.patterns.len()).filter_map(OnceLock::get);
        patterns.position(|series| &*series.label == name).map(MethodLabel)
    }

    /// A call was answered.
    pub(crate) fn answered(&self, label: MethodLabel, ended: CallOutcome, took: Duration) {
        self.count(label, ended, 1);
        match (ended, self.series(label)) {
            (CallOutcome::Success, Some(series)) => series.took.record_duration(took),
            _ => self.failed[ended as usize].record_duration(took),
        }
    }

    /// A call ended without an answer.
    pub(crate) fn ended(&self, label: MethodLabel, ended: CallOutcome) {
        self.count(label, ended, 1);
    }

    fn count(&self, label: MethodLabel, ended: CallOutcome, calls: u64) {
        if let Some(series) = self.series(label) {
            series.calls[ended as usize].get_or_init(|| series.counter(ended)).increment(calls);
        }
    }

    pub(super) fn series(&self, label: MethodLabel) -> Option<&MethodSeries> {
        self.series.get(label.0).and_then(OnceLock::get)
    }

    /// Writes the histograms of calls.
    pub(crate) fn expose(&self, page: &mut MetricsPage) {
        const TOOK: &str = "rpc_call_duration_seconds";
        page.begin(TOOK);
        for series in self.series.iter().filter_map(OnceLock::get) {
            if &*series.label == OTHER || !series.took.is_empty() {
                let labels = [("method", &*series.label), ("result", CallOutcome::Success.as_str())];
                page.histogram(TOOK, &labels, &series.took, 1e-9);
            }
        }
        for (ended, failed) in CallOutcome::ALL.iter().zip(&self.failed).filter(|(_, failed)| !failed.is_empty()) {
            page.histogram(TOOK, &[("method", "any"), ("result", ended.as_str())], failed, 1e-9);
        }
        page.begin("rpc_lookup_retries");
        page.histogram("rpc_lookup_retries", &[], &self.looks, 1.0);
        metrics::gauge!("pointwork_metric_methods").set(self.registered.load().len() as f64);
        metrics::gauge!("pointwork_metric_methods_max").set(self.registered_max as f64);
    }
}

impl MethodSeries {
    fn new(label: &str) -> Self {
        Self { label: label.into(), calls: Default::default(), took: FixedHistogram::new(&CALL_NS) }
    }

    fn counter(&self, ended: CallOutcome) -> Counter {
        metrics::counter!("rpc_calls_total", "method" => self.label.to_string(), "result" => ended.as_str())
    }
}

/// The method without the id of its session or machine.
fn name(method: &str) -> &str {
    method.rsplit_once(':').map_or(method, |(_, name)| name)
}

fn looks_like_a_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) && digits < ID_DIGITS && name != OTHER
}
