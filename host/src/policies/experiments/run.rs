//! Runs the experiments of a replica: watches the store, loads arms, and flushes what decisions left behind.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{evaluate, promote, state::Experiments};
use crate::policies::rollout::Rollouts;

/// How often the store is read without news.
const READ_INTERVAL: Duration = Duration::from_secs(1);
/// How often what decisions left behind is flushed to the store.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

impl Experiments {
    /// Starts the tasks of the experiments, which run for as long as the current runtime.
    pub fn start(self: &Arc<Self>, rollouts: &Rollouts) {
        let _ = self.rollouts.set(rollouts.clone());
        tokio::spawn(self.clone().watch());
        tokio::spawn(self.clone().flush_often());
        tokio::spawn(self.clone().load_on_demand());
        tokio::spawn(evaluate::run(self.clone()));
        tokio::spawn(promote::run(self.clone()));
    }

    async fn watch(self: Arc<Self>) {
        loop {
            self.refresh().await;
            self.to_load.notify_one();
            tokio::select! {
                () = sleep(READ_INTERVAL) => {}
                () = self.replicas.experiments_news() => {}
            }
        }
    }

    async fn flush_often(self: Arc<Self>) {
        loop {
            sleep(FLUSH_INTERVAL).await;
            self.flush().await;
        }
    }

    async fn load_on_demand(self: Arc<Self>) {
        loop {
            self.to_load.notified().await;
            self.load_arms().await;
        }
    }

    /// Flushes what decisions left behind to the store. Devices are sent again if the store does not answer, which is harmless if it
    /// took them. Anything else that the store does not take is lost; lost units are counted.
    async fn flush(&self) {
        let collected = self.outbox.take();
        let mut refused = 0;
        for (id, units) in collected.exposed {
            match self.store.expose(&id, &units).await {
                Ok(count) => refused += count,
                Err(_) => units.iter().for_each(|unit| self.outbox.expose(&id, unit)),
            }
        }
        for (id, users) in &collected.users {
            refused += self.store.add_users(id, users).await.unwrap_or(users.len() as u64);
        }
        for (id, cells) in collected.cells {
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
