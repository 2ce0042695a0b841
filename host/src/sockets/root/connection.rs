//! One client's connection to the root namespace: its identity, and what it does with each event.

use parking_lot::Mutex;
use std::sync::Arc;

use pointwork_core::{UserSession, decisions::Departure, room};
use socketioxide_redis_streams::Following;

use super::{
    activity::{self, Activity},
    offsets::follow,
};
use crate::{
    calls::{Calls, Participant, Superseded},
    driver::clock::unix_ms,
    edge::{
        admission::UserSocketGuard,
        event_order::OrderedEvents,
        identity::{ClientType, Identity},
        payload::{IncomingEvent, take_field},
        send::{acknowledge, broadcast},
        socketio::{AckSender, SocketRef},
    },
    telemetry::{ClientScope, EventKind, socket_metrics},
};

/// An event of a client, in the field's own names.
pub(super) enum Event {
    Register(IncomingEvent),
    Unregister(IncomingEvent),
    Call(IncomingEvent, AckSender),
    Result(IncomingEvent, AckSender),
    Resumed(IncomingEvent, AckSender),
    Ping(AckSender),
    SessionAlive(IncomingEvent),
    SessionEnd(IncomingEvent),
    MachineAlive(IncomingEvent),
}

impl Event {
    /// As what it is counted.
    pub(super) const fn kind(&self) -> EventKind {
        match self {
            Self::Register(_) => EventKind::Register,
            Self::Unregister(_) => EventKind::Unregister,
            Self::Call(..) => EventKind::Call,
            Self::Result(..) => EventKind::Result,
            Self::Resumed(..) => EventKind::Resumed,
            Self::Ping(_) => EventKind::Ping,
            Self::SessionAlive(_) => EventKind::SessionAlive,
            Self::SessionEnd(_) => EventKind::SessionEnd,
            Self::MachineAlive(_) => EventKind::MachineAlive,
        }
    }
}

/// A connection, from the moment it was admitted.
pub(super) struct Connection {
    identity: Identity,
    participant: Participant,
    calls: Arc<Calls>,
    events: OrderedEvents<Event>,
    /// For a client that can have offsets, as long as it is connected.
    following: Mutex<Option<Following>>,
    /// Its place among the user's, where these are limited, until it is gone.
    place: Mutex<Option<Box<UserSocketGuard>>>,
}

impl Connection {
    pub(super) fn new(identity: Identity, calls: Arc<Calls>, place: Option<UserSocketGuard>) -> Self {
        let (participant, place) = (calls.participant(&identity), Mutex::new(place.map(Box::new)));
        Self { participant, identity, calls, events: OrderedEvents::new(), following: Mutex::default(), place }
    }

    /// The rooms the socket is in from the start: what is broadcast to a user reaches it by one of them.
    pub(super) fn rooms(&self) -> Vec<String> {
        let user = &*self.identity.user;
        let scope = match &self.identity.client {
            ClientType::User => room::user_scoped(user),
            ClientType::Session(session) => room::session(user, session),
            ClientType::Machine(machine) => room::machine(user, machine),
        };
        vec![room::user(user), scope]
    }

    /// Whether its broadcasts carry their offset.
    pub(super) fn is_follower(&self) -> bool {
        self.identity.capabilities.offsets
    }

    /// What other servers are told of it: all that its handshake said, but for the token.
    pub(super) fn who(&self) -> Vec<(rmpv::Value, rmpv::Value)> {
        let user = ("userId".into(), (*self.identity.user).into());
        let scope: [(&str, &str); 2] = match &self.identity.client {
            ClientType::User => return vec![user, ("clientType".into(), "user-scoped".into())],
            ClientType::Session(session) => [("clientType", "session-scoped"), ("sessionId", session)],
            ClientType::Machine(machine) => [("clientType", "machine-scoped"), ("machineId", machine)],
        };
        std::iter::once(user).chain(scope.map(|(name, value)| (name.into(), value.into()))).collect()
    }

    /// The socket is connected: it enters the directory, and what it sent meanwhile is handled.
    pub(super) fn open(&self, socket: &SocketRef) {
        self.events.connect(
            || {
                socket_metrics().connected(self.scope());
                self.calls.connect(socket, &self.participant);
                self.report_machine(socket, |machine| Activity::machine_came(machine, unix_ms()));
                if self.is_follower() {
                    let last_offset = self.identity.last_offset.as_deref();
                    let following = follow(self.calls.namespace(), socket, self.rooms(), last_offset);
                    *self.following.lock() = Some(following);
                }
            },
            |event| self.handle(socket, event),
        );
    }

