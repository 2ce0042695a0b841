//! Pointwork beside the field's own server: two replicas of each kind on one Redis, in turns, under the same load; and what only
//! Pointwork has.
//!
//! Servers and Redis are the real programs in processes of their own, and their CPU time is the kernel's count of it. Every call
//! and delivery is counted: one that fails ends the program.
#![allow(missing_docs, clippy::print_stdout, clippy::cast_precision_loss)]

mod alone;
#[allow(dead_code, reason = "its client costs more than a load tool may")]
#[path = "../common/mod.rs"]
mod common;
mod figures;
mod load;
mod options;
#[path = "../devices/redis.rs"]
mod redis;
mod report;
mod servers;
mod turns;

use anyhow::{Result, ensure};
use clap::Parser;
use pointwork_tests::measure::{machine::Ticks, page};

use figures::Figures;
use options::Options;
use redis::Redis;

fn main() -> Result<()> {
    let options = Options::parse();
    if options.is_for_another() {
        return Ok(());
    }
    // One thread: it leaves as much of the machine to the servers as it can.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    let redis = Redis::start().await?;
    if let Some(seconds) = options.hold {
        return turns::hold(options, &redis, seconds).await;
    }
    let before = Ticks::now()?;
    let mut figures = Figures::default();
    turns::take(options, &redis, &mut figures).await?;
    let lines = alone::measure(options, &redis, &figures).await?;
    // It counts as this program's once it has ended.
    drop(redis);
    let report = report::report(options, &figures, &lines, Ticks::now()?.others_since(before))?;
    println!("\n{report}");
    if options.smoke {
        return written_somewhere(&report);
    }
    if let Some(path) = options.write.as_ref().filter(|_| options.is_whole()) {
        page::rewrite(path, &report)?;
        println!("written to {}", path.display());
    }
    Ok(())
}

/// Whether the report could be written to a page; no page that anybody reads is told the figures of a moment.
fn written_somewhere(report: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("page.md");
    std::fs::write(&path, format!("{}\n{}\n", page::BEGIN, page::END))?;
    page::rewrite(&path, report)?;
    ensure!(std::fs::read_to_string(&path)?.contains(report.trim_end()), "the page lacks what was written");
    Ok(())
}
