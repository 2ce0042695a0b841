//! What a process knows of its link to Redis and of its peers, by the same signs as the adapter of the host (its
//! `peers.rs`): the own heartbeat, the peers' heartbeats, and who is subscribed.

use std::time::Duration;

use pointwork_core::Time;
use pointwork_core::decisions::Departure;

use crate::calls::events::Process;

/// The own heartbeat is away for so long: the link is down.
const LINK_LOST: Duration = Duration::from_millis(1_500);
/// A peer is not heard from for so long: it is silent.
const SILENT: Duration = Duration::from_secs(3);
/// Between the look that finds a peer without a subscription and the one that confirms it.
const CONFIRM: Duration = Duration::from_millis(100);
/// A peer that never came back after the link was down is gone after so long.
const GONE: Duration = Duration::from_secs(1);
/// Open requests wait so long for an interrupted subscription.
const RECONNECT: Duration = Duration::from_millis(600);

/// What became known.
pub(crate) enum PeerNews {
    Link(bool),
    Heard { peer: Process, seq: u64 },
    Lost { peer: Process, cause: Departure },
}

#[derive(Default)]
pub(crate) struct Liveness {
    is_up: bool,
    interrupted: Option<Time>,
    echoed: Time,
    peers: Vec<LivePeer>,
    pub(crate) news: Vec<PeerNews>,
}

#[derive(Default)]
struct LivePeer {
    process: Process,
    heard: Time,
    is_silent: bool,
    is_attached: bool,
    absent: Option<Time>,
    interruptions: u64,
}

impl Liveness {
    /// The own heartbeat came back. Whether the link was down until now.
    pub(crate) fn echo(&mut self, now: Time) -> bool {
        (self.echoed, self.interrupted) = (now, None);
        if self.is_up {
            return false;
        }
        self.is_up = true;
        for peer in &mut self.peers {
            (peer.heard, peer.is_attached, peer.absent) = (now, false, None);
        }
        self.news.push(PeerNews::Link(true));
        true
    }

    /// A peer's heartbeat came. Whether it may have lost messages since the one before.
    pub(crate) fn beat(&mut self, from: Process, seq: u64, interruptions: u64, hello: bool, now: Time) -> bool {
        let place = self.peers.iter().position(|peer| peer.process == from).unwrap_or_else(|| {
            self.peers.push(LivePeer { process: from, interruptions, ..LivePeer::default() });
            self.peers.len() - 1
        });
        let peer = &mut self.peers[place];
        (peer.heard, peer.is_silent) = (now, false);
        // Whoever does not ask has heard itself, or somebody: it is subscribed.
        peer.is_attached |= !hello;
        let was_interrupted = std::mem::replace(&mut peer.interruptions, interruptions) != interruptions;
        self.news.push(PeerNews::Heard { peer: from, seq });
        was_interrupted
    }

    pub(crate) fn away(&mut self, from: Process) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.process == from) {
            (peer.is_attached, peer.absent) = (false, None);
        }
    }

    pub(crate) fn farewell(&mut self, from: Process) {
        self.lose(from, Departure::Drained);
    }

    pub(crate) fn interrupted(&mut self, now: Time) {
        self.interrupted.get_or_insert(now);
        self.go_down();
    }

    /// A look at who is subscribed.
    pub(crate) fn look(&mut self, is_subscribed: impl Fn(Process) -> bool, now: Time) {
        if !self.is_up {
            return;
        }
        let mut lost = Vec::new();
        for peer in &mut self.peers {
            if is_subscribed(peer.process) {
                (peer.is_attached, peer.absent) = (true, None);
                continue;
            }
            let since = *peer.absent.get_or_insert(now);
            let is_gone = match peer.is_attached {
                true => now.saturating_since(since) >= CONFIRM,
                false => now.saturating_since(peer.heard) >= GONE,
            };
            if is_gone {
                lost.push(peer.process);
            }
        }
        lost.into_iter().for_each(|peer| self.lose(peer, Departure::ReplicaLost));
    }

    /// Does what is due.
    pub(crate) fn timeout(&mut self, now: Time) {
        if self.is_up && now.saturating_since(self.echoed) >= LINK_LOST {
            self.go_down();
        }
        if !self.is_up {
            return;
        }
        for peer in &mut self.peers {
            if !peer.is_silent && now.saturating_since(peer.heard) >= SILENT {
                peer.is_silent = true;
                self.news.push(PeerNews::Lost { peer: peer.process, cause: Departure::ReplicaSilent });
            }
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether the subscription is not back in the time that a reconnect takes.
    pub(crate) fn is_cut_off(&self, now: Time) -> bool {
        self.interrupted.is_some_and(|since| now.saturating_since(since) >= RECONNECT)
    }

    pub(crate) fn knows(&self, process: Process) -> bool {
        self.peers.iter().any(|peer| peer.process == process)
    }

    /// The peers, silent ones too.
    pub(crate) fn all(&self) -> impl Iterator<Item = Process> {
        self.peers.iter().map(|peer| peer.process)
    }

    /// The peers that are heard from.
    pub(crate) fn present(&self) -> impl Iterator<Item = Process> {
        self.peers.iter().filter(|peer| !peer.is_silent).map(|peer| peer.process)
    }

    fn go_down(&mut self) {
        if std::mem::take(&mut self.is_up) {
            self.news.push(PeerNews::Link(false));
        }
    }

    fn lose(&mut self, process: Process, cause: Departure) {
        if self.knows(process) {
            self.peers.retain(|peer| peer.process != process);
            self.news.push(PeerNews::Lost { peer: process, cause });
        }
    }
}
