//! Implements socketioxide's adapter: socketioxide's own adapter reaches local sockets, and the cluster reaches other servers.

mod emit;

use std::collections::HashSet;
use std::future::{Future, ready};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use socketioxide_core::adapter::errors::BroadcastError;
use socketioxide_core::adapter::{
    BroadcastOptions, CoreAdapter, CoreLocalAdapter, DefinedAdapter, RemoteSocketData, Room, RoomParam, SocketEmitter,
};
use socketioxide_core::packet::Packet;
use socketioxide_core::{Sid, Uid};
use tokio::time::Instant;

use crate::cluster::{Cluster, Namespace, single_response_flags};
use crate::error::ClusterError;
use crate::requests::{AckStream, OpenRequest};
use crate::sockets::{ack, encode, to_wire};
use crate::wire::{Body, Broadcast, DisconnectSockets, Options, RoomsChange};

/// The adapter of one namespace. Its state is the [`Cluster`]: `SocketIo::builder().with_adapter::<RedisStreamsAdapter<_>>(cluster)`.
///
/// A message is in the outbox before the future of a method is first polled to its end. Local sockets get it even if the outbox does
/// not take it. A socket must join the room of its own id (`socket.join(socket.id)` when it connects) if other servers exclude it, or
/// address it together with rooms. A socket that is addressed alone is found without.
pub struct RedisStreamsAdapter<E> {
    local: Arc<CoreLocalAdapter<E>>,
    namespace: Arc<Namespace>,
    is_alone: bool,
}

impl<E> DefinedAdapter for RedisStreamsAdapter<E> {}

impl<E: SocketEmitter> CoreAdapter<E> for RedisStreamsAdapter<E> {
    type Error = ClusterError;
    type State = Cluster;
    type AckStream = AckStream<E>;
    type InitRes = ();

    fn new(cluster: &Cluster, local: CoreLocalAdapter<E>) -> Self {
        let namespace = cluster.namespace(local.path());
        RedisStreamsAdapter { local: Arc::new(local), namespace, is_alone: cluster.is_alone() }
    }

    fn init(self: Arc<Self>, on_success: impl FnOnce() + Send + 'static) {
        self.namespace.open(Arc::new(self.local.clone()));
        on_success();
    }

    async fn close(&self) -> Result<(), ClusterError> {
        self.namespace.close().await;
        Ok(())
    }

    async fn server_count(&self) -> Result<u16, ClusterError> {
        let others = self.namespace.other_servers().await?;
        Ok(u16::try_from(others).unwrap_or(u16::MAX).saturating_add(1))
    }

    fn broadcast(
        &self,
        packet: Packet,
        selected: BroadcastOptions,
    ) -> impl Future<Output = Result<(), BroadcastError>> + Send {
        ready(self.emit(packet, selected))
    }

    async fn broadcast_with_ack(
        &self,
        packet: Packet,
        selected: BroadcastOptions,
        timeout: Option<Duration>,
    ) -> Result<AckStream<E>, ClusterError> {
        let within = timeout.unwrap_or_else(|| self.local.ack_timeout());
        let opts = to_wire(&selected).filter(|_| self.is_for_others(&selected));
        let owner = selected.server_id.map(|uid| uid.to_string());
        let requested = match opts {
            None => Ok(None),
            Some(opts) => self.ask(&packet, opts, owner.as_deref(), within).await,
        };
        let requested = match requested {
            // No local socket is selected.
            Err(error) if owner.is_some() => return Err(error),
            requested => requested.inspect_err(|error| note_unpublished("channel", error)).unwrap_or_default(),
        };
        let (acks, _) = self.local.broadcast_with_ack(packet, selected, timeout);
        let Some((request, servers)) = requested else { return Ok(AckStream::local(acks)) };
        let local = self.local.clone();
        let encode = move |first| ack(local.parser(), first);
        Ok(AckStream::with_remote(acks, request, servers, Instant::now() + within, encode))
    }

    fn add_sockets(
        &self,
        selected: BroadcastOptions,
        rooms: impl RoomParam,
    ) -> impl Future<Output = Result<(), ClusterError>> + Send {
        ready(self.change_rooms(selected, rooms, Body::SocketsJoin, CoreLocalAdapter::add_sockets))
    }

    fn del_sockets(
        &self,
        selected: BroadcastOptions,
        rooms: impl RoomParam,
    ) -> impl Future<Output = Result<(), ClusterError>> + Send {
        ready(self.change_rooms(selected, rooms, Body::SocketsLeave, CoreLocalAdapter::del_sockets))
    }

