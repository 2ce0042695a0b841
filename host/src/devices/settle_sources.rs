//! Which decision answered each question to `settle`: the machine names the question alone in what it reports later.

use std::collections::VecDeque;

use pointwork_core::devices::OpId;

use crate::policies::slots::DecisionSource;

/// How many are remembered. What follows from one comes within a few steps of the device, or never.
const SOURCES_MAX: usize = 1_024;

/// The last questions, oldest first.
#[derive(Debug, Default)]
pub(super) struct SettleSources(VecDeque<(OpId, DecisionSource)>);

impl SettleSources {
    /// A question was answered.
    pub(super) fn note(&mut self, ask: OpId, source: DecisionSource) {
        if self.0.len() == SOURCES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((ask, source));
    }

    /// Where the answer to a question was from.
    pub(super) fn of(&self, ask: OpId) -> Option<DecisionSource> {
        self.0.iter().rev().find(|(asked, _)| *asked == ask).map(|(_, source)| *source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_remembered() {
        let mut asked = SettleSources::default();
        let source = |decision| DecisionSource { decision, generation: None };
        for number in 0..=SOURCES_MAX as u64 {
            asked.note(OpId(number), source(number + 7));
        }
        assert_eq!(asked.0.len(), SOURCES_MAX);
        assert_eq!(asked.of(OpId(0)), None, "it made room");
        assert_eq!(asked.of(OpId(1)), Some(source(8)));
        assert_eq!(asked.of(OpId(SOURCES_MAX as u64)), Some(source(SOURCES_MAX as u64 + 7)));
    }
}
