//! Policies of a cluster: what is pushed to one replica is prepared by all, and then served by all, or by none.
//!
//! What is decided is decided by the machine of `pointwork-core` ([`Follower`](pointwork_core::rollout::Follower)); here it is fed from
//! Redis (`store`) and its steps are carried out (`follow`). Redis away: what serves goes on serving.

mod codec;
mod follow;
mod place;
mod prepare;
mod status;
mod store;
mod verbs;

use parking_lot::Mutex;
use std::sync::{Arc, atomic::AtomicBool, mpsc};
use std::time::Duration;

use pointwork_core::rollout::{Report, Uid};
use pointwork_policy::SlotName;
use tokio::sync::Notify;

pub use self::status::SlotRollout;
pub use self::store::{Module, StoreError};
pub use self::verbs::{Changed, RolloutError};

use self::place::Place;
use self::prepare::Job;
use self::store::Store;
use crate::cluster::Replicas;
use crate::config::{Config, PolicySource};
use crate::policies::slots::Policies;

/// How long saying goodbye may take.
const LEAVE_MAX: Duration = Duration::from_millis(500);

/// The rollouts of all slots, where Redis says what serves; nothing where the policy directory does.
#[derive(Clone)]
pub struct Rollouts(Option<Arc<Shared>>);

struct Shared {
    me: Uid,
    store: Store,
    policies: Arc<Policies>,
    replicas: Arc<Replicas>,
    /// In the order of [`SlotName::ALL`].
    places: [Mutex<Place>; SlotName::ALL.len()],
    jobs: mpsc::Sender<Job>,
    news: Arc<Notify>,
    /// What the others were last told to look at.
    told: Mutex<Vec<(SlotName, Report)>>,
    /// Redis did not answer the last look.
    is_away: AtomicBool,
    /// Redis was read once; before that it is not connected yet, and if it stays away that is said by who connects.
    has_looked: AtomicBool,
}

impl Rollouts {
    /// Follows the pointers in Redis from here on, if `policy.source` says so.
    ///
    /// # Errors
    /// When the thread that prepares policies cannot be started.
    pub fn start(config: &Config, policies: &Arc<Policies>, replicas: &Arc<Replicas>) -> anyhow::Result<Self> {
        let redis = replicas.redis().filter(|_| config.policy.source == PolicySource::Cluster);
        let Some(redis) = redis else { return Ok(Self(None)) };
        let me = Uid::from(replicas.cluster().uid());
        let timeout_ms = config.policy.rollout_timeout_ms.get().into();
        let (jobs, received) = mpsc::channel();
        let shared = Arc::new(Shared {
            places: SlotName::ALL.map(|_| Mutex::new(Place::new(me.clone(), timeout_ms))),
            me,
            store: Store::new(redis.clone(), &config.redis.channel_prefix),
            policies: policies.clone(),
            replicas: replicas.clone(),
            jobs,
            news: replicas.policy_news(),
            told: Mutex::default(),
            is_away: AtomicBool::new(false),
            has_looked: AtomicBool::new(false),
        });
        prepare::start(&shared, received)?;
        follow::start(&shared);
        Ok(Self(Some(shared)))
    }

    /// Who says what serves.
    #[must_use]
    pub fn source(&self) -> PolicySource {
        if self.0.is_some() { PolicySource::Cluster } else { PolicySource::Directory }
    }

    /// Why this replica does not serve yet what the cluster does; `None` once it did.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let shared = self.0.as_ref()?;
        SlotName::ALL.into_iter().find_map(|slot| shared.place(slot).lock().missing(slot))
    }

    /// Whether there is a policy of the cluster that this replica should prepare or serve, and cannot.
    pub(crate) fn is_refused(&self, slot: SlotName) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.place(slot).lock().follower.report().error.is_some())
    }

    /// Tells the others that this replica is gone.
    pub async fn leave(&self) {
        let Some(shared) = &self.0 else { return };
        if !matches!(tokio::time::timeout(LEAVE_MAX, shared.store.leave(&shared.me)).await, Ok(Ok(()))) {
            tracing::debug!("what this replica reported of policies stays in Redis for a while");
        }
    }
}

impl Shared {
    fn place(&self, slot: SlotName) -> &Mutex<Place> {
        let at = SlotName::ALL.iter().position(|known| *known == slot).unwrap_or(0);
        &self.places[at]
    }
}
