//! Which other replicas of this kind there are and whether they live. A pure machine: the time is an argument.
//!
//! Three things are known of the cluster, and each proves something else:
//! - **The own heartbeat comes back** by way of Redis: the link is up. While it is down, nothing that does not come
//!   is held against anybody.
//! - **A peer's private channel has no subscriber** any more, though it had one since the link came up: its process is gone. The
//!   kernel closes a killed process's connections, so this is known long before a heartbeat is missed. One look may
//!   fall into a reconnect; it is the second look that counts.
//! - **A peer's heartbeats stay away** although the link is up: it hangs or is cut off. It may well live, and so may its sockets.
//!
//! A replica that was stopped itself (a throttled container, a suspended machine) has heard nothing for a while, which proves
//! nothing: what came meanwhile has not been read yet. It sees by its own clock that it was, and everybody gets that time again.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// More replicas than this are not followed.
pub(crate) const PEERS_MAX: usize = 256;
/// Between the look that finds a peer without a subscription and the one that confirms it, at least: time for a broken connection to be
/// made anew, three attempts of it.
const CONFIRM: Duration = Duration::from_millis(100);
/// How long open requests wait for the link to come back. They survive a reconnect, and fail fast when Redis is gone.
const RECONNECT: Duration = Duration::from_millis(600);

/// Woken so much later than the last time, the replica itself did not run. It is woken every [`TICK`](crate::beat).
const STALL: Duration = Duration::from_millis(600);

/// What became known. In the order it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// Whether other replicas can be reached.
    Link {
        /// They can.
        up: bool,
    },
    /// A peer is there and said how far its announcements have come.
    Heard {
        /// Its uid.
        peer: String,
        /// The number that its application gave ([`Listener::revision`](crate::Listener::revision)).
        revision: u64,
    },
    /// A peer is not there any more, or not heard from.
    Lost {
        /// Its uid.
        peer: String,
        /// What is known of it.
        loss: Loss,
    },
}

/// What is known of a peer that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// Its process is gone.
    Killed,
    /// It said that it shuts down in order.
    Left,
    /// It is not heard from; it may well live, and be heard again.
    Silent,
}

impl Loss {
    /// As metrics and logs name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Loss::Killed => "killed",
            Loss::Left => "left",
            Loss::Silent => "silent",
        }
    }
}

/// Spans of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// A peer without a heartbeat for so long is silent.
    pub(crate) lost_after: Duration,
    /// Without the own heartbeat for so long the link is down.
    pub(crate) link_lost_after: Duration,
    /// A peer that is neither subscribed nor heard from for so long, since the link came up, is gone.
    pub(crate) gone_after: Duration,
}

/// The machine. A moment is the time since any fixed one.
#[derive(Debug)]
pub(crate) struct Peers {
    timing: Timing,
    /// Since when the link is up.
    up_since: Option<Duration>,
    /// When the subscription was interrupted; forgotten when the link is up again.
    interrupted: Option<Duration>,
    echoed: Duration,
    /// When it was woken last.
    woken: Option<Duration>,
    peers: BTreeMap<String, Peer>,
    /// Replicas of this kind as the last look counted them, this one included.
    counted: Option<u64>,
    events: VecDeque<PeerEvent>,
}

#[derive(Debug)]
struct Peer {
    heard: Duration,
    silent: bool,
    /// It was heard from since the link came up.
    fresh: bool,
    /// It was seen subscribed since the link came up.
    attached: bool,
    absent_since: Option<Duration>,
    /// How often its subscription was interrupted, as it told last.
    interruptions: u64,
    /// It takes several messages in one.
    opens_parcels: bool,
}

/// What a heartbeat said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beat {
    /// All is as it was.
    Steady,
    /// The peer may have lost messages.
    Interrupted,
    /// There are too many peers to follow it.
    Refused,
}

