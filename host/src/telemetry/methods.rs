//! Calls by method and result.
//!
//! Clients choose the names of methods, and in the field they hold ids (`<machineId>:bash`), so they are no labels as they come:
//! 1. a pattern of `metrics.method_labels`, then one of `[[rpc.method]]`, that matches is itself the label;
//! 2. else what stands behind the last `:`, if it looks like a name and is among the first `metrics.methods_max` that daemons
//!    registered, of which one user brings half at most;
//! 3. else it is `other`.
//!
//! A call pays for a look at the patterns and one into a table; it takes no lock, and makes no text.

use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use metrics::Counter;
use wildmatch::WildMatch;

use crate::config::OTHER;

use super::{
    buckets::{Buckets, CALL_NS, LOOKS},
    page::Page,
};

/// Longer names are no labels.
const NAME_BYTES_MAX: usize = 64;
/// A name with so many digits is an id.
const ID_DIGITS: usize = 5;

/// Which methods have a label of their own.
#[derive(Debug, Clone, Default)]
pub struct MethodLabels {
    /// Patterns (`*` any text, `?` one character), tried in their order.
    pub patterns: Vec<String>,
    /// How many methods have one because they were registered.
    pub registered_max: usize,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Success,
    NotAvailable,
    SameSocket,
    TargetDisconnected,
    Timeout,
    Unusable,
    Unreachable,
    /// It was not taken on.
    Refused,
    /// Its caller left.
    Forgotten,
}

impl Ended {
    const ALL: [Self; 9] = [
        Self::Success,
        Self::NotAvailable,
        Self::SameSocket,
        Self::TargetDisconnected,
        Self::Timeout,
        Self::Unusable,
        Self::Unreachable,
        Self::Refused,
        Self::Forgotten,
    ];

    /// The label, in the words of the field's deployments where they have one.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::NotAvailable => "not_available",
            Self::SameSocket => "same_socket",
            Self::TargetDisconnected => "target_disconnected",
            Self::Timeout => "timeout",
            Self::Unusable => "unusable",
            Self::Unreachable => "unreachable",
            Self::Refused => "refused",
            Self::Forgotten => "forgotten",
        }
    }
}

/// Stands for a method's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// The calls of this replica.
pub(crate) struct Methods {
    patterns: Vec<WildMatch>,
    /// Those of the patterns, of all that have none of their own, and of methods that were registered.
    series: Box<[OnceLock<Series>]>,
    /// By result: how long calls took that did not succeed.
    failed: [Buckets; Ended::ALL.len()],
    /// Looks after the first one at servers of another kind.
    pub(crate) looks: Buckets,
    registered: ArcSwap<HashMap<Box<str>, Label>>,
    /// How many of the registered ones each user brought.
    brought: Mutex<HashMap<u64, usize>>,
    registered_max: usize,
}

struct Series {
    label: Arc<str>,
    /// By result, each from its first call on: most methods have two.
    calls: [OnceLock<Counter>; Ended::ALL.len()],
    took: Buckets,
}

impl Methods {
    pub(crate) fn new(labels: &MethodLabels) -> Self {
        let patterns: Vec<WildMatch> = labels.patterns.iter().map(|pattern| WildMatch::new(pattern)).collect();
        let fixed = labels.patterns.iter().map(String::as_str).chain([OTHER]).map(|label| Series::new(label).into());
        let free = (0..labels.registered_max).map(|_| OnceLock::new());
        let methods = Self {
            patterns,
            series: fixed.chain(free).collect(),
            failed: std::array::from_fn(|_| Buckets::new(&CALL_NS)),
            looks: Buckets::new(&LOOKS),
            registered: ArcSwap::default(),
            brought: Mutex::default(),
            registered_max: labels.registered_max,
        };
        // There from the start.
        Ended::ALL.into_iter().for_each(|ended| methods.count(methods.other(), ended, 0));
        methods
    }

    /// The label of a method that is called.
    pub(crate) fn label(&self, method: &str) -> Label {
        let pattern = self.patterns.iter().position(|pattern| pattern.matches(method)).map(Label);
        let registered = || self.registered.load().get(name(method)).copied();
        pattern.or_else(registered).unwrap_or(self.other())
    }

    /// That of all methods that have none of their own.
    pub(crate) fn other(&self) -> Label {
        Label(self.patterns.len())
    }

    /// A daemon of the user that the key stands for has the method.
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
        let label = self.pattern_called(name).unwrap_or(Label(self.other().0 + 1 + registered.len()));
        if let Some(series) = self.series.get(label.0) {
            series.get_or_init(|| Series::new(name));
            *brought += 1;
            let mut more = HashMap::clone(&registered);
            more.insert(name.into(), label);
            self.registered.store(Arc::new(more));
        }
    }

    /// The pattern whose text a name is, though it does not match the whole method: one label is one series.
    fn pattern_called(&self, name: &str) -> Option<Label> {
        let mut patterns = self.series.iter().take(self.patterns.len()).filter_map(OnceLock::get);
        patterns.position(|series| &*series.label == name).map(Label)
    }

    /// A call was answered.
    pub(crate) fn answered(&self, label: Label, ended: Ended, took: Duration) {
        self.count(label, ended, 1);
        match (ended, self.series(label)) {
            (Ended::Success, Some(series)) => series.took.note_span(took),
            _ => self.failed[ended as usize].note_span(took),
        }
    }

    /// A call ended without an answer of its own.
    pub(crate) fn ended(&self, label: Label, ended: Ended) {
        self.count(label, ended, 1);
    }

    fn count(&self, label: Label, ended: Ended, calls: u64) {
        if let Some(series) = self.series(label) {
            series.calls[ended as usize].get_or_init(|| series.counter(ended)).increment(calls);
        }
    }

    fn series(&self, label: Label) -> Option<&Series> {
        self.series.get(label.0).and_then(OnceLock::get)
    }

    /// Writes what took how long.
    pub(crate) fn expose(&self, page: &mut Page) {
        const TOOK: &str = "rpc_call_duration_seconds";
        page.begin(TOOK);
        for series in self.series.iter().filter_map(OnceLock::get) {
            if &*series.label == OTHER || !series.took.is_empty() {
                let labels = [("method", &*series.label), ("result", Ended::Success.as_str())];
                page.histogram(TOOK, &labels, &series.took, 1e-9);
            }
        }
        for (ended, failed) in Ended::ALL.iter().zip(&self.failed).filter(|(_, failed)| !failed.is_empty()) {
            page.histogram(TOOK, &[("method", "any"), ("result", ended.as_str())], failed, 1e-9);
        }
        page.begin("rpc_lookup_retries");
        page.histogram("rpc_lookup_retries", &[], &self.looks, 1.0);
        metrics::gauge!("pointwork_metric_methods").set(self.registered.load().len() as f64);
        metrics::gauge!("pointwork_metric_methods_max").set(self.registered_max as f64);
    }
}

impl Series {
    fn new(label: &str) -> Self {
        Self { label: label.into(), calls: Default::default(), took: Buckets::new(&CALL_NS) }
    }

    fn counter(&self, ended: Ended) -> Counter {
        metrics::counter!("rpc_calls_total", "method" => self.label.to_string(), "result" => ended.as_str())
    }
}

/// A method without the id of its session or machine.
fn name(method: &str) -> &str {
    method.rsplit_once(':').map_or(method, |(_, name)| name)
}

fn looks_like_a_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain) && digits < ID_DIGITS && name != OTHER
}

#[cfg(test)]
mod tests;