    /// An event came in.
    pub(super) fn take(&self, socket: &SocketRef, event: Event) {
        if self.events.handle(event, |event| self.handle(socket, event)).is_err() {
            metrics::counter!("pointwork_events_dropped_total").increment(1);
        }
    }

    /// The socket is gone; its rooms are left by socketioxide.
    pub(super) fn close(&self, socket: &SocketRef, departure: Departure) {
        *self.place.lock() = None;
        if self.events.close() {
            socket_metrics().disconnected(self.scope());
            *self.following.lock() = None;
            let idle = self.calls.disconnect(socket, &self.participant, departure);
            // A machine that has another connection is not gone.
            if socket.extensions.get::<Superseded>().is_none() {
                self.report_machine(socket, |machine| Activity::machine_went(machine, unix_ms(), idle, departure));
            }
        }
    }

    const fn scope(&self) -> ClientScope {
        match self.identity.client {
            ClientType::User => ClientScope::User,
            ClientType::Session(_) => ClientScope::Session,
            ClientType::Machine(_) => ClientScope::Machine,
        }
    }

    pub(super) fn open_calls(&self, socket: &SocketRef, only_in_flight: bool) -> usize {
        self.calls.calls_of(socket, &self.participant, only_in_flight)
    }

    pub(super) fn is_daemon(&self, socket: &SocketRef) -> bool {
        self.calls.is_daemon(socket, &self.participant)
    }

    pub(super) fn hide(&self, socket: &SocketRef) {
        self.calls.hide(socket, &self.participant);
    }

    fn handle(&self, socket: &SocketRef, event: Event) {
        let participant = &self.participant;
        let activity = match event {
            Event::Register(incoming) => return self.calls.register(socket, participant, method(incoming)),
            Event::Unregister(incoming) => return self.calls.unregister(socket, participant, method(incoming)),
            Event::Call(incoming, ack) => return self.calls.call(socket, participant, incoming, ack),
            Event::Result(incoming, ack) => return self.calls.late_result(socket, participant, incoming, ack),
            Event::Resumed(incoming, ack) => return self.calls.resumed(socket, participant, incoming, ack),
            Event::Ping(ack) => {
                self.calls.touch(socket, participant);
                return acknowledge(socket, ack, &serde_json::json!({}));
            }
            Event::SessionAlive(incoming) => activity::session_alive(incoming, unix_ms()),
            Event::SessionEnd(incoming) => activity::session_end(incoming, unix_ms()),
            Event::MachineAlive(incoming) => activity::machine_alive(incoming, unix_ms()),
        };
        self.calls.touch(socket, participant);
        self.report(socket, activity.filter(|activity| self.is_news(activity)));
    }

    /// Whether an activity says something of now: what a session said before it ended does not.
    fn is_news(&self, activity: &Activity) -> bool {
        let Activity::Session { id, active, active_at, .. } = activity else { return true };
        let session = UserSession { user: self.identity.user.clone(), id: id.as_str().into() };
        let replicas = self.calls.replicas();
        if *active {
            return replicas.session_lives(&session, *active_at);
        }
        replicas.session_ended(session, *active_at);
        true
    }

    /// A machine's own connection says whether it is there.
    fn report_machine(&self, socket: &SocketRef, activity: impl FnOnce(&str) -> Activity) {
        if let ClientType::Machine(machine) = &self.identity.client {
            self.report(socket, Some(activity(machine)));
        }
    }

    /// Tells the user's own apps; what was not understood is counted and goes no further.
    fn report(&self, socket: &SocketRef, activity: Option<Activity>) {
        let Some(activity) = activity else {
            metrics::counter!("pointwork_activity_ignored_total").increment(1);
            return;
        };
        let room = room::user_scoped(&self.identity.user);
        broadcast(socket.within(room), "ephemeral", &activity);
    }
}

/// The method that a register or unregister names; `None` when it names none.
fn method(incoming: IncomingEvent) -> Option<String> {
    match take_field(&mut incoming.into_first()?, "method")? {
        rmpv::Value::String(method) => method.into_str(),
        _ => None,
    }
}
