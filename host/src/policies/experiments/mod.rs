//! Experiments: an arm for each unit, the same on every replica; what became of the units; and the guardrails that end one.
//!
//! All experiments are one value in the store (`store`), changed by compare-and-set and watched by every replica: it is read each
//! second, and at once when another replica notes that it changed it. What a change ends, pauses or weighs anew is so at once
//! (`Experiments::take_over`); the arms' modules of what runs are loaded beside that, and then decisions go to them (`running`). What
//! decisions leave behind (`outbox`) is brought to the store every half second. One replica at a time looks at the units (`evaluate`).
//! What was promoted is made to serve by each replica (`promote`).
//!
//! While the store is away the experiments go on as they were last known. A store that forgot them is told again, as long as it has
//! their modules.

mod change;
mod evaluate;
mod promote;
mod report;
mod rows;
mod show;
mod store;

use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
    time::Duration,
};

use pointwork_core::experiment::{Experiment, Experiments as Known, Module, Slot, Status};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

pub use self::{
    change::{ExperimentError, New, NewArm},
    store::StoreError,
};
use self::{
    promote::{Promotion, SlotFiles},
    store::Store,
};
use crate::{
    cluster::{Replicas, device_store::DeviceStore},
    config::Config,
    policies::{
        assignments::{Outbox, Rule, Running},
        rollout::Rollouts,
        slots::{Policies, PreparedPolicy, engine_slot},
    },
};

/// How often what decisions left behind is brought to the store.
const FLUSH: Duration = Duration::from_millis(500);
/// How often the store is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How soon an arm is loaded again that could not be.
const LOAD_AGAIN: Duration = Duration::from_secs(10);

/// The experiments, as this replica carries them out.
pub struct Experiments {
    store: Store,
    policies: Arc<Policies>,
    replicas: Arc<Replicas>,
    devices: Arc<DeviceStore>,
    rollouts: OnceLock<Rollouts>,
    outbox: Arc<Outbox>,
    /// The operator's settle window.
    window_ms: u32,
    /// The engine's ping interval.
    silence_ms: u32,
    /// What lies in the policy directory.
    files: SlotFiles,
    state: Mutex<State>,
    /// Held while promotions are carried out.
    promoting: tokio::sync::Mutex<()>,
    /// Held while what the store says is carried out.
    carrying_out: tokio::sync::Mutex<()>,
    /// Held while arms are loaded, which takes as long as their modules are compiled.
    loading: tokio::sync::Mutex<()>,
    /// There may be arms to load.
    to_load: Notify,
}

#[derive(Default)]
struct State {
    /// As the store had them last; `None` before it was read.
    known: Option<Known>,
    /// By the engine's name of an arm: its digest.
    loaded: BTreeMap<Arc<str>, Box<str>>,
    /// By the engine's name of an arm: why it could not be loaded, and when.
    failed: BTreeMap<Arc<str>, (String, Instant)>,
    /// What is wrong with the store.
    error: Option<String>,
    /// Units that found no room in the store.
    refused: u64,
    /// What became of promotions here, by experiment.
    promoted: BTreeMap<String, Promotion>,
    /// The version of the experiments when promotions were first looked at.
    first_version: Option<u64>,
}

impl Experiments {
    /// The experiments of a replica. Nothing happens before [`Experiments::start`].
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(
        config: &Config,
        policies: Arc<Policies>,
        replicas: Arc<Replicas>,
        devices: Arc<DeviceStore>,
    ) -> std::io::Result<Arc<Self>> {
        let store = match replicas.redis() {
            Some(redis) => Store::redis(redis.clone(), &config.redis.channel_prefix),
            None => Store::local(config.policy.state_dir.clone()),
        };
        Ok(Arc::new(Self {
            store,
            outbox: Outbox::start()?,
            policies,
            replicas,
            devices,
            rollouts: OnceLock::new(),
            window_ms: config.device.settle_ms.get(),
            silence_ms: config.listen.ping_interval_ms.get(),
            files: SlotFiles::of(&config.policy),
            state: Mutex::default(),
            promoting: tokio::sync::Mutex::default(),
            carrying_out: tokio::sync::Mutex::default(),
            loading: tokio::sync::Mutex::default(),
            to_load: Notify::new(),
        }))
    }

    /// Begins to carry the experiments out, for as long as the current runtime.
    pub fn start(self: &Arc<Self>, rollouts: &Rollouts) {
        let _ = self.rollouts.set(rollouts.clone());
        tokio::spawn(self.clone().watch());
        tokio::spawn(self.clone().bring());
        tokio::spawn(self.clone().load());
        tokio::spawn(evaluate::run(self.clone()));
        tokio::spawn(promote::run(self.clone()));
    }

