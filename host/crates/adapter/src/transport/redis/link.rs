//! One connection, made anew whenever it is lost.

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

/// How often a connection is asked whether it is alive, at most.
const PROBE_EVERY_MIN: Duration = Duration::from_secs(1);
/// Until the first attempt after a connection was lost.
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// What a connection is at the moment.
#[derive(Clone)]
pub(super) enum State {
    /// Not there, and why.
    Down(String),
    /// There. The client is good for this one connection.
    Up(Client),
    /// Closed for good.
    Closed,
}

impl State {
    fn is(&self, client: &Client) -> bool {
        matches!(self, State::Up(current) if current.id() == client.id())
    }

    fn why_not(&self) -> TransportError {
        match self {
            State::Up(_) => TransportError::Disconnected("it was connected anew".to_owned()),
            State::Down(why) => TransportError::Disconnected(why.clone()),
            State::Closed => TransportError::Closed,
        }
    }
}

/// One connection, for as long as it lives.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) client: Client,
    state: watch::Receiver<State>,
}

impl Live {
    pub(super) fn new(client: Client, state: watch::Receiver<State>) -> Live {
        Live { client, state }
    }

    /// Waits for an answer, but not beyond the connection's end: what is handed to a client that has just lost its
    /// connection would stay with it until it times out.
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

/// A connection that is looked after by a task.
pub(super) struct Link {
    state: watch::Receiver<State>,
    closing: watch::Sender<bool>,
    doubt: Arc<Notify>,
}

impl Link {
    pub(super) fn start(role: Role, connector: Arc<Connector>) -> Link {
        let (told, state) = watch::channel(State::Down("not connected yet".to_owned()));
        let (closing, close) = watch::channel(false);
        let doubt = Arc::new(Notify::new());
        tokio::spawn(look_after(role, connector, told, close, doubt.clone()));
        Link { state, closing, doubt }
    }

    /// The connection that is there now.
    pub(super) fn live(&self) -> Result<Live, TransportError> {
        let client = match &*self.state.borrow() {
            State::Up(client) => client.clone(),
            state => return Err(state.why_not()),
        };
        Ok(Live::new(client, self.state.clone()))
    }

    pub(super) fn watch(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// Gives the present connection up, and has a new one made.
    pub(super) fn doubt(&self) {
        // Only who looks after a connection waits: there is nothing to doubt about one that is still being made.
        self.doubt.notify_waiters();
    }

    /// Closes it for good; waits for an attempt to connect that is under way.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        // An error says that the task is gone, and the connection with it.
        let _ = self.state.clone().wait_for(|state| matches!(state, State::Closed)).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}

/// Runs until the link is closed.
async fn look_after(
    role: Role,
    connector: Arc<Connector>,
    told: watch::Sender<State>,
    mut closing: watch::Receiver<bool>,
    doubt: Arc<Notify>,
) {
    let options = &connector.options;
    let mut client = connector.client(role);
    let mut pause = options.reconnect_delay;
    let mut outage = Outage { role, is_told: false };
    while !*closing.borrow_and_update() {
        // Not to be cancelled, or fred would go on with it unseen. Its own timeouts bound it.
        let why = match client.init().await {
            Ok(mut task) => {
                // A connection that merely broke is back before anybody concludes anything from its absence.
                pause = FIRST_RETRY;
                outage.end();
                told.send_replace(State::Up(client.clone()));
                let end = tokio::select! {
                    why = lost(&mut task) => Some(why),
                    why = silent(role, &client, options.silence_max) => Some(why),
                    () = doubt.notified() => Some("it was given up".to_owned()),
                    _ = closing.changed() => None,
                };
                // Fred's task may hang in a write that will never end.
                task.abort();
                let Some(why) = end else { break };
                client = connector.client(role);
                why
            }
            Err(error) => error.details().to_owned(),
        };
        outage.tell(&why);
        told.send_replace(State::Down(why));
        let jittered = pause.min(options.reconnect_delay).mul_f64(1.0 + fastrand::f64() / 4.0);
        pause = (pause * 3).min(options.reconnect_delay);
        tokio::select! {
            () = sleep(jittered) => {}
            _ = closing.changed() => break,
        }
    }
    told.send_replace(State::Closed);
}

/// Waits until the connection ends by itself.
async fn lost(task: &mut ConnectHandle) -> String {
    match task.await {
        Ok(Err(error)) => error.details().to_owned(),
        Ok(Ok(())) | Err(_) => "the connection ended".to_owned(),
    }
}

/// Waits until the connection is there but nothing answers.
async fn silent(role: Role, client: &Client, silence_max: Duration) -> String {
    // It is silent while it blocks. Who reads knows when an answer is due.
    if role == Role::Reader {
        return pending().await;
    }
    // Fred sees a silence too, but counts from the last command that was written, and not at all while a write hangs. So it
    // is trusted with the subscriber alone, which writes nothing else; there a flood of messages may keep the probe
    // waiting, and any message is a sign of life.
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

/// Says once when a connection is lost, and once when it is back, however many attempts there were.
struct Outage {
    role: Role,
    is_told: bool,
}

impl Outage {
    fn tell(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_told, true) {
            tracing::warn!(connection = ?self.role, why, "no connection to Redis");
        }
    }

    fn end(&mut self) {
        let (connection, is_back) = (self.role, std::mem::replace(&mut self.is_told, false));
        tracing::info!(?connection, is_back, "connected to Redis");
    }
}
