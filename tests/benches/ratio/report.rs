//! The page's part that a run writes: on what it was measured, and two tables.

use anyhow::Result;
use pointwork_tests::measure::{machine, machine::Machine, page};

use crate::{
    alone::{self, Line},
    figures::{self, Figures},
    options::Options,
};

/// As it is written between the marks, and printed. `others`: the share of the machine that other programs took.
pub(crate) fn report(options: &Options, figures: &Figures, lines: &[Line], others: f64) -> Result<String> {
    let Machine { cores, cpu, kernel } = Machine::here()?;
    let mut text = format!(
        "Measured {} on {cores} cores ({cpu}), Linux {kernel}, of which other programs took {:.0} %; Node {}, Redis {}; each kind had its \
         turn {} times; the host was built with {}.\n",
        machine::today()?,
        100.0 * others,
        machine::version("node")?,
        machine::version("redis-server")?,
        options.rounds,
        options.profile,
    );
    let rows = figures.rows();
    if !rows.is_empty() {
        text += &format!("\n{}", page::table(&figures::HEAD, &rows));
    }
    if !lines.is_empty() {
        let cells: Vec<_> = lines.iter().map(Line::cells).collect();
        text += &format!("\n{}", page::table(&alone::HEAD, &cells));
    }
    Ok(text)
}
