//! Closes the sockets, each when it has its turn and no call needs it.
//!
//! A socket is ended at its connection, never by a packet of Socket.IO: a client that is told to disconnect stays away for good, one
//! whose connection ends comes back by itself.

use std::{collections::HashSet, time::Duration};

use socketioxide::socket::Sid;
use tokio::time::{Instant, sleep};

use super::{pace::Turns, parts::Drain};
use crate::{
    devices::{DASHBOARD_NSP, DEVICE_NSP},
    edge::{
        disconnect::disconnect_for_shutdown,
        socketio::{BroadcastOperators, SocketRef},
        transport::has_unsent_data,
    },
    sockets::root,
};

/// Between two looks at those who have their turn.
const LOOK: Duration = Duration::from_millis(20);
/// So many looks in a row find no call before a socket is closed: one may be between the machine and the wire, seen by neither.
const QUIET_LOOKS: u32 = 3;
/// How long others may take to confirm that they know.
const NOTED_MAX: Duration = Duration::from_secs(1);
/// How long connections may take to end.
const END_MAX: Duration = Duration::from_millis(500);

/// The namespaces that clients are in.
const NAMESPACES: [&str; 3] = ["/", DEVICE_NSP, DASHBOARD_NSP];

/// A client: it has one socket in each namespace that it is in, all on one connection and by one id.
struct Client {
    id: Sid,
    quiet: u32,
    is_hidden: bool,
}

/// What came of it.
pub(super) struct Closed {
    /// Clients that were closed.
    pub(super) sockets: usize,
    /// Calls that had begun, since the start of the replica, by the time at which none were waited for any more.
    pub(super) calls_begun: u64,
    /// Calls that were not waited for to their end.
    pub(super) calls_broken_off: usize,
}

/// The sockets on their way out.
pub(super) struct Closing<'a> {
    drain: &'a Drain,
    is_alone: bool,
    began: Instant,
    namespaces: Vec<BroadcastOperators>,
    /// Those whose turn is to come, the first one last.
    queue: Vec<Client>,
    turns: Turns,
    /// Those who have had their turn, and whose calls are waited for.
    due: Vec<Client>,
    closed: HashSet<Sid>,
    broken_off: usize,
    /// At the deadline.
    begun: Option<u64>,
    is_over: bool,
}

impl<'a> Closing<'a> {
    pub(super) fn new(drain: &'a Drain, is_alone: bool) -> Self {
        let began = Instant::now();
        Self {
            drain,
            is_alone,
            began,
            namespaces: NAMESPACES.iter().filter_map(|namespace| drain.io.of(*namespace)).collect(),
            queue: Vec::new(),
            turns: Turns::new(0, Duration::ZERO, 0),
            due: Vec::new(),
            closed: HashSet::new(),
            broken_off: 0,
            begun: None,
            is_over: false,
        }
    }

    /// Closes them all; done when they are gone, or do not go.
    pub(super) async fn run(mut self) -> Closed {
        let settings = &self.drain.settings;
        let end = self.began + settings.deadline_ms.as_millis() + settings.close_ms.as_millis() + END_MAX;
        // Before the first turn: those whose turn came meanwhile would be closed all at once.
        while !self.is_known() {
            sleep(LOOK).await;
        }
        let mut looked = Instant::now();
        while Instant::now() < end {
            let passed = looked.elapsed();
            looked = Instant::now();
            if !self.is_over && self.began.elapsed() >= settings.deadline_ms.as_millis() {
                self.give_up();
            }
            if self.queue.is_empty() {
                let arrived = self.arrived();
                self.line_up(arrived);
            }
            if self.queue.is_empty() && self.due.is_empty() {
                break;
            }
            // A host that was held up does not make up for it by closing more at once.
            let turn = self.turns.take(passed.min(2 * LOOK));
            self.due.extend(self.queue.drain(self.queue.len().saturating_sub(turn)..));
            self.close_due();
            sleep(LOOK).await;
        }
        self.ended().await;
        let calls_begun = self.begun.unwrap_or_else(|| self.drain.calls_begun());
        Closed { sockets: self.closed.len(), calls_begun, calls_broken_off: self.broken_off }
    }