impl Peers {
    pub(crate) fn new(timing: Timing) -> Self {
        Peers {
            timing,
            up_since: None,
            interrupted: None,
            echoed: Duration::ZERO,
            woken: None,
            peers: BTreeMap::new(),
            counted: None,
            events: VecDeque::new(),
        }
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
                peer.attached = false;
                peer.absent_since = None;
            }
            self.events.push_back(PeerEvent::Link { up: true });
        }
    }

    /// A peer's heartbeat came.
    pub(crate) fn handle_beat(&mut self, uid: &str, revision: u64, interruptions: u64, now: Duration) -> Beat {
        let mut beat = Beat::Steady;
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.heard = now;
            peer.silent = false;
            peer.fresh = true;
            if std::mem::replace(&mut peer.interruptions, interruptions) != interruptions {
                beat = Beat::Interrupted;
            }
        } else if self.peers.len() >= PEERS_MAX {
            return Beat::Refused;
        } else {
            let peer = Peer {
                heard: now,
                silent: false,
                fresh: true,
                attached: false,
                absent_since: None,
                interruptions,
                opens_parcels: false,
            };
            self.peers.insert(uid.to_owned(), peer);
        }
        self.events.push_back(PeerEvent::Heard { peer: uid.to_owned(), revision });
        beat
    }

    /// A peer said goodbye.
    pub(crate) fn handle_farewell(&mut self, uid: &str) {
        self.lose(uid, Loss::Left);
    }

    /// A peer was subscribed when it sent its heartbeat: from now on its absence proves that it is gone.
    pub(crate) fn handle_subscribed(&mut self, uid: &str) {
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.attached = true;
        }
    }

    /// A peer said that its subscription is interrupted: it lives, so until it is seen subscribed again its absence proves nothing.
    pub(crate) fn handle_away(&mut self, uid: &str) {
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.attached = false;
            peer.absent_since = None;
        }
    }

    /// The subscription was interrupted: the link is down at once.
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

    /// A look at the subscriptions: of this kind of replica in all, and of the private channel of each peer asked about.
    pub(crate) fn handle_subscribers(&mut self, total: u64, each: &[(String, u64)], now: Duration) {
        if self.up_since.is_none() {
            return;
        }
        self.counted = Some(total);
        for (uid, subscribers) in each {
            let Some(peer) = self.peers.get_mut(uid) else { continue };
            if *subscribers > 0 {
                peer.attached = true;
                peer.absent_since = None;
                continue;
            }
            let since = *peer.absent_since.get_or_insert(now);
            // One that never came back after the link was down is given the time that a reconnect and a heartbeat take.
            let proven = match peer.attached {
                true => now.saturating_sub(since) >= CONFIRM,
                false => now.saturating_sub(peer.heard) >= self.timing.gone_after,
            };
            if proven {
                self.lose(uid, Loss::Killed);
            }
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        let slept = self.woken.replace(now).map_or(Duration::ZERO, |woken| now.saturating_sub(woken));
        if slept >= STALL {
            self.forgive(slept, now);
        }
        if self.up_since.is_some() && now.saturating_sub(self.echoed) >= self.timing.link_lost_after {
            // Nothing is lost yet: whatever is on the way may still come.
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

    /// For so long nothing could be heard, whoever spoke.
    fn forgive(&mut self, slept: Duration, now: Duration) {
        let later = |since: &mut Duration| *since = (*since + slept).min(now);
        later(&mut self.echoed);
        self.interrupted.as_mut().map(later);
        self.peers.values_mut().map(|peer| &mut peer.heard).for_each(later);
    }

    /// What became known since it was last asked.
    pub(crate) fn next_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front()
    }

    /// Whether other replicas can be reached.
    pub(crate) fn is_linked(&self) -> bool {
        self.up_since.is_some()
    }

    /// Whether the subscription was interrupted and is not back in the time that a reconnect takes.
    pub(crate) fn is_cut_off(&self, now: Duration) -> bool {
        self.interrupted.is_some_and(|since| now.saturating_sub(since) >= RECONNECT)
    }

    /// Whether every replica of this kind that is subscribed has been heard from, or has had its time.
    pub(crate) fn is_complete(&self, now: Duration) -> bool {
        let Some(up_since) = self.up_since else { return false };
        let is_heard = |peer: &&Peer| peer.fresh && peer.absent_since.is_none();
        let heard = self.peers.values().filter(is_heard).count() as u64 + 1;
        self.counted.is_some_and(|counted| heard >= counted) || now.saturating_sub(up_since) >= self.timing.lost_after
    }

    /// A peer said that it takes several messages in one.
    pub(crate) fn handle_opens_parcels(&mut self, uid: &str) {
        if let Some(peer) = self.peers.get_mut(uid) {
            peer.opens_parcels = true;
        }
    }

    /// Whether a peer that is followed has said so.
    pub(crate) fn opens_parcels(&self, uid: &str) -> bool {
        self.peers.get(uid).is_some_and(|peer| peer.opens_parcels)
    }

    /// Whether a peer is followed.
    pub(crate) fn knows(&self, uid: &str) -> bool {
        self.peers.contains_key(uid)
    }

    /// The peers that are heard from.
    pub(crate) fn present(&self) -> impl Iterator<Item = &String> {
        self.peers.iter().filter(|(_, peer)| !peer.silent).map(|(uid, _)| uid)
    }

    /// The peers, those that are silent too.
    pub(crate) fn uids(&self) -> impl Iterator<Item = &String> {
        self.peers.keys()
    }

    /// Whether a look found somebody gone and another is to confirm it.
    pub(crate) fn is_suspicious(&self) -> bool {
        self.peers.values().any(|peer| peer.attached && peer.absent_since.is_some())
    }

    fn lose(&mut self, uid: &str, loss: Loss) {
        if self.peers.remove(uid).is_some() {
            self.events.push_back(PeerEvent::Lost { peer: uid.to_owned(), loss });
        }
    }
}
