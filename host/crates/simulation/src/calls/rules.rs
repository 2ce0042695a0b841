//! Defines the three rules that answer the questions of a call machine. Policies can take the place of the native
//! rules.

use pointwork_core::decisions::rules;
use pointwork_core::decisions::{Absence, Call, Candidate, Choice, Doubt, Verdict};

/// The time and the random bits that a policy gets for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleMoment {
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// 64 random bits, from the seed of the world.
    pub seed: u64,
}

/// Answers the machines' questions.
///
/// The auditor demands that `judge` gives no call up for the mere silence of a replica, unless
/// [`Rules::trusts_silence`]. It also demands that a daemon that may hand in its result has the time of
/// [`Rules::resume_ms`].
pub trait Rules: Sync {
    /// Which candidate gets the call.
    fn choose(&self, at: RuleMoment, user: &str, call: &Call, candidates: &[Candidate]) -> Choice;

    /// For how many milliseconds a call is held that found nobody.
    fn wait(&self, at: RuleMoment, user: &str, call: &Call, absence: &Absence) -> u32;

    /// Whether a call whose target is in doubt goes on waiting.
    fn judge(&self, at: RuleMoment, user: &str, call: &Call, doubt: &Doubt) -> Verdict;

    /// How long a daemon that may hand in its result has to come back, in milliseconds. Once it is back it has no
    /// limit. `None` if the rules promise nothing of that kind.
    fn resume_ms(&self) -> Option<u32>;

    /// Whether it may give a call up because the replica of its target is silent.
    fn trusts_silence(&self) -> bool {
        false
    }
}

/// The native rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Native {
    /// How long a call waits for a daemon, and a call in flight for one that may hand in its result, in milliseconds.
    pub grace_ms: u32,
    /// How soon a doubt is looked at again, in milliseconds.
    pub recheck_ms: u32,
}

impl Default for Native {
    fn default() -> Native {
        Native { grace_ms: rules::GRACE_MS, recheck_ms: rules::RECHECK_MS }
    }
}

impl Native {
    /// The default constants, or other ones in one schedule of four.
    pub fn of_seed(seed: u64) -> Native {
        match seed % 16 {
            0 => Native { grace_ms: 0, ..Native::default() },
            1 => Native { grace_ms: 700, recheck_ms: 100 },
            2 => Native { grace_ms: 25_000, ..Native::default() },
            3 => Native { recheck_ms: 10, ..Native::default() },
            _ => Native::default(),
        }
    }
}

impl Rules for Native {
    fn choose(&self, _: RuleMoment, _: &str, _: &Call, candidates: &[Candidate]) -> Choice {
        rules::target(candidates)
    }

    fn wait(&self, _: RuleMoment, _: &str, _: &Call, absence: &Absence) -> u32 {
        rules::grace(absence, self.grace_ms)
    }

    fn judge(&self, _: RuleMoment, _: &str, _: &Call, doubt: &Doubt) -> Verdict {
        rules::presence(doubt, self.recheck_ms, self.grace_ms)
    }

    fn resume_ms(&self) -> Option<u32> {
        Some(self.grace_ms)
    }
}
