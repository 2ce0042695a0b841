//! Writes the metrics that the recorder does not know: histograms of [`FixedHistogram`], and values that are read at each scrape.
//!
//! In contrast to a series of the recorder, a series here can end: its owner no longer writes it.

use std::fmt::Write;

use super::{catalog, fixed_histogram::FixedHistogram};

/// The text of these metrics.
#[derive(Debug, Default)]
pub struct MetricsPage(String);

/// Names and values.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl MetricsPage {
    /// Begins a metric of the catalog. Its samples must follow.
    pub(crate) fn begin(&mut self, name: &str) {
        if let Some(metric) = catalog::find(name) {
            // Writing to a text cannot fail.
            let _ = writeln!(self.0, "# HELP {name} {}\n# TYPE {name} {}", metric.help, metric.kind.as_str());
        }
    }

    /// Writes a metric without labels.
    pub(crate) fn single(&mut self, name: &str, value: f64) {
        self.begin(name);
        self.sample(name, &[], value);
    }

    pub(crate) fn sample(&mut self, name: &str, labels: Labels<'_>, value: f64) {
        self.0.push_str(name);
        self.labels(labels, None);
        let _ = match value {
            f64::INFINITY => writeln!(self.0, " +Inf"),
            value => writeln!(self.0, " {value}"),
        };
    }

    /// Writes a histogram. `unit` converts its values, such as 1e-9 for nanoseconds as seconds.
    pub(crate) fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &FixedHistogram, unit: f64) {
        let (bounded, all) = histogram.read();
        for (bound, count) in bounded {
            // A division gives 0.05, where a multiplication gives 0.050000000000000003.
            self.bucket(name, labels, &format!("{}", bound as f64 / (1.0 / unit).round()), count);
        }
        self.bucket(name, labels, "+Inf", all);
        for (suffix, value) in [("sum", histogram.sum() as f64 * unit), ("count", all as f64)] {
            let _ = write!(self.0, "{name}_{suffix}");
            self.labels(labels, None);
            let _ = writeln!(self.0, " {value}");
        }
    }

    fn bucket(&mut self, name: &str, labels: Labels<'_>, bound: &str, count: u64) {
        let _ = write!(self.0, "{name}_bucket");
        self.labels(labels, Some(bound));
        let _ = writeln!(self.0, " {count}");
    }

    fn labels(&mut self, labels: Labels<'_>, bound: Option<&str>) {
        let all = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        for (index, (name, value)) in all.enumerate() {
            let _ = write!(self.0, "{}{name}=\"", if index == 0 { '{' } else { ',' });
            for character in value.chars() {
                match character {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        if !labels.is_empty() || bound.is_some() {
            self.0.push('}');
        }
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_a_histogram_with_its_bounds() {
        let histogram = FixedHistogram::new(&[1_000, 50_000_000]);
        [500, 2_000, 60_000_000].into_iter().for_each(|nanos| histogram.record(nanos));
        let mut page = MetricsPage::default();
        page.histogram("rpc_call_duration_seconds", &[("method", "a\"b\\c\n")], &histogram, 1e-9);
        let want = [
            r#"rpc_call_duration_seconds_bucket{method="a\"b\\c\n",le="0.000001"} 1"#,
            r#"rpc_call_duration_seconds_bucket{method="a\"b\\c\n",le="0.05"} 2"#,
            r#"rpc_call_duration_seconds_bucket{method="a\"b\\c\n",le="+Inf"} 3"#,
            r#"rpc_call_duration_seconds_sum{method="a\"b\\c\n"} 0.0600025"#,
            r#"rpc_call_duration_seconds_count{method="a\"b\\c\n"} 3"#,
        ];
        assert_eq!(page.into_text().lines().collect::<Vec<_>>(), want);
    }

    #[test]
    fn writes_help_and_type_before_samples() {
        let mut page = MetricsPage::default();
        page.single("process_max_fds", f64::INFINITY);
        let text = page.into_text();
        assert!(
            text.starts_with("# HELP process_max_fds ")
                && text.ends_with("# TYPE process_max_fds gauge\nprocess_max_fds +Inf\n"),
            "{text}"
        );
    }
}
