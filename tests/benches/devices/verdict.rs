//! The bounds, the figures that are printed, and whether the ones keep within the others.

use std::fmt;

use crate::{common::ratio, counts::Counts, fleet::Arrivals};

/// A filter on the command line is compared with it, as criterion does with the names of its benches.
pub(crate) const NAME: &str = "devices/restart";
/// So many failures of a kind are shown; all are counted.
const FAILURES_SHOWN_MAX: usize = 5;
/// The host without a client has 34 to 46 MiB, most of it the policies' and their compiler's.
const RESIDENT_FIXED_KIB: u64 = 64 << 10;
/// A socket that is idle has 20 (the bench `idle`); what its device brought and its entries in the machine's tables make it 23, and
/// after a storm 25. The rest is to spare.
const DEVICE_KIB_MAX: u64 = 28;

/// Whether all has held so far.
#[derive(Default)]
pub(crate) struct Verdict {
    broken: usize,
}

impl Verdict {
    pub(crate) fn holds(&self) -> bool {
        self.broken == 0
    }

    /// Prints a figure.
    pub(crate) fn note(&self, what: &str, figure: fmt::Arguments<'_>) {
        println!("{:<40} {figure}", format!("{NAME}/{what}"));
    }

    /// All of so many devices are registered.
    pub(crate) fn all_registered(&mut self, what: &str, arrivals: &Arrivals, number: usize) {
        let Arrivals { took, last, failures } = arrivals;
        let registered = took.len();
        let mut took = took.clone();
        took.sort_unstable();
        let [half_ms, most_ms, all_ms] = [50, 99, 100]
            .map(|percent| took.get((registered * percent / 100).saturating_sub(1)).map_or(0, |took| took.as_millis()));
        self.note(
            what,
            format_args!(
                "{registered} of {number}, the last after {:.2} s; half took {half_ms} ms at most, 99 % {most_ms}, all {all_ms}",
                last.as_secs_f64()
            ),
        );
        self.check(registered == number, what, "not all were registered");
        self.show(what, failures);
    }

    /// No device that was registered lost its session.
    pub(crate) fn none_lost(&mut self, what: &str, lost: Vec<String>) {
        self.check(lost.is_empty(), what, "devices lost their connections");
        self.show(what, &lost);
    }

    /// The host accepted so many, each once, and refused none.
    pub(crate) fn counts(&mut self, what: &str, counts: Counts, accepted: usize) {
        self.note(&format!("{what}, by the host"), format_args!("{counts:?}"));
        let expected = Counts { accepted, ..Counts::default() };
        self.check(counts == expected, what, "the host decided otherwise than to accept each of them once");
    }

    /// The host's memory with so many devices that are connected.
    pub(crate) fn resident(&mut self, what: &str, before_kib: u64, resident_kib: u64, devices: usize) {
        let devices = u64::try_from(devices).unwrap_or(u64::MAX);
        let each_kib = ratio(resident_kib.saturating_sub(before_kib), devices);
        let max_kib = RESIDENT_FIXED_KIB + devices * DEVICE_KIB_MAX;
        self.note(
            what,
            format_args!(
                "{resident_kib} KiB, {before_kib} KiB without; {each_kib:.1} KiB a device of {devices}; at most {max_kib} KiB"
            ),
        );
        self.check(resident_kib <= max_kib, what, "that is too much");
    }

    fn check(&mut self, holds: bool, what: &str, otherwise: &str) {
        if !holds {
            self.broken += 1;
            println!("{NAME}/{what}: BROKEN: {otherwise}");
        }
    }

    fn show(&self, what: &str, failures: &[String]) {
        if !failures.is_empty() {
            println!("{NAME}/{what}: {} failures, such as", failures.len());
        }
        for failure in failures.iter().take(FAILURES_SHOWN_MAX) {
            println!("{NAME}/{what}: {failure}");
        }
    }
}
