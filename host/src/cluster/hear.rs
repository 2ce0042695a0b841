//! Hears what the other replicas tell, and passes it on to the subscribers.

use std::sync::Arc;

use pointwork_core::{PeerCommand, PeerDirectory, Time, decisions::Departure};
use socketioxide_redis_streams::{Listener, Loss, PeerEvent};

use super::{news::News, notes, replicas::Replicas};
use crate::driver::keep_time;

impl Replicas {
    /// Takes part in the cluster: from here on the subscribers hear of the other replicas.
    pub fn start(self: &Arc<Self>) {
        if self.cluster.is_alone() {
            return;
        }
        self.tell(&News::Link { up: false });
        self.cluster.listen(self.clone());
        self.cluster.start();
        let timed_out = |replicas: &Arc<Self>| replicas.step(|book, now| book.handle_timeout(now));
        keep_time(self, |replicas: &Self| &replicas.book, timed_out);
    }

    /// Takes a step of the book and carries out all that follows from it, before the next step.
    fn step(&self, step: impl FnOnce(&mut PeerDirectory<String>, Time)) {
        let _in_order = self.order.lock();
        self.book.drive(
            |peers, now| step(&mut peers.0, now),
            |command| {
                self.carry_out(&command);
                Vec::new()
            },
        );
    }

    fn carry_out(&self, command: &PeerCommand<String>) {
        if let PeerCommand::AskSnapshot { peer } = command {
            if let Err(error) = self.cluster.note(Some(peer), notes::ASK, rmpv::Value::Nil) {
                tracing::debug!(%error, peer, "a peer was not asked for its snapshot");
            }
            return;
        }
        let owner = |socket| self.book.peek(|peers| peers.0.owner(socket).cloned());
        self.tell(&News::Daemons { command, owner: &owner });
    }

    /// A peer drains. Its number must still be its own when the subscribers hear it.
    fn drain(&self, peer: &String) {
        let _in_order = self.order.lock();
        if let Some(replica) = self.book.peek(|peers| peers.0.replica(peer)) {
            self.tell(&News::Draining { replica, is_draining: true });
        }
    }
}

impl Listener for Replicas {
    fn revision(&self) -> u64 {
        self.roster.lock().seq()
    }

    fn peer(&self, event: PeerEvent) {
        if !matches!(event, PeerEvent::Heard { .. }) {
            self.policy_news.notify_one();
        }
        match event {
            PeerEvent::Link { up } => self.tell(&News::Link { up }),
            PeerEvent::Heard { peer, revision } => self.step(|book, now| book.handle_seen(&peer, revision, now)),
            PeerEvent::Lost { peer, loss } => {
                let cause = match loss {
                    Loss::Killed => Departure::ReplicaLost,
                    Loss::Left => Departure::Drained,
                    Loss::Silent => Departure::ReplicaSilent,
                };
                let replica = self.book.peek(|peers| peers.0.replica(&peer));
                self.step(|book, now| book.handle_lost(&peer, cause, now));
                if loss != Loss::Silent {
                    // Another replica may get the number next.
                    if let Some(replica) = replica {
                        self.tell(&News::Draining { replica, is_draining: false });
                    }
                    self.tell(&News::ReplicaGone { peer: &peer });
                }
            }
        }
    }

    fn note(&self, peer: &str, number: u32, data: rmpv::Value) {
        let peer = peer.to_owned();
        let understood = match number {
            notes::CHANGE => notes::to_change(data).map(|change| {
                self.step(|book, now| book.handle_change(&peer, change, now));
            }),
            notes::PART => notes::to_part(data).map(|part| {
                self.step(|book, now| book.handle_snapshot_part(&peer, part, now));
            }),
            notes::RESUMED => notes::to_resumed(data).map(|resumed| self.tell(&News::Resumed(&resumed))),
            notes::ENDED => notes::to_ends(data).map(|ends| self.hear_ends(ends)),
            notes::ASK => {
                self.tell_all(&peer);
                self.tell_ends(&peer);
                Some(())
            }
            notes::LEAVING => {
                self.drain(&peer);
                let noted = self.cluster.note(Some(&peer), notes::NOTED, rmpv::Value::Nil);
                if let Err(error) = noted {
                    tracing::debug!(%error, peer, "a peer that is leaving was not answered");
                }
                Some(())
            }
            notes::EXPERIMENTS => {
                self.experiments.notify_one();
                Some(())
            }
            notes::NOTED => {
                self.noted.lock().insert(peer);
                Some(())
            }
            notes::POLICY => {
                self.policy_news.notify_one();
                Some(())
            }
            // Of a later version.
            _ => Some(()),
        };
        if understood.is_none() {
            metrics::counter!("pointwork_notes_malformed_total").increment(1);
        }
    }

    fn missed(&self, broadcasts: Option<u64>) {
        // The adapter has counted and logged it. Clients of this replica have missed them as they miss what comes while
        // they are away.
        metrics::counter!("pointwork_broadcast_gaps_total").increment(1);
        // An emptied stream is that of an emptied Redis.
        if broadcasts.is_none() {
            self.tell(&News::RedisEmptied);
        }
    }
}
