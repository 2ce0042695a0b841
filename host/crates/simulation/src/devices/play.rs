//! Plays one world of devices to its end.

use super::report::SettleReport;
use super::rules::SettleRules;
use super::world::World;
use crate::scenario::SettleScenario;

/// Plays the world of a seed with a rule. The same arguments give the same report.
pub fn settle(scenario: &SettleScenario, seed: u64, rules: &dyn SettleRules) -> SettleReport {
    World::new(scenario, seed, rules).run()
}
