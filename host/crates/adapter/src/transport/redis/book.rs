//! Which channels there should be, and how Redis is told of them.

use std::{collections::BTreeSet, time::Duration};

use fred::clients::{Client, Pipeline};
use fred::interfaces::{ClientLike, PubsubInterface};
use fred::types::Value;
use tokio::time::sleep;

use super::link::Live;
use super::reply;
use crate::transport::types::TransportError;

/// The pause before a connection whose answers are out of step is probed, and how often it is.
const PROBE_AFTER: Duration = Duration::from_millis(20);
const PROBES_MAX: u32 = 10;

/// Which channels there should be.
#[derive(Default)]
pub(super) struct Book {
    pub(super) wanted: BTreeSet<String>,
    /// No longer wanted, but the end of their subscription is not confirmed. Ends with the connection.
    pub(super) leaving: BTreeSet<String>,
    /// The connection that has the subscriptions.
    pub(super) current: Option<Live>,
    probes: u64,
}

impl Book {
    /// Tells Redis of all there should be.
    pub(super) async fn renew(&mut self, live: &mut Live, is_sharded: bool) -> Result<(), TransportError> {
        let [join, leave] = [&self.wanted, &self.leaving].map(|channels| channels.iter().cloned().collect::<Vec<_>>());
        self.change(live, is_sharded, &join, &leave).await?;
        self.leaving.clear();
        self.current = Some(live.clone());
        Ok(())
    }

    /// Tells Redis of a change, and waits until it is made.
    pub(super) async fn change(
        &mut self,
        live: &mut Live,
        is_sharded: bool,
        join: &[String],
        leave: &[String],
    ) -> Result<(), TransportError> {
        // Fred does not wait for Redis to confirm a subscription. A PING right behind is answered after it, and if Redis
        // refused to subscribe, it is that error which fred takes for the answer. Both must be handed over in one go.
        let client = live.client.clone();
        let pipeline = client.pipeline();
        if is_sharded {
            for channel in leave {
                live.answer(pipeline.sunsubscribe(channel.as_str())).await?;
            }
            // Sharded ones alone fred does wait for, if they come one by one.
            for channel in join {
                live.answer(client.ssubscribe(channel.as_str())).await?;
            }
        } else {
            if !leave.is_empty() {
                live.answer(pipeline.unsubscribe(leave.to_vec())).await?;
            }
            if !join.is_empty() {
                live.answer(pipeline.subscribe(join.to_vec())).await?;
            }
        }
        match self.probe(live, &pipeline).await {
            Err(refusal @ TransportError::Refused(_)) => {
                // The PING's own answer is still to come, and would be taken for another's.
                self.realign(live).await?;
                Err(refusal)
            }
            result => result,
        }
    }

    /// Sends a PING behind what is in a pipeline, and waits for its answer.
    async fn probe(&mut self, live: &mut Live, pipeline: &Pipeline<Client>) -> Result<(), TransportError> {
        self.probes += 1;
        let text = format!("subscribed-{}", self.probes);
        let _: Value = live.answer(pipeline.ping(Some(text.clone()))).await?;
        match reply::is_pong(live.answer(pipeline.last()).await?, &text) {
            true => Ok(()),
            false => Err(TransportError::Reply("the answer to another PING".to_owned())),
        }
    }

    /// Waits until commands get their own answers again. Fred drops an answer that nothing waits for.
    async fn realign(&mut self, live: &mut Live) -> Result<(), TransportError> {
        let mut result = Ok(());
        for _ in 0..PROBES_MAX {
            sleep(PROBE_AFTER).await;
            let pipeline = live.client.pipeline();
            result = self.probe(live, &pipeline).await;
            if result.is_ok() {
                break;
            }
        }
        result
    }
}
