//! Finds out whether the link of a process to Redis is up and which peers are alive. It uses the same signs as the
//! adapter of the host: the own heartbeat, the heartbeats of peers, and their subscriptions.

use std::time::Duration;

use pointwork_core::Time;
use pointwork_core::decisions::Departure;

use crate::calls::events::Process;

/// The link is down when the own heartbeat has not come back for so long.
const LINK_LOST: Duration = Duration::from_millis(1_500);
/// A peer is silent when its heartbeat has not come for so long.
const SILENT: Duration = Duration::from_secs(3);
/// How long a peer must be without a subscription until it is lost.
const CONFIRM: Duration = Duration::from_millis(100);
/// After so long a peer is lost that did not come back after the link was down.
const GONE: Duration = Duration::from_secs(1);
/// How long open requests wait for an interrupted subscription.
const RECONNECT: Duration = Duration::from_millis(600);

/// News of the link or of a peer.
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
    /// Takes the own heartbeat. Returns whether the link was down until now.
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

    /// Takes a peer's heartbeat. Returns whether the peer may have lost messages since its last one.
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

    /// Checks which peers are subscribed.
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

    /// Finds out whether the link is down and which peers are silent.
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

    /// Whether the subscription has been interrupted for longer than a reconnect takes.
    pub(crate) fn is_cut_off(&self, now: Time) -> bool {
        self.interrupted.is_some_and(|since| now.saturating_since(since) >= RECONNECT)
    }

    pub(crate) fn knows(&self, process: Process) -> bool {
        self.peers.iter().any(|peer| peer.process == process)
    }

    /// All peers, including silent ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = Process> {
        self.peers.iter().map(|peer| peer.process)
    }

    /// The peers that are not silent.
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
