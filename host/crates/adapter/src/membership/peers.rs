//! Decides which other replicas of this kind exist and whether they are alive. A pure machine: the time is an argument.
//!
//! It draws conclusions from three observations:
//! - **The own heartbeat comes back** through Redis: the link is up. While the link is down, the machine concludes nothing from the
//!   silence of a peer.
//! - **A peer's private channel has no subscriber**, although it had one since the link came up: the peer's process is gone. The
//!   kernel closes the connections of a killed process, so this is known long before a heartbeat is missed. A single count may
//!   coincide with a reconnect, so a second count must confirm it.
//! - **A peer's heartbeats stop** although the link is up: the peer hangs or is cut off. The peer and its sockets may be alive.
//!
//! A replica that was itself suspended (a throttled container, a suspended machine) has heard nothing for a while. That proves
//! nothing, because it has not read the messages of that time yet. It notices the suspension by its own clock, and extends every
//! deadline by that time.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How many peers are tracked.
pub(crate) const PEERS_MAX: usize = 256;
/// The time between the count that finds a peer without a subscription and the count that confirms it, at least. Three attempts to
/// reconnect fit in.
const CONFIRM: Duration = Duration::from_millis(100);
/// How long open requests wait for the link to come back. They survive a reconnect, and fail fast if Redis is gone.
const RECONNECT: Duration = Duration::from_millis(600);

/// If the machine is woken so much later than the last time, the replica itself was suspended.
const STALL: Duration = Duration::from_millis(600);

/// A change of the link or of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// Whether other replicas can be reached.
    Link {
        /// `true` if they can.
        up: bool,
    },
    /// A heartbeat of a peer arrived.
    Heard {
        /// Its uid.
        peer: String,
        /// The revision that its application reported ([`Listener::revision`](crate::Listener::revision)).
        revision: u64,
    },
    /// A peer is gone, or silent.
    Lost {
        /// Its uid.
        peer: String,
        /// What is known about it.
        loss: Loss,
    },
}

/// What is known about a lost peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its process is gone.
    Killed,
    /// It announced that it shuts down.
    Left,
    /// Its heartbeats stopped. It may be alive, and may be heard again.
    Silent,
}

impl Loss {
    /// The name in metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Loss::Killed => "killed",
            Loss::Left => "left",
            Loss::Silent => "silent",
        }
    }
}

/// The time limits of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timing {
    /// After so long without a heartbeat a peer is silent.
    pub(crate) lost_after: Duration,
    /// After so long without the own heartbeat the link is down.
    pub(crate) link_lost_after: Duration,
    /// A peer that was neither subscribed nor heard from for so long since the link came up is gone.
    pub(crate) gone_after: Duration,
}

/// The machine. Times are counted from any fixed moment.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    timing: Timing,
    /// When the link came up. `None` while it is down.
    up_since: Option<Duration>,
    /// When the subscription was interrupted. `None` again as soon as the link is up.
    interrupted: Option<Duration>,
    echoed: Duration,
    /// When the machine was woken last.
    woken: Option<Duration>,
    peers: BTreeMap<String, Peer>,
    /// How many replicas of this kind the last count found, this one included.
    counted: Option<u64>,
    events: VecDeque<PeerEvent>,
}

#[derive(Debug, Default)]
struct Peer {
    heard: Duration,
    silent: bool,
    /// It was heard from since the link came up.
    fresh: bool,
    /// It was seen subscribed since the link came up.
    subscribed: bool,
    absent_since: Option<Duration>,
    /// How often its subscription was interrupted, by its last heartbeat.
    interruptions: u64,
    /// It unpacks batches of messages.
    unpacks_batches: bool,
}

/// What follows from a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeartbeatOutcome {
    /// Nothing.
    Steady,
    /// The peer may have lost messages.
    Interrupted,
    /// As many peers as possible are tracked already.
    Refused,
}

impl Peers {
    pub(crate) fn new(timing: Timing) -> Self {
        Peers { timing, ..Peers::default() }
    }

    /// The own heartbeat came back.
    pub(crate) fn handle_echo(&mut self, now: Duration) {
        self.echoed = now;
        self.interrupted = None;
        if self.up_since.is_none() {
            self.up_since = Some(now);
            for peer in self.peers.values_mut() {
                peer.heard = now;
                peer.fresh = false;
                peer.subscribed = false;
                peer.absent_since = None;
            }
            self.events.push_back(PeerEvent::Link { up: true });
        }
    }

