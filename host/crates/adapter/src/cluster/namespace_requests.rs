//! Sends requests to other servers: to one socket, for their sockets, and events of the servers themselves.

use std::time::Duration;

use rmpv::Value;
use tokio::time::Instant;

use super::namespace::Namespace;
use crate::error::ClusterError;
use crate::requests::{Answers, OpenRequest, SocketRequest};
use crate::wire::{
    Body, Broadcast, FetchSockets, Flags, Options, Packet, RemoteSocket, ServerSideEmit, TRACEPARENT, UNCOUNTED,
};

impl Namespace {
    /// Emits an event to one socket of the server `owner` and asks for its acknowledgement. Only that server is involved. The request is
    /// in the outbox when this returns, so requests to one server keep their order.
    ///
    /// # Errors
    /// If the outbox does not take it.
    pub fn request(
        &self,
        owner: &str,
        socket: &str,
        packet: Packet,
        timeout: Duration,
    ) -> Result<SocketRequest, ClusterError> {
        self.request_within(owner, socket, packet, timeout, None)
    }

    /// Like [`Namespace::request`], as part of a trace. `traceparent` (W3C Trace Context) is sent as a flag. A server of this kind calls
    /// its [`Namespace::trace_requests`]; Node's servers ignore it.
    ///
    /// # Errors
    /// If the outbox does not take it.
    pub fn request_within(
        &self,
        owner: &str,
        socket: &str,
        packet: Packet,
        timeout: Duration,
        traceparent: Option<String>,
    ) -> Result<SocketRequest, ClusterError> {
        let request = self.open_request(Some(owner))?;
        let mut opts = Options::room(socket);
        opts.flags = single_response_flags(timeout).with(UNCOUNTED, true);
        if let Some(traceparent) = traceparent {
            opts.flags = opts.flags.with(TRACEPARENT, traceparent);
        }
        let broadcast = Broadcast { packet, request_id: Some(request.id.clone()), opts };
        self.publish(Some(owner), Body::Broadcast(broadcast), Some(request.id.clone()))?;
        Ok(SocketRequest { request, deadline: Instant::now() + timeout })
    }

    /// The sockets of all other servers that `opts` selects, from the answers that arrive within `timeout`.
    ///
    /// # Errors
    /// If the other servers cannot be asked.
    pub async fn fetch_sockets(
        &self,
        opts: Options,
        timeout: Option<Duration>,
    ) -> Result<Answers<Vec<RemoteSocket>>, ClusterError> {
        let servers = self.other_servers().await?;
        self.fetch(None, servers, opts, timeout).await
    }

    /// The sockets of one other server that `opts` selects. `None` if the server does not answer in time.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn fetch_sockets_of(
        &self,
        server: &str,
        opts: Options,
        timeout: Option<Duration>,
    ) -> Result<Option<Vec<RemoteSocket>>, ClusterError> {
        let mut answers = self.fetch(Some(server), 1, opts, timeout).await?;
        Ok(answers.given.pop().map(|(_, sockets)| sockets))
    }

    async fn fetch(
        &self,
        server: Option<&str>,
        servers: u64,
        opts: Options,
        timeout: Option<Duration>,
    ) -> Result<Answers<Vec<RemoteSocket>>, ClusterError> {
        if servers == 0 {
            return Ok(Answers::default());
        }
        // The caller repeats a failed fetch, so nobody is asked whether it is still served: it is opened as a request to all.
        let request = self.open_request(None)?;
        let fetch = FetchSockets { opts, request_id: request.id.clone() };
        self.publish(server, Body::FetchSockets(fetch), Some(request.id.clone()))?;
        let sockets = |body| match body {
            Body::FetchSocketsResponse(response) => Some(response.sockets),
            _ => None,
        };
        Ok(Answers::collect(request, servers, self.deadline(timeout), sockets).await)
    }

    /// Sends an event to every other server itself (`serverSideEmit`).
    ///
    /// # Errors
    /// If the outbox does not take it.
    pub fn server_side_emit(&self, event: &str, args: Vec<Value>) -> Result<(), ClusterError> {
        let packet = Packet::event(event, args).data;
        self.publish(None, Body::ServerSideEmit(ServerSideEmit { request_id: None, packet }), None)
    }

    /// Like [`Namespace::server_side_emit`], and takes the answers that arrive within `timeout`: the first argument of each server's
    /// acknowledgement.
    ///
    /// # Errors
    /// If the other servers cannot be asked.
    pub async fn server_side_emit_with_ack(
        &self,
        event: &str,
        args: Vec<Value>,
        timeout: Option<Duration>,
    ) -> Result<Answers<Value>, ClusterError> {
        let servers = self.other_servers().await?;
        self.emit_and_collect(None, servers, event, args, timeout).await
    }

    /// Sends an event to one other server itself. Returns the first argument of its acknowledgement. `None` if the server does not
    /// answer in time, or its answer is lost.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub async fn ask_server(
        &self,
        server: &str,
        event: &str,
        args: Vec<Value>,
        timeout: Option<Duration>,
    ) -> Result<Option<Value>, ClusterError> {
        let mut answers = self.emit_and_collect(Some(server), 1, event, args, timeout).await?;
        Ok(answers.given.pop().map(|(_, answer)| answer))
    }

    async fn emit_and_collect(
        &self,
        server: Option<&str>,
        servers: u64,
        event: &str,
        args: Vec<Value>,
        timeout: Option<Duration>,
    ) -> Result<Answers<Value>, ClusterError> {
        let request = self.open_request(server)?;
        let packet = Packet::event(event, args).data;
        let emit = ServerSideEmit { request_id: Some(request.id.clone()), packet };
        self.publish(server, Body::ServerSideEmit(emit), Some(request.id.clone()))?;
        let answer = |body| match body {
            Body::ServerSideEmitResponse(answer) => Some(answer.packet),
            _ => None,
        };
        Ok(Answers::collect(request, servers, self.deadline(timeout), answer).await)
    }

    fn deadline(&self, timeout: Option<Duration>) -> Instant {
        Instant::now() + timeout.unwrap_or(self.replica.settings.request_timeout)
    }

    pub(crate) fn open_request(&self, server: Option<&str>) -> Result<OpenRequest, ClusterError> {
        self.link().and_then(|link| link.requests.open(server)).ok_or(ClusterError::TooManyRequests)
    }
}

/// The flags of a request to one socket, as Node sets them.
pub(crate) fn single_response_flags(timeout: Duration) -> Flags {
    let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    Flags::default().with("timeout", ms).with("expectSingleResponse", true)
}
