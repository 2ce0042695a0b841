//! Starts the rollouts of a replica.

use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool, mpsc};

use pointwork_core::rollout::Uid;
use pointwork_policy::SlotName;

use super::slot_state::SlotRolloutState;
use super::state::{RolloutState, Rollouts};
use super::store::RolloutStore;
use super::{follow, prepare};
use crate::cluster::Replicas;
use crate::config::{Config, PolicySource};
use crate::policies::slots::Policies;

impl Rollouts {
    /// Starts to follow the documents in Redis, if `policy.source` says so.
    ///
    /// # Errors
    /// When the thread that prepares policies cannot be started.
    pub fn start(config: &Config, policies: &Arc<Policies>, replicas: &Arc<Replicas>) -> anyhow::Result<Self> {
        let redis = replicas.redis().filter(|_| config.policy.source == PolicySource::Cluster);
        let Some(redis) = redis else { return Ok(Self(None)) };
        let me = Uid::from(replicas.cluster().uid());
        let timeout_ms = config.policy.rollout_timeout_ms.get().into();
        let (jobs, received) = mpsc::channel();
        let state = Arc::new(RolloutState {
            slots: SlotName::ALL.map(|_| Mutex::new(SlotRolloutState::new(me.clone(), timeout_ms))),
            me,
            store: RolloutStore::new(redis.clone(), &config.redis.channel_prefix),
            policies: policies.clone(),
            replicas: replicas.clone(),
            jobs,
            news: replicas.policy_news(),
            announced: Mutex::default(),
            is_away: AtomicBool::new(false),
            was_read: AtomicBool::new(false),
        });
        prepare::start(&state, received)?;
        follow::start(&state);
        Ok(Self(Some(state)))
    }
}
