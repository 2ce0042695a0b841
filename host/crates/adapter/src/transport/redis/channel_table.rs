//! Which channels must be subscribed, and how they are subscribed at Redis.

use std::{collections::BTreeSet, time::Duration};

use fred::clients::{Client, Pipeline};
use fred::interfaces::{ClientLike, PubsubInterface};
use fred::types::Value;
use tokio::time::sleep;

use super::connection::LiveConnection;
use super::reply;
use crate::transport::types::TransportError;

/// The pause before a connection whose answers are out of step is probed, and the number of probes.
const PROBE_AFTER: Duration = Duration::from_millis(20);
const PROBES_MAX: u32 = 10;

/// The channels that must be subscribed.
#[derive(Default)]
pub(super) struct ChannelTable {
    pub(super) wanted: BTreeSet<String>,
    /// Channels that are no longer wanted, but whose unsubscription is not confirmed. Empty for each new connection.
    pub(super) leaving: BTreeSet<String>,
    /// The connection that has the subscriptions.
    pub(super) current: Option<LiveConnection>,
    probes: u64,
}

impl ChannelTable {
    /// Subscribes to all wanted channels.
    pub(super) async fn renew(&mut self, live: &mut LiveConnection, is_sharded: bool) -> Result<(), TransportError> {
        let [join, leave] = [&self.wanted, &self.leaving].map(|channels| channels.iter().cloned().collect::<Vec<_>>());
        self.change(live, is_sharded, &join, &leave).await?;
        self.leaving.clear();
        self.current = Some(live.clone());
        Ok(())
    }

    /// Changes subscriptions, and waits until Redis has confirmed the change.
    pub(super) async fn change(
        &mut self,
        live: &mut LiveConnection,
        is_sharded: bool,
        join: &[String],
        leave: &[String],
    ) -> Result<(), TransportError> {
        // Fred does not wait until Redis confirms a subscription. A PING right after it is answered after it. If Redis refuses the
        // subscription, fred takes that error for the answer to the PING. Both commands must be sent together.
        let client = live.client.clone();
        let pipeline = client.pipeline();
        if is_sharded {
            for channel in leave {
                live.answer(pipeline.sunsubscribe(channel.as_str())).await?;
            }
            // Fred waits for the confirmation of sharded subscriptions only, and only if they are sent one by one.
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
                // The answer to the PING will still arrive, and would be taken for the answer to another command.
                self.realign(live).await?;
                Err(refusal)
            }
            result => result,
        }
    }

    /// Sends a PING after the commands of a pipeline, and waits for its answer.
    async fn probe(&mut self, live: &mut LiveConnection, pipeline: &Pipeline<Client>) -> Result<(), TransportError> {
        self.probes += 1;
        let text = format!("subscribed-{}", self.probes);
        let _: Value = live.answer(pipeline.ping(Some(text.clone()))).await?;
        match reply::is_pong(live.answer(pipeline.last()).await?, &text) {
            true => Ok(()),
            false => Err(TransportError::Reply("the answer to another PING".to_owned())),
        }
    }

    /// Waits until commands get their own answers again. Fred drops an answer that no command waits for.
    async fn realign(&mut self, live: &mut LiveConnection) -> Result<(), TransportError> {
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
