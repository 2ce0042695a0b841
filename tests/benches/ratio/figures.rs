//! What was measured, and what it comes to.

use std::collections::BTreeMap;

use pointwork_tests::measure::quantile::{halves, median, spread};

use crate::servers::cluster::Kind;

/// A line of the table.
pub(crate) struct Row {
    pub(crate) key: &'static str,
    pub(crate) label: &'static str,
    unit: &'static str,
    pub(crate) target: Option<Target>,
}

/// What the ratio Pointwork / Node should be.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    pub(crate) fn is_met_by(self, ratio: f64) -> bool {
        match self {
            Self::AtMost(most) => ratio <= most,
            Self::AtLeast(least) => ratio >= least,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
        }
    }
}

const fn row(key: &'static str, label: &'static str, unit: &'static str, target: Option<Target>) -> Row {
    Row { key, label, unit, target }
}

/// In the order of the table.
#[rustfmt::skip]
pub(crate) const ROWS: [Row; 23] = [
    row("cross.cpu", "cross-replica call, 64 in flight: CPU of both servers", "µs", Some(Target::AtMost(0.18))),
    row("cross.redis", "… CPU of Redis", "µs", None),
    row("cross.load", "… CPU of the load tool", "µs", None),
    row("cross.rate", "… calls a second", "", Some(Target::AtLeast(5.0))),
    row("cross.p50", "… latency p50", "ms", None),
    row("cross.p99", "… latency p99", "ms", None),
    row("same.cpu", "same-replica call, 64 in flight: CPU of both servers", "µs", Some(Target::AtMost(0.27))),
    row("same.redis", "… CPU of Redis", "µs", None),
    row("same.load", "… CPU of the load tool", "µs", None),
    row("same.rate", "… calls a second", "", None),
    row("same.p50", "… latency p50", "ms", None),
    row("same.p99", "… latency p99", "ms", None),
    row("one.p50", "cross-replica call, one in flight: latency p50", "ms", Some(Target::AtMost(0.3))),
    row("one.p99", "… latency p99", "ms", Some(Target::AtMost(0.4))),
    row("one.cpu", "… CPU of both servers", "µs", None),
    row("fanout.cpu", "broadcast to 1,000 sockets: CPU of both servers a delivery", "µs", Some(Target::AtMost(0.65))),
    row("fanout.rate", "… deliveries a CPU second of the servers", "", None),
    row("fanout.redis", "… CPU of Redis an event", "µs", None),
    row("connect.cpu", "connect: CPU of the server", "µs", Some(Target::AtMost(0.33))),
    row("connect.rate", "… connects a second", "", None),
    row("connect.load", "… CPU of the load tool", "µs", None),
    row("memory.rss", "idle socket: growth of resident memory", "KiB", Some(Target::AtMost(1.2))),
    row("memory.anonymous", "… of it what belongs to no file", "KiB", None),
];

/// One for each round.
#[derive(Default)]
pub(crate) struct Figures {
    measured: BTreeMap<(Kind, &'static str), Vec<f64>>,
    /// The policy's part of a call's CPU, in per cent.
    pub(crate) policy_shares: Vec<f64>,
}

impl Figures {
    /// Adds what a round gave.
    pub(crate) fn add(&mut self, kind: Kind, key: &'static str, value: f64) {
        debug_assert!(ROWS.iter().any(|row| row.key == key), "{key} has a row");
        self.measured.entry((kind, key)).or_default().push(value);
    }

    /// Adds the policy's part of a call's CPU, in per cent.
    pub(crate) fn add_share(&mut self, percent: f64) {
        self.policy_shares.push(percent);
    }

    /// The median over rounds; `None` when it was not measured.
    pub(crate) fn median(&self, kind: Kind, key: &'static str) -> Option<f64> {
        self.measured.get(&(kind, key)).map(|values| median(values))
    }

    /// Pointwork's by Node's.
    pub(crate) fn ratio(&self, key: &'static str) -> Option<f64> {
        Some(self.median(Kind::Pointwork, key)? / self.median(Kind::Node, key)?)
    }

    /// Cells for [`HEAD`]; only what was measured.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        ROWS.iter().filter_map(|row| self.cells(row)).collect()
    }

    fn cells(&self, row: &Row) -> Option<Vec<String>> {
        let of = |kind| self.measured.get(&(kind, row.key));
        let (node, pointwork) = (of(Kind::Node), of(Kind::Pointwork));
        if node.is_none() && pointwork.is_none() {
            return None;
        }
        let measured = |values: Option<&Vec<f64>>| values.map_or_else(String::new, |values| shown(values, row.unit));
        let ratio = self.ratio(row.key);
        let verdict = row.target.zip(ratio).map(|(target, ratio)| if target.is_met_by(ratio) { "yes" } else { "no" });
        let again = |values: Option<&Vec<f64>>| {
            values.map_or_else(|| "-".to_owned(), |values| format!("{:.2}", halves(values)))
        };
        Some(vec![
            row.label.to_owned(),
            measured(node),
            measured(pointwork),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            row.target.map_or_else(String::new, Target::shown),
            verdict.unwrap_or_default().to_owned(),
            format!("{}, {}", again(node), again(pointwork)),
        ])
    }
}

/// Of [`Figures::rows`].
pub(crate) const HEAD: [&str; 7] = ["", "Node", "Pointwork", "ratio", "target", "met", "A/A Node, Pointwork"];

/// The median and how far the rounds are apart.
fn shown(values: &[f64], unit: &str) -> String {
    let (median, percent) = (median(values), 100.0 * spread(values));
    let digits = if median >= 100.0 {
        0
    } else if median >= 10.0 {
        1
    } else {
        2
    };
    let space = if unit.is_empty() { "" } else { " " };
    format!("{median:.digits$}{space}{unit} ±{percent:.0} %")
}
