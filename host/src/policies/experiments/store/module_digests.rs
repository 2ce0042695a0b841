//! Sorts the digests of modules by whether an experiment needs them.

use pointwork_core::experiments::{Arm, ArmModule, Experiments as ExperimentList, Slot};

/// The most stored modules that no experiment needs. The oldest ones are removed first.
pub(super) const UNNEEDED_MAX: usize = 16;

/// The digests of the modules that experiments name.
pub(super) struct ModuleDigests<'a> {
    /// Those of experiments that are not over.
    pub(super) needed: Vec<&'a str>,
    /// Those of the last promoted treatment of each slot, which serve on replicas that start later.
    pub(super) promoted: Vec<&'a str>,
    pub(super) others: Vec<&'a str>,
}

impl<'a> ModuleDigests<'a> {
    pub(super) fn of(list: &'a ExperimentList) -> Self {
        let all = |is_over: bool| {
            let experiments = list.list.iter().filter(move |experiment| experiment.status.is_over() == is_over);
            experiments.flat_map(|experiment| &experiment.arms).filter_map(digest)
        };
        let needed: Vec<&str> = all(false).collect();
        let promoted = Slot::ALL.into_iter().filter_map(|slot| list.promotion(slot)?.promoted_arm());
        let promoted: Vec<&str> = promoted.filter_map(digest).filter(|digest| !needed.contains(digest)).collect();
        let others = all(true).filter(|digest| !needed.contains(digest) && !promoted.contains(digest)).collect();
        Self { needed, promoted, others }
    }
}

fn digest(arm: &Arm) -> Option<&str> {
    match &arm.module {
        ArmModule::Digest(digest) => Some(digest),
        ArmModule::Current | ArmModule::Native => None,
    }
}
