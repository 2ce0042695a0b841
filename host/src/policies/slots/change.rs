//! What serves a slot, changed: load, prepare and switch, undo, quarantine, retry, arms.

use std::sync::Arc;

use pointwork_policy::{
    ArmError, Digest, Grace, LoadError, LoadReport, Prepared, Presence, Settle, SlotName, SlotStatus, Standing, Target,
    UndoError, contract::Info,
};

use super::Policies;

/// The same for each slot.
macro_rules! each {
    ($policies:expr, $slot:expr, |$policy:ident| $body:expr) => {
        match $slot {
            SlotName::Target => {
                let $policy = &$policies.target;
                $body
            }
            SlotName::Grace => {
                let $policy = &$policies.grace;
                $body
            }
            SlotName::Presence => {
                let $policy = &$policies.presence;
                $body
            }
            SlotName::Settle => {
                let $policy = &$policies.settle;
                $body
            }
        }
    };
}

pub(super) use each;

/// A policy that could serve its slot at once.
pub struct PreparedPolicy {
    prepared: AnyPrepared,
    /// Module and configuration, when they are to be kept over a restart.
    source: Option<(Vec<u8>, String)>,
}

enum AnyPrepared {
    Target(Prepared<Target>),
    Grace(Prepared<Grace>),
    Presence(Prepared<Presence>),
    Settle(Prepared<Settle>),
}

impl PreparedPolicy {
    /// The slot that it is for.
    pub fn slot(&self) -> SlotName {
        match self.prepared {
            AnyPrepared::Target(_) => SlotName::Target,
            AnyPrepared::Grace(_) => SlotName::Grace,
            AnyPrepared::Presence(_) => SlotName::Presence,
            AnyPrepared::Settle(_) => SlotName::Settle,
        }
    }

    /// Digest of module, configuration and contract.
    pub fn digest(&self) -> Digest {
        match &self.prepared {
            AnyPrepared::Target(prepared) => prepared.digest(),
            AnyPrepared::Grace(prepared) => prepared.digest(),
            AnyPrepared::Presence(prepared) => prepared.digest(),
            AnyPrepared::Settle(prepared) => prepared.digest(),
        }
    }

    /// What the policy says of itself.
    pub fn info(&self) -> &Info {
        match &self.prepared {
            AnyPrepared::Target(prepared) => prepared.info(),
            AnyPrepared::Grace(prepared) => prepared.info(),
            AnyPrepared::Presence(prepared) => prepared.info(),
            AnyPrepared::Settle(prepared) => prepared.info(),
        }
    }
}

/// Why nothing was retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRetried {
    /// A text of which no digest can be told.
    #[error("a digest, or its first 12 digits or more, in lower case hexadecimal")]
    NoDigest,
    /// Nothing of that digest is quarantined or was undone, nor has an arm of it tripped.
    #[error("nothing by that digest is in quarantine, or was undone")]
    Unknown,
    /// A prefix of several.
    #[error("the digest is that of several, more digits are needed")]
    Ambiguous,
}

/// The least that is taken for the beginning of a digest.
const PREFIX_DIGITS_MIN: usize = 12;

impl Policies {
    /// Loads a module with its configuration into a slot; false when it was refused. A failure leaves what serves serving; it
    /// is logged, counted and shown in the slot's status. Compiles, and writes to `policy.state_dir`: not for an async worker.
    pub fn load(&self, slot: SlotName, module: &[u8], config: &str) -> bool {
        match each!(self, slot, |policy| policy.load(module, config)) {
            Ok(report) => {
                switched(slot, &report);
                self.keep(slot, &report.digest, module, config);
                true
            }
            Err(error) => {
                refused(slot, &error);
                false
            }
        }
    }

    /// All of a load but the switch. Takes as long as a compilation: not for an async worker.
    ///
    /// # Errors
    /// As a load; the error is for the caller alone.
    pub fn prepare(&self, slot: SlotName, module: &[u8], config: &str) -> Result<PreparedPolicy, LoadError> {
        let prepared = match slot {
            SlotName::Target => AnyPrepared::Target(self.target.prepare(module, config)?),
            SlotName::Grace => AnyPrepared::Grace(self.grace.prepare(module, config)?),
            SlotName::Presence => AnyPrepared::Presence(self.presence.prepare(module, config)?),
            SlotName::Settle => AnyPrepared::Settle(self.settle.prepare(module, config)?),
        };
        let source = self.state.is_some().then(|| (module.to_vec(), config.to_owned()));
        Ok(PreparedPolicy { prepared, source })
    }

