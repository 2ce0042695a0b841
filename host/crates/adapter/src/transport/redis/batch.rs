//! Sends a batch of commands over the writing connection.

use std::{future::poll_fn, pin::Pin, task::Poll};

use fred::clients::Client;
use fred::error::Error;
use fred::interfaces::{PubsubInterface, StreamsInterface};
use fred::types::Value;
use fred::types::streams::{XCapKind, XCapTrim};

use super::connection::{Connection, LiveConnection};
use super::options::RedisOptions;
use super::reply;
use crate::transport::types::{Outgoing, TransportError};

/// How many commands of a batch are in flight at once.
const IN_FLIGHT_MAX: usize = 1024;

/// How batches are sent.
pub(super) struct SendMode {
    pub(super) is_sharded: bool,
    in_flight_max: usize,
}

impl SendMode {
    pub(super) fn new(options: &RedisOptions) -> SendMode {
        // Half of the queue, so that one batch does not fill it.
        SendMode { is_sharded: options.sharded, in_flight_max: (options.commands_max / 2).clamp(1, IN_FLIGHT_MAX) }
    }
}

/// Sends all commands in order, and returns one result for each. If Redis does not answer, the rest of a long batch is not sent.
pub(super) async fn send(
    connection: &Connection,
    mode: &SendMode,
    batch: Vec<Outgoing>,
) -> Vec<Result<(), TransportError>> {
    let mut live = match connection.live() {
        Ok(live) => live,
        Err(error) => return vec![Err(error); batch.len()],
    };
    let total = batch.len();
    let mut results = Vec::with_capacity(total);
    let mut batch = batch.into_iter();
    while results.len() < total {
        let client = live.client.clone();
        let some = batch.by_ref().take(mode.in_flight_max).map(|one| command(&client, mode.is_sharded, one)).collect();
        results.extend(send_together(&mut live, some).await);
        if let Some(Err(broken @ (TransportError::Timeout | TransportError::Disconnected(_)))) = results.last() {
            let broken = broken.clone();
            results.resize(total, Err(broken));
        }
    }
    if results.iter().any(is_demoted) {
        connection.renew();
    }
    results
}

/// After a failover the old master continues as a replica. A new connection finds the new master.
fn is_demoted(result: &Result<(), TransportError>) -> bool {
    matches!(result, Err(TransportError::Refused(why)) if why.starts_with("READONLY"))
}

type Command<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Gives all commands to fred before it waits for the first answer. Fred then writes its whole queue at once. It flushes its own
/// pipelines command by command, with one system call for each.
async fn send_together(live: &mut LiveConnection, mut commands: Vec<Command<'_>>) -> Vec<Result<(), TransportError>> {
    let mut results = Vec::with_capacity(commands.len());
    poll_fn(|context| {
        // The first poll gives the command to fred.
        results.extend(commands.iter_mut().map(|command| match command.as_mut().poll(context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }));
        Poll::Ready(())
    })
    .await;
    let mut answers = Vec::with_capacity(commands.len());
    for (command, result) in commands.into_iter().zip(results) {
        answers.push(match result {
            Some(result) => result.map_err(reply::error),
            None => live.answer(command).await,
        });
    }
    answers
}

fn command(client: &Client, is_sharded: bool, outgoing: Outgoing) -> Command<'_> {
    Box::pin(async move {
        let answer: Result<Value, Error> = match outgoing {
            Outgoing::Append { stream, fields, len_max } => {
                let trim = (XCapKind::MaxLen, XCapTrim::AlmostExact, i64::try_from(len_max).unwrap_or(i64::MAX), None);
                client.xadd(&*stream, false, trim, "*", fields).await
            }
            Outgoing::Publish { channel, payload } if is_sharded => client.spublish(&*channel, payload).await,
            Outgoing::Publish { channel, payload } => client.publish(&*channel, payload).await,
        };
        answer.map(drop)
    })
}
