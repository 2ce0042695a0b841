//! Keeps one connection to Redis, and makes a new one whenever it is lost.

use std::{future::pending, sync::Arc, time::Duration};

use fred::clients::Client;
use fred::error::{Error, ErrorKind};
use fred::interfaces::ClientLike;
use fred::types::config::Options;
use fred::types::{ConnectHandle, Value};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::connector::{Connector, Role};
use super::reply;
use crate::transport::types::TransportError;

/// The shortest time between two probes of a connection.
const PROBE_EVERY_MIN: Duration = Duration::from_secs(1);
/// The pause before the first attempt after a connection was lost.
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// The state of a connection.
#[derive(Clone)]
pub(super) enum ConnectionState {
    /// Not connected, and why.
    Down(String),
    /// Connected. The client belongs to this one connection.
    Up(Client),
    /// Closed for good.
    Closed,
}

impl ConnectionState {
    fn is(&self, client: &Client) -> bool {
        matches!(self, ConnectionState::Up(current) if current.id() == client.id())
    }

    fn why_not(&self) -> TransportError {
        match self {
            ConnectionState::Up(_) => TransportError::Disconnected("it was connected anew".to_owned()),
            ConnectionState::Down(why) => TransportError::Disconnected(why.clone()),
            ConnectionState::Closed => TransportError::Closed,
        }
    }
}

/// One connection, for as long as it lives.
#[derive(Clone)]
pub(super) struct LiveConnection {
    pub(super) client: Client,
    state: watch::Receiver<ConnectionState>,
}

impl LiveConnection {
    pub(super) fn new(client: Client, state: watch::Receiver<ConnectionState>) -> LiveConnection {
        LiveConnection { client, state }
    }

    /// Waits for an answer, but not beyond the end of the connection. A command that is given to a client which has just lost its
    /// connection would otherwise wait until it times out.
    pub(super) async fn answer<T>(
        &mut self,
        command: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, TransportError> {
        tokio::select! {
            biased;
            answer = command => answer.map_err(reply::error),
            end = self.state.wait_for(|state| !state.is(&self.client)) => match end {
                Ok(state) => Err(state.why_not()),
                Err(_) => Err(TransportError::Closed),
            },
        }
    }
}

/// A connection that a task keeps.
pub(super) struct Connection {
    state: watch::Receiver<ConnectionState>,
    closing: watch::Sender<bool>,
    renew: Arc<Notify>,
}

impl Connection {
    pub(super) fn start(role: Role, connector: Arc<Connector>) -> Connection {
        let (states, state) = watch::channel(ConnectionState::Down("not connected yet".to_owned()));
        let (closing, close) = watch::channel(false);
        let renew = Arc::new(Notify::new());
        tokio::spawn(keep(role, connector, states, close, renew.clone()));
        Connection { state, closing, renew }
    }

    /// The present connection.
    pub(super) fn live(&self) -> Result<LiveConnection, TransportError> {
        let client = match &*self.state.borrow() {
            ConnectionState::Up(client) => client.clone(),
            state => return Err(state.why_not()),
        };
        Ok(LiveConnection::new(client, self.state.clone()))
    }

    pub(super) fn watch(&self) -> watch::Receiver<ConnectionState> {
        self.state.clone()
    }

    /// Gives up the present connection, so that a new one is made.
    pub(super) fn renew(&self) {
        // Has no effect while a connection is being made.
        self.renew.notify_waiters();
    }

    /// Closes it for good. Waits for an attempt to connect that is under way.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        // An error means that the task is gone, and the connection with it.
        let _ = self.state.clone().wait_for(|state| matches!(state, ConnectionState::Closed)).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

/// Runs until the connection is closed.
async fn keep(
    role: Role,
    connector: Arc<Connector>,
    states: watch::Sender<ConnectionState>,
    mut closing: watch::Receiver<bool>,
    renew: Arc<Notify>,
) {
    let options = &connector.options;
    let mut client = connector.client(role);
    let mut pause = options.reconnect_delay;
    let mut outage = OutageLog { role, is_logged: false };
    while !*closing.borrow_and_update() {
        // This must not be cancelled, because fred would continue in the background. Its own timeouts bound it.
        let why = match client.init().await {
            Ok(mut task) => {
                // A connection that merely broke is back before peers conclude anything from its absence.
                pause = FIRST_RETRY;
                outage.end();
                states.send_replace(ConnectionState::Up(client.clone()));
                let end = tokio::select! {
                    why = lost(&mut task) => Some(why),
                    why = silent(role, &client, options.silence_max) => Some(why),
                    () = renew.notified() => Some("it was given up".to_owned()),
                    _ = closing.changed() => None,
                };
                // The task of fred may hang in a write that never ends.
                task.abort();
                let Some(why) = end else { break };
                client = connector.client(role);
                why
            }
            Err(error) => error.details().to_owned(),
        };
        outage.begin(&why);
        states.send_replace(ConnectionState::Down(why));
        let jittered = pause.min(options.reconnect_delay).mul_f64(1.0 + fastrand::f64() / 4.0);
        pause = (pause * 3).min(options.reconnect_delay);
        tokio::select! {
            () = sleep(jittered) => {}
            _ = closing.changed() => break,
        }
    }
    states.send_replace(ConnectionState::Closed);
}

/// Waits until the connection ends by itself.
async fn lost(task: &mut ConnectHandle) -> String {
    match task.await {
        Ok(Err(error)) => error.details().to_owned(),
        Ok(Ok(())) | Err(_) => "the connection ended".to_owned(),
    }
}

/// Waits until the connection is up but Redis does not answer.
async fn silent(role: Role, client: &Client, silence_max: Duration) -> String {
    // A blocking read is silent for long. The reader itself knows when an answer is due.
    if role == Role::Reader {
        return pending().await;
    }
    // Fred detects silence too, but counts from the last written command, and does not notice a write that hangs. So this relies on
    // fred only for the subscriber, which writes nothing else. There a flood of messages may delay the answer to the probe, and any
    // message is a sign of life.
    let patience = match role {
        Role::Subscriber => silence_max * 4,
        Role::Writer | Role::Reader => silence_max,
    };
    let probe = client.with_options(&Options { timeout: Some(patience), ..Options::default() });
    loop {
        sleep(PROBE_EVERY_MIN.min(silence_max)).await;
        let answer: Result<Value, Error> = probe.ping(None).await;
        let is_silent = answer.is_err_and(|error| *error.kind() == ErrorKind::Timeout);
        if is_silent && role == Role::Writer {
            return "it does not answer".to_owned();
        }
    }
}

/// Logs the loss of a connection once, and its return once, however many attempts there were.
struct OutageLog {
    role: Role,
    is_logged: bool,
}

impl OutageLog {
    fn begin(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_logged, true) {
            tracing::warn!(connection = ?self.role, why, "no connection to Redis");
        }
    }

    fn end(&mut self) {
        let (connection, is_back) = (self.role, std::mem::replace(&mut self.is_logged, false));
        tracing::info!(?connection, is_back, "connected to Redis");
    }
}