    /// A peer's heartbeat came.
    pub(crate) fn handle_heartbeat(
        &mut self,
        uid: &str,
        revision: u64,
        interruptions: u64,
        now: Duration,
    ) -> HeartbeatOutcome {
        let mut outcome = HeartbeatOutcome::Steady;
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.heard = now;
            peer.silent = false;
            peer.fresh = true;
            if std::mem::replace(&mut peer.interruptions, interruptions) != interruptions {
                outcome = HeartbeatOutcome::Interrupted;
            }
        } else if self.peers.len() >= PEERS_MAX {
            return HeartbeatOutcome::Refused;
        } else {
            let peer = Peer { heard: now, fresh: true, interruptions, ..Peer::default() };
            self.peers.insert(uid.to_owned(), peer);
        }
        self.events.push_back(PeerEvent::Heard { peer: uid.to_owned(), revision });
        outcome
    }

    /// A peer announced that it shuts down.
    pub(crate) fn handle_farewell(&mut self, uid: &str) {
        self.lose(uid, Loss::Left);
    }

    /// A peer was subscribed when it sent its heartbeat. From now on a missing subscription proves that it is gone.
    pub(crate) fn handle_subscribed(&mut self, uid: &str) {
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.subscribed = true;
        }
    }

    /// A peer said that its subscription is interrupted, so it is alive. A missing subscription proves nothing until it is subscribed
    /// again.
    pub(crate) fn handle_peer_interrupted(&mut self, uid: &str) {
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.subscribed = false;
            peer.absent_since = None;
        }
    }

    /// The own subscription was interrupted: the link is down at once.
    pub(crate) fn handle_interrupted(&mut self, now: Duration) {
        self.interrupted.get_or_insert(now);
        self.go_down();
    }

    fn go_down(&mut self) {
        self.counted = None;
        if self.up_since.take().is_some() {
            self.events.push_back(PeerEvent::Link { up: false });
        }
    }

    /// The subscribers were counted: of the channel of all replicas of this kind, and of the private channel of each peer.
    pub(crate) fn handle_subscribers(&mut self, total: u64, each: &[(String, u64)], now: Duration) {
        if self.up_since.is_none() {
            return;
        }
        self.counted = Some(total);
        for (uid, subscribers) in each {
            let Some(peer) = self.peers.get_mut(uid) else { continue };
            if *subscribers > 0 {
                peer.subscribed = true;
                peer.absent_since = None;
                continue;
            }
            let since = *peer.absent_since.get_or_insert(now);
            // A peer that was not seen since the link came up gets the time of a reconnect and a heartbeat.
            let proven = match peer.subscribed {
                true => now.saturating_sub(since) >= CONFIRM,
                false => now.saturating_sub(peer.heard) >= self.timing.gone_after,
            };
            if proven {
                self.lose(uid, Loss::Killed);
            }
        }
    }

    /// The time has come to `now`.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        let slept = self.woken.replace(now).map_or(Duration::ZERO, |woken| now.saturating_sub(woken));
        if slept >= STALL {
            self.extend_deadlines(slept, now);
        }
        if self.up_since.is_some() && now.saturating_sub(self.echoed) >= self.timing.link_lost_after {
            // No message is lost yet: messages on their way may still arrive.
            self.go_down();
        }
        if self.up_since.is_none() {
            return;
        }
        for (uid, peer) in &mut self.peers {
            if !peer.silent && now.saturating_sub(peer.heard) >= self.timing.lost_after {
                peer.silent = true;
                self.events.push_back(PeerEvent::Lost { peer: uid.clone(), loss: Loss::Silent });
            }
        }
    }

    /// The replica was suspended for so long: extends the deadlines of the link and of all peers.
    fn extend_deadlines(&mut self, slept: Duration, now: Duration) {
        let later = |since: &mut Duration| *since = (*since + slept).min(now);
        later(&mut self.echoed);
        self.interrupted.as_mut().map(later);
        self.peers.values_mut().map(|peer| &mut peer.heard).for_each(later);
    }

    /// The next event, in the order they happened.
    pub(crate) fn next_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// Whether other replicas can be reached.
    pub(crate) fn is_linked(&self) -> bool {
        self.up_since.is_some()
    }

    /// Whether the subscription was interrupted and did not come back in the time of a reconnect.
    pub(crate) fn is_cut_off(&self, now: Duration) -> bool {
        self.interrupted.is_some_and(|since| now.saturating_sub(since) >= RECONNECT)
    }

    /// Whether every subscribed replica of this kind was heard from, or had enough time for it.
    pub(crate) fn is_complete(&self, now: Duration) -> bool {
        let Some(up_since) = self.up_since else { return false };
        let is_heard = |peer: &&Peer| peer.fresh && peer.absent_since.is_none();
        let heard = self.peers.values().filter(is_heard).count() as u64 + 1;
        self.counted.is_some_and(|counted| heard >= counted) || now.saturating_sub(up_since) >= self.timing.lost_after
    }

    /// A peer said that it unpacks batches of messages.
    pub(crate) fn handle_unpacks_batches(&mut self, uid: &str) {
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.unpacks_batches = true;
        }
    }

    /// Whether a tracked peer unpacks batches of messages.
    pub(crate) fn unpacks_batches(&self, uid: &str) -> bool {
        self.peers.get(uid).is_some_and(|peer| peer.unpacks_batches)
    }

    /// Whether a peer is tracked.
    pub(crate) fn knows(&self, uid: &str) -> bool {
        self.peers.contains_key(uid)
    }

    /// The peers that are not silent.
    pub(crate) fn present(&self) -> impl Iterator<Item = &String> {
        self.peers.iter().filter(|(_, peer)| !peer.silent).map(|(uid, _)| uid)
    }

    /// All peers, also silent ones.
    pub(crate) fn uids(&self) -> impl Iterator<Item = &String> {
        self.peers.keys()
    }

    /// Whether a count found a peer gone and another count must confirm it.
    pub(crate) fn is_suspicious(&self) -> bool {
        self.peers.values().any(|peer| peer.subscribed && peer.absent_since.is_some())
    }

    fn lose(&mut self, uid: &str, loss: Loss) {
        if self.peers.remove(uid).is_some() {
            self.events.push_back(PeerEvent::Lost { peer: uid.to_owned(), loss });
        }
    }
}