    /// The deadline: calls are waited for no longer.
    fn give_up(&mut self) {
        self.is_over = true;
        self.begun = Some(self.drain.calls_begun());
        if self.queue.is_empty() && self.due.is_empty() {
            return;
        }
        self.broken_off += self.drain.open_calls();
        let mut left = std::mem::take(&mut self.queue);
        left.append(&mut self.due);
        self.line_up(left);
    }

    /// Gives each a turn, from now on: daemons first, for calls wait for them.
    fn line_up(&mut self, mut clients: Vec<Client>) {
        let span = if self.is_alone { Duration::ZERO } else { self.drain.settings.close_ms.as_millis() };
        fastrand::shuffle(&mut clients);
        clients.sort_by_cached_key(|client| self.sockets(client.id).any(|socket| root::is_daemon(&socket)));
        self.turns = Turns::new(clients.len(), span, fastrand::u64(..));
        self.queue = clients;
    }

    /// Who is connected and has no turn yet.
    fn arrived(&self) -> Vec<Client> {
        let mut ids = self.connected();
        ids.retain(|id| !self.closed.contains(id));
        for client in &self.due {
            ids.remove(&client.id);
        }
        ids.into_iter().map(|id| Client { id, quiet: 0, is_hidden: false }).collect()
    }

    /// Everyone who is connected, to whatever namespace.
    fn connected(&self) -> HashSet<Sid> {
        let namespaces = NAMESPACES.iter().filter_map(|namespace| self.drain.io.of(*namespace));
        namespaces.flat_map(BroadcastOperators::sockets).map(|socket| socket.id).collect()
    }

    /// A client's sockets as they are now: it may join and leave namespaces for as long as it is connected.
    fn sockets(&self, id: Sid) -> impl Iterator<Item = SocketRef> {
        self.namespaces.iter().filter_map(move |namespace| namespace.get_socket(id))
    }

    fn close_due(&mut self) {
        let served = self.drain.replicas.cluster().served_rooms();
        for mut client in std::mem::take(&mut self.due) {
            if self.is_over || self.is_quiet(&mut client, &served) {
                self.close(client);
            } else {
                self.due.push(client);
            }
        }
    }

    /// Whether no call is on its way here any more because a peer does not know that none are wanted.
    fn is_known(&self) -> bool {
        let replicas = &self.drain.replicas;
        self.is_alone
            || self.began.elapsed() >= NOTED_MAX
            || !replicas.cluster().standing().linked
            || replicas.is_leaving_known()
    }

    /// Whether no call needs the client any more.
    fn is_quiet(&self, client: &mut Client, served: &HashSet<String>) -> bool {
        // Who is alone cannot have a daemon come back: calls that wait for one are not waited for.
        let has_calls = |socket: &SocketRef| root::open_calls(socket, self.is_alone) > 0;
        let sockets: Vec<_> = self.sockets(client.id).collect();
        let is_busy = served.contains(client.id.as_str()) || sockets.iter().any(has_calls);
        // A call has ended when its answer has left the machine, and that may have a long way to go on a slow line.
        let has_unsent_data = sockets.first().is_some_and(has_unsent_data);
        client.quiet = if is_busy || has_unsent_data { 0 } else { client.quiet + 1 };
        // Servers of another kind find daemons by their rooms, and take one that is in none for gone, with the calls in flight to it: so
        // not before those have ended, or new ones follow each other for too long.
        if !client.is_hidden && (!is_busy || self.began.elapsed() >= self.drain.settings.deadline_ms.as_millis() / 2) {
            sockets.iter().for_each(root::hide);
            client.is_hidden = true;
            client.quiet = 0;
        }
        client.quiet >= QUIET_LOOKS
    }

    fn close(&mut self, client: Client) {
        let sockets: Vec<_> = self.sockets(client.id).collect();
        if !self.is_over {
            self.broken_off += sockets.iter().map(|socket| root::open_calls(socket, false)).sum::<usize>();
        }
        sockets.iter().for_each(disconnect_for_shutdown);
        self.closed.insert(client.id);
    }

    /// Waits until those that were closed are gone.
    async fn ended(&self) {
        let since = Instant::now();
        while since.elapsed() < END_MAX && !self.connected().is_empty() {
            sleep(LOOK).await;
        }
    }
}