    async fn watch(self: Arc<Self>) {
        loop {
            self.look().await;
            self.to_load.notify_one();
            tokio::select! {
                () = sleep(LOOK) => {}
                () = self.replicas.experiments_news() => {}
            }
        }
    }

    async fn bring(self: Arc<Self>) {
        loop {
            sleep(FLUSH).await;
            self.flush().await;
        }
    }

    async fn load(self: Arc<Self>) {
        loop {
            self.to_load.notified().await;
            self.load_arms().await;
        }
    }

    /// Reads the store and carries out what is new.
    async fn look(&self) {
        let read = self.store.read().await;
        let error = read.as_ref().err().map(ToString::to_string);
        // At the start Redis is not connected yet; if it stays away, that is said by those who connect.
        let is_starting = matches!(read, Err(StoreError::Away(_))) && self.state.lock().known.is_none();
        if let Some(error) =
            error.as_ref().filter(|error| !is_starting && self.state.lock().error.as_ref() != Some(*error))
        {
            tracing::warn!(%error, "experiments cannot be read: they go on as they were");
        }
        self.state.lock().error = error;
        let Ok(read) = read else { return };
        let known = self.state.lock().known.clone().filter(|known| known.version > read.version);
        match known {
            // It was restarted with an older state, or none.
            Some(known) => match self.store.swap(read.version, &known).await {
                Ok(true) => tracing::warn!("the store had forgotten experiments and was told of them"),
                Ok(false) => {}
                Err(error) => {
                    // Their modules are lost with it: it is the truth then.
                    tracing::warn!(%error, "the store has forgotten experiments");
                    self.take_over(read).await;
                }
            },
            None => self.take_over(read).await,
        }
    }

    /// Does what follows from a change that was made here: when it returns, decisions go to the arms. Promotions: see `promote`.
    async fn carry_out(&self, known: Known) {
        self.take_over(known).await;
        self.load_arms().await;
    }

    /// Does at once what follows from a state of the experiments and needs no module that is not loaded: what has ended or is
    /// paused decides no more, and weights change.
    async fn take_over(&self, known: Known) {
        let _one_at_a_time = self.carrying_out.lock().await;
        {
            let mut state = self.state.lock();
            let is_old = state.known.as_ref().is_some_and(|before| before.version > known.version && known.version > 0);
            if is_old {
                return;
            }
            state.known = Some(known.clone());
        }
        self.assign(&known);
        self.clear_arms(&needed(&known));
    }

    /// Has decisions go to the arms of what runs, of whatever experiment all arms are loaded.
    fn assign(&self, known: &Known) {
        for slot in Slot::ALL {
            let running = known.running(slot).and_then(|experiment| Some((experiment, self.rules(experiment)?)));
            let was = self.policies.assignments().running(slot);
            let next = running.map(|(experiment, rules)| match &was {
                Some(was) if was.experiment == *experiment && was.rules == rules => was.clone(),
                Some(was) => Arc::new(was.succeeded_by(experiment.clone(), rules)),
                None => Arc::new(Running::new(experiment.clone(), rules, self.outbox.clone())),
            });
            self.policies.assignments().set(slot, next);
        }
    }

    /// Loads the arms of what runs that are not loaded yet, and has decisions go to them.
    async fn load_arms(&self) {
        let _one_at_a_time = self.loading.lock().await;
        let known = self.state.lock().known.clone().unwrap_or_default();
        for experiment in known.list.iter().filter(|experiment| experiment.status == Status::Running) {
            let mut is_news = false;
            for arm in 0..experiment.arms.len() {
                is_news |= self.load_arm(experiment, arm).await;
            }
            if is_news {
                let _not_while_it_changes = self.carrying_out.lock().await;
                // Which may have been changed meanwhile.
                let known = self.state.lock().known.clone().unwrap_or_default();
                self.assign(&known);
            }
        }
    }

    /// Has the engine hold an arm's module, if it has one of its own; whether it was loaded now, or failed to be.
    async fn load_arm(&self, experiment: &Experiment, arm: usize) -> bool {
        let Some((name, digest)) = own_module(experiment, arm) else { return false };
        {
            let state = self.state.lock();
            let is_loaded = state.loaded.get(&name).is_some_and(|loaded| **loaded == *digest);
            let has_just_failed = state.failed.get(&name).is_some_and(|(_, at)| at.elapsed() < LOAD_AGAIN);
            if is_loaded || has_just_failed {
                return false;
            }
        }
        match self.prepared(experiment.slot, digest).await {
            Ok(None) => return false,
            Ok(Some(prepared)) => match self.policies.set_arm(name.clone(), prepared) {
                Ok(()) => {
                    tracing::info!(experiment = experiment.name, arm = &*name, digest, "an arm is loaded");
                    let mut state = self.state.lock();
                    state.failed.remove(&name);
                    state.loaded.insert(name.clone(), digest.into());
                }
                Err(error) => self.note_failed(&name, error.to_string()),
            },
            Err(why) => self.note_failed(&name, why),
        }
        true
    }

