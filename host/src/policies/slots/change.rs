//! Changes which policy serves a slot: load, undo, quarantine, retry, unload.

use pointwork_policy::{Digest, LoadError, LoadReport, SlotName, SlotStatus, Standing, UndoError};

use super::state::{Policies, with_policy};

/// Why no digest can be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRetried {
    /// The text is not a digest, nor the beginning of one.
    #[error("a digest, or its first 12 digits or more, in lower case hexadecimal")]
    NoDigest,
    /// No such digest is quarantined, was undone, or belongs to a tripped arm.
    #[error("nothing by that digest is in quarantine, or was undone")]
    Unknown,
    /// Several digests begin with this text.
    #[error("the digest is that of several, more digits are needed")]
    Ambiguous,
}

/// The shortest text that is accepted as the beginning of a digest.
const PREFIX_DIGITS_MIN: usize = 12;

impl Policies {
    /// Loads a module with its configuration into a slot; false when it was refused. After a failure, the policy that served
    /// before goes on serving. The failure is logged, counted and shown in the slot's status. Compiles the module and writes to
    /// `policy.state_dir`: do not call it on an async worker.
    pub fn load(&self, slot: SlotName, module: &[u8], config: &str) -> bool {
        match with_policy!(self, slot, |policy| policy.load(module, config)) {
            Ok(report) => {
                note_switched(slot, &report);
                self.keep(slot, &report.digest, module, config);
                true
            }
            Err(error) => {
                note_refused(slot, &error);
                false
            }
        }
    }

    /// Goes back to the generation before. If this process has served none before, a generation that an earlier process kept in
    /// `policy.state_dir` is compiled: do not call it on an async worker.
    ///
    /// # Errors
    /// When no good generation is kept.
    pub fn undo(&self, slot: SlotName) -> Result<LoadReport, UndoError> {
        let report = match with_policy!(self, slot, |policy| policy.undo()) {
            Ok(report) => report,
            Err(error) => self.load_kept(slot, Standing::Undone).ok_or(error)?,
        };
        self.save(slot);
        let LoadReport { generation, digest, info, .. } = &report;
        tracing::info!(%slot, generation, %digest, name = info.name, version = info.version, "policy undone: the one before serves");
        Ok(report)
    }

    /// Limits the generations that a trip or an undo can go back to. Used where the cluster says which generations served well.
    pub(crate) fn keep_only(&self, slot: SlotName, digests: &[Digest]) {
        with_policy!(self, slot, |policy| policy.keep_only(digests));
    }

    /// Forbids every load of this digest from now on. Returns true when it served; then it no longer does.
    pub fn quarantine(&self, slot: SlotName, digest: Digest, why: &str) -> bool {
        let served = with_policy!(self, slot, |policy| policy.quarantine(digest, why));
        if served {
            tracing::warn!(%slot, %digest, "policy quarantined: {why}");
        } else {
            tracing::info!(%slot, %digest, "policy quarantined, which does not serve here: {why}");
        }
        self.after_trip(slot, served);
        served
    }

    /// Allows a digest to be loaded again, and arms with this digest to answer again. Returns whether there was such a digest.
    pub fn retry(&self, slot: SlotName, digest: &Digest) -> bool {
        let lifted = with_policy!(self, slot, |policy| policy.retry(digest)) || self.undone(slot).contains(digest);
        if lifted {
            self.save(slot);
            tracing::info!(%slot, %digest, "policy may be loaded again");
        }
        lifted
    }

    /// Finds the digest that begins with these digits among those that are quarantined, were undone, or belong to a tripped arm.
    ///
    /// # Errors
    /// When there is no such digest, or more than one.
    pub fn find_bad(&self, slot: SlotName, prefix: &str) -> Result<Digest, NotRetried> {
        let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if prefix.len() < PREFIX_DIGITS_MIN || !prefix.bytes().all(is_digit) {
            return Err(NotRetried::NoDigest);
        }
        let status = self.slot_status(slot);
        let quarantined = status.quarantined.iter().map(|quarantined| quarantined.digest);
        let arms = status.arms.iter().filter(|arm| arm.tripped).map(|arm| arm.digest);
        let all = quarantined.chain(arms).chain(self.undone(slot));
        let found: Vec<Digest> = all.filter(|digest| digest.to_string().starts_with(prefix)).collect();
        match found.as_slice() {
            [] => Err(NotRetried::Unknown),
            [first, rest @ ..] if rest.iter().all(|digest| digest == first) => Ok(*first),
            _ => Err(NotRetried::Ambiguous),
        }
    }

    /// The status of a slot.
    pub fn slot_status(&self, slot: SlotName) -> SlotStatus {
        with_policy!(self, slot, |policy| policy.status())
    }

    /// Goes back to the native rule.
    pub fn unload(&self, slot: SlotName) {
        with_policy!(self, slot, |policy| policy.unload());
        self.save(slot);
        tracing::info!(%slot, "no policy: the native rule serves");
    }

    /// Records that a slot's files could not be read. The policy that serves goes on serving.
    pub fn note_unreadable(&self, slot: SlotName, message: &str) {
        let error = with_policy!(self, slot, |policy| policy.note_unreadable(message));
        note_refused(slot, &error);
    }
}

pub(super) fn note_switched(slot: SlotName, report: &LoadReport) {
    let LoadReport { changed, generation, digest, info } = report;
    if *changed {
        metrics::counter!("pointwork_policy_loads_total", "slot" => slot.as_str(), "result" => "ok").increment(1);
        tracing::info!(%slot, generation, %digest, name = info.name, version = info.version, "policy swapped in");
    }
}

pub(super) fn note_refused(slot: SlotName, error: &LoadError) {
    metrics::counter!("pointwork_policy_loads_total", "slot" => slot.as_str(), "result" => error.kind()).increment(1);
    tracing::warn!(%slot, kind = error.kind(), %error, "policy not loaded: what served before, or the native rule, serves");
}
