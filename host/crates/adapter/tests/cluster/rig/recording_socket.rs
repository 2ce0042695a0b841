//! A socket that records what it gets. It acknowledges an event at once, the event `slow` after a second, and the event `mute` never.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use socketioxide_core::adapter::errors::SocketError;
use socketioxide_core::adapter::{AckStreamItem, BroadcastIter, RemoteSocketData, SocketEmitter};
use socketioxide_core::packet::Packet;
use socketioxide_core::parser::Parse;
use socketioxide_core::{Sid, Str, Uid, Value};
use socketioxide_parser_common::CommonParser;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// How long acks are waited for unless it is said.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// The one socket of a replica, whose acks have its id as their argument.
#[derive(Clone)]
pub(crate) struct Sockets {
    pub(crate) sid: Sid,
    server: Uid,
    path: Str,
    got: mpsc::UnboundedSender<String>,
}

impl Sockets {
    /// The second is what the socket gets, as the text of its packets.
    pub(crate) fn new(path: &'static str) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (got, inbox) = mpsc::unbounded_channel();
        (Sockets { sid: Sid::new(), server: Uid::new(), path: Str::from(path), got }, inbox)
    }

    /// Whether it is there, for each.
    fn here(&self, sids: BroadcastIter<'_>) -> usize {
        sids.filter(|sid| *sid == self.sid).count()
    }

    fn take(&self, packet: &Value) {
        let Value::Str(text, _) = packet else { panic!("the common parser writes text") };
        let _ = self.got.send(text.as_str().to_owned());
    }
}

impl SocketEmitter for Sockets {
    type AckError = NotAcknowledged;
    type AckStream = FuturesUnordered<Pin<Box<dyn Future<Output = AckStreamItem<NotAcknowledged>> + Send>>>;

    fn get_all_sids(&self, filter: impl Fn(&Sid) -> bool) -> Vec<Sid> {
        std::iter::once(self.sid).filter(filter).collect()
    }

    fn get_remote_sockets(&self, sids: BroadcastIter<'_>) -> Vec<RemoteSocketData> {
        let data = RemoteSocketData { id: self.sid, server_id: self.server, ns: self.path.clone() };
        vec![data; self.here(sids)]
    }

    fn send_many(&self, sids: BroadcastIter<'_>, data: Value) -> Result<(), Vec<SocketError>> {
        (0..self.here(sids)).for_each(|_| self.take(&data));
        Ok(())
    }

    fn send_many_volatile(&self, sids: BroadcastIter<'_>, data: Value) {
        (0..self.here(sids)).for_each(|_| self.take(&data));
    }

    fn send_many_with_ack(
        &self,
        sids: BroadcastIter<'_>,
        packet: Packet,
        timeout: Option<Duration>,
    ) -> (Self::AckStream, u32) {
        let (count, sid) = (self.here(sids), self.sid);
        let data = CommonParser.encode(packet);
        let told = data.as_str().map_or("", |text| text.as_str());
        let (is_mute, is_slow) = (told.contains("mute"), told.contains("slow"));
        let acks = FuturesUnordered::new();
        for _ in 0..count {
            self.take(&data);
            let value = Value::Str(format!("[{:?}]", sid.as_str()).into(), None);
            let ack = async move {
                match (is_mute, is_slow) {
                    (true, _) => pending().await,
                    (_, true) => sleep(Duration::from_secs(1)).await,
                    _ => {}
                }
                value
            };
            let within = tokio::time::timeout(timeout.unwrap_or(ACK_TIMEOUT), ack);
            let acked: Pin<Box<dyn Future<Output = AckStreamItem<NotAcknowledged>> + Send>> =
                Box::pin(async move { (sid, within.await.map_err(|_| NotAcknowledged)) });
            acks.push(acked);
        }
        (acks, u32::try_from(count).unwrap())
    }

    fn disconnect_many(&self, sids: Vec<Sid>) -> Result<(), Vec<SocketError>> {
        sids.iter().filter(|sid| **sid == self.sid).for_each(|_| self.take(&Value::Str("disconnect".into(), None)));
        Ok(())
    }

    fn path(&self) -> &Str {
        &self.path
    }

    fn parser(&self) -> impl Parse {
        CommonParser
    }

    fn server_id(&self) -> Uid {
        self.server
    }

    fn ack_timeout(&self) -> Duration {
        ACK_TIMEOUT
    }
}

/// The socket did not acknowledge.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NotAcknowledged;

impl fmt::Display for NotAcknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no ack")
    }
}

impl std::error::Error for NotAcknowledged {}
