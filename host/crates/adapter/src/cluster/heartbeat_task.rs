//! Sends heartbeats, wakes the machine of peers, and handles the heartbeats that arrive.

use std::sync::Arc;

use rmpv::Value;
use tokio::time::{Duration, Instant, MissedTickBehavior, interval};

use super::link::ClusterLink;
use crate::membership::{Heartbeat, HeartbeatOutcome, Peers};
use crate::wire::{HEARTBEAT, INTERRUPTED};

/// How often the machine is woken.
const TICK: Duration = Duration::from_millis(50);

/// Runs until the replica leaves the cluster.
pub(super) async fn run(link: Arc<ClusterLink>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent: Option<Instant> = None;
    while !link.stop.is_cancelled() {
        ticks.tick().await;
        let (is_linked, is_cut_off) = link.peers.step(|peers, now| {
            peers.handle_timeout(now);
            (peers.is_linked(), peers.is_cut_off(now))
        });
        if is_cut_off {
            // Nobody knows when the link will be back, so waiting requests fail now.
            link.requests.fail_those(|_| true);
        }
        if is_linked && link.publisher.take_status_request_due() {
            link.ask_about_lost_requests();
        }
        if sent.is_none_or(|sent| sent.elapsed() >= link.settings().heartbeat) {
            sent = Some(Instant::now());
            if is_linked {
                link.publisher.announce_lost_broadcasts();
            }
            send(&link, None, !is_linked);
        }
    }
}

/// Sends a heartbeat to all peers (`None`) or to one. With `hello` they must answer at once.
pub(super) fn send(link: &ClusterLink, peer: Option<&str>, hello: bool) {
    let heartbeat = Heartbeat {
        revision: link.peers.listener().map_or(0, |listener| listener.revision()),
        interruptions: link.publisher.interruptions(),
        hello,
        unpacks_batches: true,
    };
    if let Err(error) = link.publisher.publish_to_replicas(peer, HEARTBEAT, heartbeat.to_value()) {
        tracing::debug!(%error, "could not send a heartbeat");
    }
}

/// The own subscription was interrupted. The writing connection may still work, so this tells the peers. Otherwise they would take this
/// replica for dead before it can subscribe again.
pub(super) fn handle_interruption(link: &ClusterLink) {
    link.publisher.note_interruption();
    link.peers.step(|peers, now| peers.handle_interrupted(now));
    if let Err(error) = link.publisher.publish_to_replicas(None, INTERRUPTED, Value::Nil) {
        tracing::debug!(%error, "could not tell peers of the interruption");
    }
    link.requests.fail_those(|server| server.is_none());
}

/// The own heartbeat came back.
pub(super) fn handle_echo(link: &ClusterLink) {
    let was_linked = link.peers.step(|peers, now| {
        let was_linked = peers.is_linked();
        peers.handle_echo(now);
        was_linked
    });
    if !was_linked {
        // From now on peers know that this replica is subscribed.
        send(link, None, false);
        link.ask_about_lost_requests();
    }
}

/// A heartbeat of a peer arrived.
pub(super) fn handle_heartbeat(link: &ClusterLink, peer: &str, data: &Value) {
    let Some(heartbeat) = Heartbeat::from_value(data) else {
        metrics::counter!("adapter_malformed_total", "medium" => "channel").increment(1);
        return;
    };
    // Answer before anything else is sent to the peer, because it ignores notes of a replica that it has not heard of.
    if heartbeat.hello {
        send(link, Some(peer), false);
    }
    let step = |peers: &mut Peers, now| {
        let outcome = peers.handle_heartbeat(peer, heartbeat.revision, heartbeat.interruptions, now);
        if heartbeat.unpacks_batches {
            peers.handle_unpacks_batches(peer);
        }
        if !heartbeat.hello {
            // A peer that has heard its own heartbeat, or ours, is subscribed.
            peers.handle_subscribed(peer);
        }
        outcome
    };
    match link.peers.step(step) {
        HeartbeatOutcome::Refused => metrics::counter!("adapter_peers_refused_total").increment(1),
        HeartbeatOutcome::Interrupted => link.lost_requests.ask(peer),
        HeartbeatOutcome::Steady => {}
    }
}