    fn disconnect_socket(&self, selected: BroadcastOptions) -> impl Future<Output = Result<(), BroadcastError>> + Send {
        let published =
            self.publish(&selected, |opts| Ok(Body::DisconnectSockets(DisconnectSockets { opts, close: false })));
        let disconnected = self.local.disconnect_socket(selected).map_err(BroadcastError::Socket);
        ready(disconnected.and(published.map_err(|error| BroadcastError::Adapter(error.into()))))
    }

    async fn rooms(&self, selected: BroadcastOptions) -> Result<Vec<Room>, ClusterError> {
        let opts = to_wire(&selected).filter(|_| self.is_for_others(&selected));
        let mut rooms: HashSet<Room> = self.local.rooms(selected);
        if let Some(opts) = opts {
            let answers = self.namespace.fetch_sockets(opts, None).await?;
            let sockets = answers.given.into_iter().flat_map(|(_, sockets)| sockets);
            rooms.extend(sockets.flat_map(|socket| socket.rooms).map(Room::Owned));
        }
        Ok(rooms.into_iter().collect())
    }

    /// Sockets of Node's servers are left out, because their ids are not ids of socketioxide. Use [`Namespace::fetch_sockets`] for them.
    async fn fetch_sockets(&self, selected: BroadcastOptions) -> Result<Vec<RemoteSocketData>, ClusterError> {
        let opts = to_wire(&selected).filter(|_| self.is_for_others(&selected));
        let mut sockets = self.local.fetch_sockets(selected);
        let Some(opts) = opts else { return Ok(sockets) };
        for (uid, remote) in self.namespace.fetch_sockets(opts, None).await?.given {
            let Ok(server_id) = Uid::from_str(&uid) else { continue };
            let known = remote.iter().filter_map(|socket| Sid::from_str(&socket.id).ok());
            sockets.extend(known.map(|id| RemoteSocketData { id, server_id, ns: self.local.path().clone() }));
        }
        Ok(sockets)
    }

    fn get_local(&self) -> &CoreLocalAdapter<E> {
        &self.local
    }
}

impl<E: SocketEmitter> RedisStreamsAdapter<E> {
    /// Whether other servers must get it.
    fn is_for_others(&self, selected: &BroadcastOptions) -> bool {
        !self.is_alone && !selected.is_local(self.local.server_id())
    }

    /// Lets sockets join or leave rooms: local ones by `change_local`, those of other servers by the message `body`.
    fn change_rooms(
        &self,
        selected: BroadcastOptions,
        rooms: impl RoomParam,
        body: fn(RoomsChange) -> Body,
        change_local: fn(&CoreLocalAdapter<E>, BroadcastOptions, Vec<Room>),
    ) -> Result<(), ClusterError> {
        let rooms: Vec<Room> = rooms.into_room_iter().collect();
        let published = self.publish(&selected, |opts| Ok(body(RoomsChange { opts, rooms: names(&rooms) })));
        change_local(&self.local, selected, rooms);
        published
    }

    /// Appends a message for other servers to the stream, if it has recipients there.
    fn publish(
        &self,
        selected: &BroadcastOptions,
        body: impl FnOnce(Options) -> Result<Body, ClusterError>,
    ) -> Result<(), ClusterError> {
        if !self.is_for_others(selected) {
            return Ok(());
        }
        let Some(opts) = to_wire(selected) else { return Ok(()) };
        body(opts)
            .and_then(|body| self.namespace.append(body, None))
            .inspect_err(|error| note_unpublished("stream", error))
    }

    /// Asks all other servers, or only `owner`, for acknowledgements. Returns the request and the number of servers. `None` if there
    /// are no other servers.
    async fn ask(
        &self,
        packet: &Packet,
        mut opts: Options,
        owner: Option<&str>,
        within: Duration,
    ) -> Result<Option<(OpenRequest, u64)>, ClusterError> {
        let servers = match owner {
            Some(_) => 1,
            None => self.namespace.other_servers().await?,
        };
        if servers == 0 {
            return Ok(None);
        }
        let request = self.namespace.open_request(owner)?;
        opts.flags = single_response_flags(within);
        if owner.is_none() {
            opts.flags = opts.flags.with("expectSingleResponse", rmpv::Value::Nil);
        }
        let packet = encode(self.local.parser(), packet)?;
        let body = Broadcast { packet, request_id: Some(request.id.clone()), opts };
        self.namespace.publish(owner, Body::Broadcast(body), Some(request.id.clone()))?;
        Ok(Some((request, servers)))
    }
}

/// Counts a message that the outbox did not take.
fn note_unpublished(medium: &'static str, error: &ClusterError) {
    metrics::counter!("adapter_publish_failed_total", "medium" => medium).increment(1);
    tracing::debug!(%error, "could not publish a message to other servers");
}

fn names(rooms: &[Room]) -> Vec<String> {
    rooms.iter().map(|room| room.clone().into_owned()).collect()
}