    /// Has it serve its slot. With `policy.state_dir` it is written there: not for an async worker.
    ///
    /// # Errors
    /// When it was quarantined since it was prepared.
    pub fn switch(&self, policy: PreparedPolicy) -> Result<LoadReport, LoadError> {
        let (slot, digest) = (policy.slot(), policy.digest());
        let switched_to = match policy.prepared {
            AnyPrepared::Target(prepared) => self.target.switch(prepared),
            AnyPrepared::Grace(prepared) => self.grace.switch(prepared),
            AnyPrepared::Presence(prepared) => self.presence.switch(prepared),
            AnyPrepared::Settle(prepared) => self.settle.switch(prepared),
        };
        each!(self, slot, |policy| policy.note_load(digest, switched_to.as_ref().err()));
        match &switched_to {
            Ok(report) => {
                switched(slot, report);
                if let Some((module, config)) = policy.source {
                    self.keep(slot, &digest, &module, &config);
                }
            }
            Err(error) => refused(slot, error),
        }
        switched_to
    }

    /// Has it answer beside what serves its slot.
    ///
    /// # Errors
    /// When the slot has too many arms.
    pub fn set_arm(&self, arm: Arc<str>, policy: PreparedPolicy) -> Result<(), ArmError> {
        match policy.prepared {
            AnyPrepared::Target(prepared) => self.target.set_arm(arm, prepared),
            AnyPrepared::Grace(prepared) => self.grace.set_arm(arm, prepared),
            AnyPrepared::Presence(prepared) => self.presence.set_arm(arm, prepared),
            AnyPrepared::Settle(prepared) => self.settle.set_arm(arm, prepared),
        }
    }

    /// Takes an arm away; whether it was there.
    pub fn clear_arm(&self, slot: SlotName, arm: &str) -> bool {
        each!(self, slot, |policy| policy.clear_arm(arm))
    }

    /// Goes back to the generation before; beyond what this process has served, to what an earlier one kept in
    /// `policy.state_dir`, which is compiled: not for an async worker.
    ///
    /// # Errors
    /// When no good one is kept.
    pub fn undo(&self, slot: SlotName) -> Result<LoadReport, UndoError> {
        let report = match each!(self, slot, |policy| policy.undo()) {
            Ok(report) => report,
            Err(error) => self.load_kept(slot, Standing::Undone).ok_or(error)?,
        };
        self.save(slot);
        let LoadReport { generation, digest, info, .. } = &report;
        tracing::info!(%slot, generation, %digest, name = info.name, version = info.version, "policy undone: the one before serves");
        Ok(report)
    }

    /// Where the cluster says what served well before: a trip and an undo here go to none but these.
    pub(crate) fn keep_only(&self, slot: SlotName, digests: &[Digest]) {
        each!(self, slot, |policy| policy.keep_only(digests));
    }

    /// No load takes this digest from now on; true when it served and does no more.
    pub fn quarantine(&self, slot: SlotName, digest: Digest, why: &str) -> bool {
        let served = each!(self, slot, |policy| policy.quarantine(digest, why));
        if served {
            tracing::warn!(%slot, %digest, "policy quarantined: {why}");
        } else {
            tracing::info!(%slot, %digest, "policy quarantined, which does not serve here: {why}");
        }
        self.after_trip(slot, served);
        served
    }

    /// Lets a digest be loaded again and asks arms of it again; whether there was such a one.
    pub fn retry(&self, slot: SlotName, digest: &Digest) -> bool {
        let lifted = each!(self, slot, |policy| policy.retry(digest)) || self.undone(slot).contains(digest);
        if lifted {
            self.save(slot);
            tracing::info!(%slot, %digest, "policy may be loaded again");
        }
        lifted
    }

    /// The digest that is quarantined, was undone, or is a tripped arm's, and begins with these digits.
    ///
    /// # Errors
    /// When there is none, or more than one.
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

    /// What serves a slot, and how it does.
    pub fn slot_status(&self, slot: SlotName) -> SlotStatus {
        each!(self, slot, |policy| policy.status())
    }

    /// Goes back to the native rule.
    pub fn unload(&self, slot: SlotName) {
        each!(self, slot, |policy| policy.unload());
        self.save(slot);
        tracing::info!(%slot, "no policy: the native rule serves");
    }

    /// Records that a slot's files are there but could not be read; what serves goes on serving.
    pub fn note_unreadable(&self, slot: SlotName, message: &str) {
        let error = each!(self, slot, |policy| policy.note_unreadable(message));
        refused(slot, &error);
    }
}

fn switched(slot: SlotName, report: &LoadReport) {
    let LoadReport { changed, generation, digest, info } = report;
    if *changed {
        metrics::counter!("pointwork_policy_loads_total", "slot" => slot.as_str(), "result" => "ok").increment(1);
        tracing::info!(%slot, generation, %digest, name = info.name, version = info.version, "policy swapped in");
    }
}

fn refused(slot: SlotName, error: &LoadError) {
    metrics::counter!("pointwork_policy_loads_total", "slot" => slot.as_str(), "result" => error.kind()).increment(1);
    tracing::warn!(%slot, kind = error.kind(), %error, "policy not loaded: what served before, or the native rule, serves");
}