    fn note_failed(&self, name: &Arc<str>, why: String) {
        let mut state = self.state.lock();
        if state.failed.get(name).is_none_or(|(before, _)| *before != why) {
            tracing::warn!(arm = &**name, why, "an arm cannot be loaded: its decisions count as its failures");
        }
        state.failed.insert(name.clone(), (why, Instant::now()));
    }

    /// A module of the store, ready to decide; `None` while the store is away.
    async fn prepared(&self, slot: Slot, digest: &str) -> Result<Option<PreparedPolicy>, String> {
        let module = match self.store.module(digest).await {
            Ok(Some(module)) => module,
            Ok(None) => return Err("its module is not stored any more".to_owned()),
            Err(StoreError::Away(_)) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let policies = self.policies.clone();
        let prepare = move || policies.prepare(engine_slot(slot), &module.wasm, &module.config);
        match tokio::task::spawn_blocking(prepare).await {
            Ok(Ok(prepared)) if prepared.digest().to_string() == *digest => Ok(Some(prepared)),
            Ok(Ok(_)) => Err("what is stored has another digest: it was written by another version".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What decides in each arm; `None` while one is yet to be loaded: the experiment has not begun here.
    fn rules(&self, experiment: &Experiment) -> Option<Vec<Rule>> {
        let state = self.state.lock();
        let rule = |arm: usize| match &experiment.arms.get(arm)?.module {
            Module::Current => Some(Rule::Current),
            Module::Native => Some(Rule::Native),
            Module::Digest(digest) => {
                let name = engine_name(experiment, arm)?;
                if state.loaded.get(&name) == Some(digest) {
                    Some(Rule::Loaded(name))
                } else {
                    state.failed.contains_key(&name).then_some(Rule::Failed)
                }
            }
        };
        (0..experiment.arms.len()).map(rule).collect()
    }

    /// Takes arms out of the engine that no experiment needs any more.
    fn clear_arms(&self, needed: &BTreeSet<Arc<str>>) {
        let mut state = self.state.lock();
        state.failed.retain(|name, _| needed.contains(name));
        let gone: Vec<Arc<str>> = state.loaded.keys().filter(|name| !needed.contains(*name)).cloned().collect();
        for name in gone {
            state.loaded.remove(&name);
            for slot in Slot::ALL {
                self.policies.clear_arm(engine_slot(slot), &name);
            }
        }
    }

    /// Brings what decisions left behind to the store. Devices that it does not answer for are brought again, since that changes nothing
    /// if it took them; other things that it does not take are lost, and units of them counted.
    async fn flush(&self) {
        let waiting = self.outbox.take();
        let mut refused = 0;
        for (id, units) in waiting.exposed {
            match self.store.expose(&id, &units).await {
                Ok(count) => refused += count,
                Err(_) => units.iter().for_each(|unit| self.outbox.expose(&id, unit)),
            }
        }
        for (id, users) in &waiting.users {
            refused += self.store.add_users(id, users).await.unwrap_or(users.len() as u64);
        }
        for (id, cells) in waiting.cells {
            let cells: Vec<_> = cells.into_iter().collect();
            if let Err(error) = self.store.add_cells(&id, &cells).await {
                tracing::debug!(%error, "what shadows said is lost");
            }
        }
        if refused > 0 {
            metrics::counter!("pointwork_experiment_units_lost_total").increment(refused);
            self.state.lock().refused += refused;
        }
    }
}

/// What the engine calls the arms that it is to hold: those of what runs.
fn needed(known: &Known) -> BTreeSet<Arc<str>> {
    let running = known.list.iter().filter(|experiment| experiment.status == Status::Running);
    let names = |experiment: &Experiment| -> Vec<Arc<str>> {
        let arms = 0..experiment.arms.len();
        arms.filter_map(|arm| own_module(experiment, arm)).map(|(name, _)| name).collect()
    };
    running.flat_map(names).collect()
}

/// The engine's name of an arm that has a module of its own, and its digest.
fn own_module(experiment: &Experiment, arm: usize) -> Option<(Arc<str>, &str)> {
    let Module::Digest(digest) = &experiment.arms.get(arm)?.module else { return None };
    Some((engine_name(experiment, arm)?, digest))
}

/// What the engine calls an arm: `<experiment>/<arm>`.
fn engine_name(experiment: &Experiment, arm: usize) -> Option<Arc<str>> {
    Some(format!("{}/{}", experiment.name, experiment.arms.get(arm)?.name).into())
}
