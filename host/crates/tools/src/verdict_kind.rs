//! Names the kinds of verdicts, and shortens questions and verdicts for reports.

use pointwork_policy::{Grace, Presence, Settle, Target, presence, record::Recorded, settle, target::Choice};
use serde::Serialize;

/// How many bytes of a question a report shows; its line in the file has the rest.
const SHOWN_BYTES_MAX: usize = 400;

/// A slot whose verdicts have kinds.
pub(crate) trait VerdictKind: Recorded {
    /// What follows the kind in a report when two verdicts of the same kind differ.
    const DIFFERENCE: &'static str = ", other span";

    /// The kind of a verdict.
    fn kind(verdict: &Self::Verdict) -> &'static str;
}

impl VerdictKind for Target {
    const DIFFERENCE: &'static str = ", another one";

    fn kind(verdict: &Choice) -> &'static str {
        match verdict {
            Choice::Pick(_) => "pick",
            Choice::Reject => "reject",
        }
    }
}

impl VerdictKind for Grace {
    fn kind(verdict: &u32) -> &'static str {
        if *verdict == 0 { "fail now" } else { "wait" }
    }
}

impl VerdictKind for Presence {
    fn kind(verdict: &presence::Verdict) -> &'static str {
        match verdict {
            presence::Verdict::Abort => "abort",
            presence::Verdict::Hold(_) => "hold",
        }
    }
}

impl VerdictKind for Settle {
    fn kind(verdict: &settle::Verdict) -> &'static str {
        match verdict {
            settle::Verdict::Accept => "accept",
            settle::Verdict::Refuse(_) => "refuse",
            settle::Verdict::Beside(_) => "beside",
        }
    }
}

/// A question or a verdict as JSON, cut to a length that is readable in a report.
pub(crate) fn shortened_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    if text.len() > SHOWN_BYTES_MAX {
        text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
        text.push('…');
    }
    text
}
