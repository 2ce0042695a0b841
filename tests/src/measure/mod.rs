//! What the benches measure with: a process's own clock and memory, quantiles, and a table within a page.

pub mod machine;
pub mod page;
pub mod process;
pub mod quantile;
