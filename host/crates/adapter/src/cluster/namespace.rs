//! A namespace of this replica, as the cluster sees it.

use std::sync::Arc;

use rmpv::Value;
use socketioxide_core::{Sid, Value as Encoded};

use super::link::{ClusterLink, Replica};
use crate::broadcasts::{UnsentBroadcast, encode_event};
use crate::error::ClusterError;
use crate::outbox::OnLost;
use crate::sockets::{Description, LocalNamespace, LocalSockets, RequestEnd};
use crate::wire::{Body, Broadcast, Channels, Options};

/// A namespace of this replica, as the cluster sees it.
pub struct Namespace {
    pub(super) replica: Arc<Replica>,
    pub(super) local: Arc<LocalNamespace>,
}

impl Namespace {
    pub(super) fn new(replica: Arc<Replica>, path: &str) -> Self {
        let local = replica.namespaces.get_or_add(path, &replica.settings.channel_prefix, &replica.uid);
        Namespace { replica, local }
    }

    /// The name, with its leading slash.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.local.path
    }

    /// Sets how sockets are described to other servers' `fetchSockets()`. Only the first call has an effect.
    pub fn describe_sockets(&self, describe: impl Fn(Sid) -> Description + Send + Sync + 'static) {
        let _ = self.local.describe.set(Box::new(describe));
    }

    /// Sets how other servers' `serverSideEmit` is answered. Without it the answer is nil. Only the first call has an effect.
    pub fn answer_server_side(&self, answer: impl Fn(&str, Vec<Value>) -> Value + Send + Sync + 'static) {
        let _ = self.local.answer.set(Box::new(answer));
    }

    /// Sets how the traces of other servers' requests to sockets here are continued. Only the first call has an effect.
    pub fn trace_requests(&self, trace: impl Fn(&str) -> Option<RequestEnd> + Send + Sync + 'static) {
        let _ = self.local.trace.set(Box::new(trace));
    }

    /// How many other servers there are.
    ///
    /// # Errors
    /// If Redis does not answer.
    pub async fn other_servers(&self) -> Result<u64, ClusterError> {
        Ok(self.subscribers(self.local.channels.public.clone()).await?.saturating_sub(1))
    }

    /// How many of them are of another kind (Node), by the last count. It is the count of the root namespace, whichever this is.
    #[must_use]
    pub fn foreign_servers(&self) -> u64 {
        self.link().map_or(0, |link| link.peers.foreign_servers())
    }

    /// Whether a server is subscribed to its private channel: its process is alive.
    ///
    /// # Errors
    /// If Redis does not answer.
    pub async fn is_served_by(&self, server: &str) -> Result<bool, ClusterError> {
        let channel = Channels::private_of(&self.replica.settings.channel_prefix, self.path(), server);
        Ok(self.subscribers(channel).await? > 0)
    }

    /// How many connections are subscribed to a channel; 0 if the replica shares no cluster.
    async fn subscribers(&self, channel: String) -> Result<u64, ClusterError> {
        let Some(link) = self.link() else { return Ok(0) };
        let counts = link.transport().subscribers(vec![channel]).await?;
        Ok(counts.first().copied().unwrap_or(0))
    }

    /// The namespace has its local sockets from now on. Subscribes to its channels.
    pub(crate) fn open(&self, sockets: Arc<dyn LocalSockets>) {
        self.local.set_sockets(Some(sockets));
        self.replica.followed.handle_new_namespace();
        if let Some(link) = self.link().cloned() {
            let Channels { public, private } = self.local.channels.clone();
            tokio::spawn(async move { link.subscribe(vec![public, private]).await });
        }
    }

    /// The namespace was removed.
    pub(crate) async fn close(&self) {
        self.local.set_sockets(None);
        let Some(link) = self.link() else { return };
        let Channels { public, private } = self.local.channels.clone();
        if let Err(error) = link.transport().unsubscribe(vec![public, private]).await {
            tracing::debug!(%error, nsp = self.path(), "the channels of a removed namespace are still subscribed");
        }
    }

    pub(super) fn link(&self) -> Option<&Arc<ClusterLink>> {
        self.replica.link.as_ref()
    }

    /// Appends a message to the stream. Does nothing if the replica shares no cluster.
    pub(crate) fn append(&self, body: Body, on_lost: Option<OnLost>) -> Result<(), ClusterError> {
        self.link().map_or(Ok(()), |link| link.publisher.append(self.path(), body, on_lost))
    }

    /// Publishes a message to every server (`None`) or to one. `request` fails if the message cannot be sent.
    pub(crate) fn publish(
        &self,
        server: Option<&str>,
        body: Body,
        request: Option<String>,
    ) -> Result<(), ClusterError> {
        self.link().map_or(Ok(()), |link| link.publisher.publish(self.path(), server, body, request))
    }

    /// Whether a socket has followed at some time.
    pub(crate) fn is_followed(&self) -> bool {
        self.replica.followed.has_begun()
    }

    /// Returns a function that sends a broadcast to the local followers at once, for the case that it does not get into the stream. The
    /// function returns `false` if no socket ever followed.
    pub(crate) fn unsent_broadcast(&self, opts: Options, data: Encoded) -> impl Fn() -> bool + Send + use<> {
        let followed = self.replica.followed.clone();
        let unsent = UnsentBroadcast { namespace: self.local.clone(), opts, data };
        move || followed.handle_unsent_broadcast(&unsent)
    }

    /// Takes a broadcast of a replica that shares no cluster. `false` if it cannot be kept for followers.
    pub(crate) fn keep_broadcast(&self, mut broadcast: Broadcast) -> bool {
        let encode = |id| encode_event(&self.local, &mut broadcast, id);
        self.replica.followed.handle_own_broadcast(&self.local, encode)
    }
}
