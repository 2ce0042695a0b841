//! `pointwork-simulation`: prints what happens in the schedule of one seed, or runs many.

// A command line program: what it has to say goes to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::VecDeque;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Instant;

use clap::Parser;
use pointwork_simulation::{Counts, Failure, Report, STEPS, Schedule, Sweep};

/// How many of the last lines of a failing schedule are shown.
const LAST_LINES: usize = 60;
/// A sweep tells how far it has come once in so many seconds.
const PROGRESS_SECONDS: u64 = 5;

/// A cluster of the real machines on a bad day, from a seed.
#[derive(Parser)]
#[command(name = "cargo xtask sim")]
struct Arguments {
    /// Plays this seed and tells its story.
    #[arg(long, value_name = "SEED", required_unless_present = "seeds", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Plays all seeds from A up to B, without B, and tells only of what fails.
    #[arg(long, value_name = "A..B", value_parser = range)]
    seeds: Option<Range<u64>>,
    /// Steps of each schedule.
    #[arg(long, value_name = "N", default_value_t = STEPS)]
    steps: u32,
}

fn main() -> ExitCode {
    let Arguments { seed, seeds, steps } = Arguments::parse();
    let is_whole = match (seed, seeds) {
        (Some(seed), _) => trace(seed, steps),
        (None, Some(seeds)) => sweep(seeds, steps),
        (None, None) => Ok(true),
    };
    match is_whole {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the trace of a seed. Whether every invariant held.
fn trace(seed: u64, steps: u32) -> io::Result<bool> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let report = Schedule::new(seed, steps).trace(|line| {
        if written.is_ok() {
            written = writeln!(out, "{line}");
        }
    });
    written?;
    summary(&mut out, &report, steps)?;
    out.flush()?;
    Ok(report.broken.is_none())
}

fn summary(out: &mut impl Write, report: &Report, steps: u32) -> io::Result<()> {
    writeln!(out)?;
    table(out, "how calls ended", &report.ends)?;
    table(out, "what happened", &report.faults)?;
    match &report.broken {
        None => writeln!(out, "{} steps: every invariant holds", report.steps),
        Some(violation) => writeln!(out, "step {} of {steps} breaks {violation}", report.steps),
    }
}

fn table(out: &mut impl Write, head: &str, counts: &Counts) -> io::Result<()> {
    writeln!(out, "{head}:")?;
    counts.iter().try_for_each(|(what, count)| writeln!(out, "{count:>10}  {what}"))
}

/// Sweeps over seeds. Whether every invariant held with all of them.
fn sweep(seeds: Range<u64>, steps: u32) -> io::Result<bool> {
    let threads = available_parallelism()?.get();
    let (started, reported_s) = (Instant::now(), AtomicU64::new(0));
    let all = seeds.end - seeds.start;
    let swept = Sweep { seeds, steps, threads }.run(|done| {
        let seconds = started.elapsed().as_secs();
        if reported_s.fetch_max(seconds, Ordering::Relaxed) + PROGRESS_SECONDS <= seconds {
            eprintln!("{done} of {all} schedules, {} a second", done / seconds.max(1));
        }
    });
    let mut out = io::stdout().lock();
    table(&mut out, "how calls ended", &swept.ends)?;
    table(&mut out, "what happened", &swept.faults)?;
    let seconds = started.elapsed().as_secs_f64();
    let count = swept.schedules;
    let rate = count as f64 / seconds;
    writeln!(out, "{count} schedules of {steps} steps in {seconds:.1} s, {rate:.0} a second, {threads} threads")?;
    match &swept.failure {
        None => writeln!(out, "every invariant holds")?,
        Some(failure) => show(&mut out, failure, steps)?,
    }
    Ok(swept.failure.is_none())
}

/// Plays a failing seed once more, for the end of its trace.
fn show(out: &mut impl Write, failure: &Failure, steps: u32) -> io::Result<()> {
    let Failure { seed, violation } = failure;
    let mut last: VecDeque<String> = VecDeque::new();
    if violation.invariant != "no-panic" {
        Schedule::new(*seed, steps).trace(|line| {
            if last.len() == LAST_LINES {
                last.pop_front();
            }
            last.push_back(line.to_owned());
        });
    }
    writeln!(out, "\nthe end of seed {seed}:")?;
    last.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "\nseed {seed} breaks {violation}\nrepeat: cargo xtask sim --seed {seed} --steps {steps}")
}

/// `A..B`, with A below B.
fn range(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    parsed.filter(|seeds: &Range<u64>| !seeds.is_empty()).ok_or_else(|| "expected A..B, such as 0..1000".to_owned())
}
