//! Questions and verdicts in words.

use pointwork_policy::{Grace, Presence, Settle, Target, presence, record::Recorded, settle, target::Choice};
use serde::Serialize;

/// Of a question that is shown, in bytes; a line of its file has the rest.
const SHOWN_BYTES_MAX: usize = 400;

/// A slot whose verdicts have kinds.
pub(crate) trait Told: Recorded {
    /// What follows a kind when two verdicts of it differ.
    const OTHER: &'static str = ", other span";

    /// The kind of a verdict.
    fn kind(verdict: &Self::Verdict) -> &'static str;
}

impl Told for Target {
    const OTHER: &'static str = ", another one";

    fn kind(verdict: &Choice) -> &'static str {
        match verdict {
            Choice::Pick(_) => "pick",
            Choice::Reject => "reject",
        }
    }
}

impl Told for Grace {
    fn kind(verdict: &u32) -> &'static str {
        match verdict {
            0 => "fail now",
            _ => "wait",
        }
    }
}

impl Told for Presence {
    fn kind(verdict: &presence::Verdict) -> &'static str {
        match verdict {
            presence::Verdict::Abort => "abort",
            presence::Verdict::Hold(_) => "hold",
        }
    }
}

impl Told for Settle {
    fn kind(verdict: &settle::Verdict) -> &'static str {
        match verdict {
            settle::Verdict::Accept => "accept",
            settle::Verdict::Refuse(_) => "refuse",
            settle::Verdict::Beside(_) => "beside",
        }
    }
}

/// A question or a verdict as JSON, cut to what is read at a glance.
pub(crate) fn one_line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    if text.len() > SHOWN_BYTES_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text.push('…');
    }
    text
}
