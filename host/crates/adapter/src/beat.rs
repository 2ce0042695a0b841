//! Heartbeats, and the look at who is subscribed: what the machine of [`Peers`](crate::peers) is fed with.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmpv::Value;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval, sleep};

use crate::cluster::{Inner, Shared};
use crate::peers::{Beat, Peers};
use crate::recall;
use crate::subscriber::subscribe;
use crate::trouble::Trouble;
use crate::wire::Channels;

/// A heartbeat: `{revision, interruptions, hello, parcels}`, and `hello` asks for one in return. With `parcels` the sender opens
/// [parcels](crate::parcel).
pub(crate) const BEAT: u32 = 100;
/// A replica shuts down in order.
pub(crate) const FAREWELL: u32 = 101;
/// A replica lives, though its subscription is interrupted.
pub(crate) const AWAY: u32 = 104;

/// How often the machine is woken.
const TICK: Duration = Duration::from_millis(50);
/// Between the two looks that prove a peer gone.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Sends heartbeats and wakes the machine, until the cluster is left.
pub(crate) async fn run(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent: Option<Instant> = None;
    while !*shared.stop.borrow() {
        ticks.tick().await;
        let linked = inner.step(|peers, now| {
            peers.handle_timeout(now);
            peers.is_linked()
        });
        if inner.step(|peers, now| peers.is_cut_off(now)) == Some(true) {
            // Whoever waits for them is better told now than when the link is back, whenever that is.
            shared.requests.fail_those(|_| true);
        }
        if linked == Some(true) && shared.is_recall_due.swap(false, Ordering::Relaxed) {
            recall::recall_all(&inner, shared);
        }
        if sent.is_none_or(|sent| sent.elapsed() >= inner.settings.heartbeat) {
            sent = Some(Instant::now());
            if linked == Some(true) {
                inner.tell_loss(shared);
            }
            send(&inner, linked != Some(true));
        }
    }
}

/// Sends a heartbeat to all; with `hello` they are to answer at once.
pub(crate) fn send(inner: &Inner, hello: bool) {
    beat(inner, None, hello);
}

/// The subscription is interrupted. The writing connection may well be there, and a replica that is not subscribed would be
/// taken for dead before it can connect again.
pub(crate) fn away(inner: &Inner) {
    if let Err(error) = inner.tell_peers(None, AWAY, Value::Nil) {
        tracing::debug!(%error, "peers were not told of the interruption");
    }
}

/// The own heartbeat came back.
pub(crate) fn echoed(inner: &Inner, shared: &Shared) {
    let was_linked = inner.step(|peers, now| {
        let was_linked = peers.is_linked();
        peers.handle_echo(now);
        was_linked
    });
    if was_linked == Some(false) {
        // Peers know from now on that it is subscribed.
        send(inner, false);
        recall::recall_all(inner, shared);
    }
}

/// A peer's heartbeat came.
pub(crate) fn heard(inner: &Inner, shared: &Shared, peer: &str, data: &Value) {
    let field = |name: &str| {
        let found = data.as_map()?.iter().find(|(key, _)| key.as_str() == Some(name));
        found.map(|(_, value)| value)
    };
    let number = |name| field(name).and_then(Value::as_u64);
    let (Some(revision), Some(interruptions)) = (number("revision"), number("interruptions")) else {
        metrics::counter!("adapter_malformed_total", "medium" => "channel").increment(1);
        return;
    };
    let is_true = |name| field(name).and_then(Value::as_bool) == Some(true);
    let (hello, opens_parcels) = (is_true("hello"), is_true("parcels"));
    // Before anything else is told to it: a peer takes no notes from somebody it has not heard of.
    if hello {
        beat(inner, Some(peer), false);
    }
    let step = |peers: &mut Peers, now| {
        let beat = peers.handle_beat(peer, revision, interruptions, now);
        if opens_parcels {
            peers.handle_opens_parcels(peer);
        }
        if !hello {
            // Who has heard itself, or me, is subscribed.
            peers.handle_subscribed(peer);
        }
        beat
    };
    match inner.step(step) {
        Some(Beat::Refused) => metrics::counter!("adapter_peers_refused_total").increment(1),
        Some(Beat::Interrupted) => recall::recall(inner, shared, peer),
        Some(Beat::Steady) | None => {}
    }
}

/// Looks who is subscribed, again and again, until the cluster is left.
pub(crate) async fn probe(inner: Arc<Inner>) {
    let Some(shared) = inner.shared() else { return };
    let mut trouble = Trouble::with("count subscriptions");
    while !*shared.stop.borrow() {
        match look(&inner, shared).await {
            Ok(()) => trouble.end(),
            Err(error) => trouble.note(&error),
        }
        let suspicious = inner.step(|peers, _| peers.is_suspicious()) == Some(true);
        sleep(if suspicious { LOOK_AGAIN } else { inner.settings.probe }).await;
    }
}

async fn look(inner: &Inner, shared: &Shared) -> Result<(), crate::transport::TransportError> {
    let prefix = &inner.settings.channel_prefix;
    let peers: Vec<String> = inner.step(|peers, _| peers.uids().cloned().collect()).unwrap_or_default();
    let root = Channels::new(prefix, "/", &inner.uid).public;
    let private = peers.iter().map(|peer| Channels::private_of(prefix, crate::cluster::PEERS_NSP, peer));
    let channels = [shared.channels.public.clone(), root].into_iter().chain(private).collect();
    let counts = shared.transport.subscribers(channels).await?;
    let [total, root, each @ ..] = counts.as_slice() else { return Ok(()) };
    let each: Vec<(String, u64)> = peers.into_iter().zip(each.iter().copied()).collect();
    shared.set_foreign(root.saturating_sub(*total));
    inner.step(|peers, now| peers.handle_subscribers(*total, &each, now));
    Ok(())
}

fn beat(inner: &Inner, peer: Option<&str>, hello: bool) {
    let revision = inner.listener().map_or(0, |listener| listener.revision());
    let interruptions = inner.shared().map_or(0, |shared| shared.interruptions.load(Ordering::Relaxed));
    let data = Value::Map(vec![
        ("revision".into(), revision.into()),
        ("interruptions".into(), interruptions.into()),
        ("hello".into(), hello.into()),
        ("parcels".into(), true.into()),
    ]);
    if let Err(error) = inner.tell_peers(peer, BEAT, data) {
        tracing::debug!(%error, "a heartbeat was not sent");
    }
}

/// Subscribes a namespace's channels in a task of its own.
pub(crate) fn attach(inner: Arc<Inner>, channels: Channels) {
    tokio::spawn(async move {
        if let Some(shared) = inner.shared() {
            subscribe(shared, vec![channels.public, channels.private]).await;
        }
    });
}
