//! A seeded simulation of replicas that tell each other, over a bad network, what their sockets registered. Messages
//! are late and get lost, one by one or for a stretch of time; replicas die, hang and come back. After every step each
//! directory's invariants must hold, and whenever the network has been quiet for a while, every directory must hold what the
//! announcers hold.
//!
//! `SEED=123 cargo test -p pointwork-core --test gossip` runs one seed, `SEEDS=50000` so many. A failure
//! prints the seed and the shortest schedule that fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod mirror;
mod replica;
#[path = "../seeded/mod.rs"]
mod seeded;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pointwork_core::decisions::Departure;
use pointwork_core::{Announcer, NumberedChange, PeerCommand, SnapshotPart, SocketId, Time};
use proptest::collection::vec;

use crate::replica::Replica;
use crate::seeded::Random;

const SEEDS: u64 = 300;
/// Rounds of a schedule at most, and steps of a round; half as many on average.
const ROUNDS_MAX: usize = 7;
const STEPS_MAX: usize = 300;
/// How long nothing may be lost and nobody change until all must agree: a replica that died unseen is given up after
/// 10 s.
const QUIET: Duration = Duration::from_secs(15);

/// What a replica is called; never used twice.
pub(crate) type Name = u32;
/// When each socket of each replica first registered each method.
pub(crate) type Announcements = BTreeMap<(Name, SocketId, Arc<str>, Arc<str>), Time>;

#[derive(Debug, Clone)]
pub(crate) enum Message {
    Seen(u64),
    Change(NumberedChange),
    Ask,
    Part(SnapshotPart),
    /// The sender's channel has nobody on it any more: it is dead. Not sent by itself, so in no order with the rest.
    Dead,
}

struct World {
    random: Random,
    now: Time,
    replicas: BTreeMap<Name, Replica>,
    last_name: Name,
    last_socket: u128,
    announced: Announcements,
    is_lossy: bool,
    /// What happened, for the proof that the simulation reaches it.
    seen: BTreeMap<&'static str, usize>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            random: Random::new(seed),
            now: Time::ZERO,
            replicas: BTreeMap::new(),
            last_name: 0,
            last_socket: 0,
            announced: Announcements::new(),
            is_lossy: true,
            seen: BTreeMap::new(),
        };
        for _ in 0..2 + world.random.below(3) {
            world.start();
        }
        world
    }

    fn run(&mut self, rounds: &[Vec<u64>]) {
        for steps in rounds {
            self.is_lossy = true;
            for step in steps {
                self.random = Random::new(*step);
                self.disturb();
                let span_us = self.random.pick(&[0, 1_000, 20_000, 100_000, 400_000]);
                self.pass(Duration::from_micros(span_us));
            }
            self.settle();
        }
    }

    /// Lets the network be quiet, and then compares every directory with the announcers.
    fn settle(&mut self) {
        self.is_lossy = false;
        for replica in self.replicas.values_mut() {
            (replica.hung_until, replica.deaf_until) = (Time::ZERO, Time::ZERO);
        }
        let end = self.now + QUIET;
        while self.now < end {
            self.pass(Duration::from_millis(50));
        }
        for (name, replica) in &self.replicas {
            let others = self.replicas.iter().filter(|(other, _)| *other != name);
            let announcers: Vec<(Name, &Announcer)> =
                others.map(|(other, replica)| (*other, &replica.announcer)).collect();
            replica.check_in_step(&announcers, self.now);
        }
    }

    fn disturb(&mut self) {
        let Some(name) = self.any_replica() else { return self.start() };
        match self.random.below(100) {
            0..=39 => self.join(name),
            40..=54 => self.leave(name),
            55..=69 => self.close(name),
            70 if self.replicas.len() < 6 => self.start(),
            71 => self.die(name),
            72 => {
                self.count("hung");
                let hung_until = self.now + Duration::from_millis(self.random.below(12_000));
                self.replica(name).hung_until = hung_until;
            }
            73 => {
                self.count("deaf");
                let deaf_until = self.now + Duration::from_millis(self.random.below(3_000));
                self.replica(name).deaf_until = deaf_until;
            }
            _ => {}
        }
    }

    fn start(&mut self) {
        self.last_name += 1;
        let beat = self.now + Duration::from_millis(self.random.below(500));
        self.replicas.insert(self.last_name, Replica::new(self.last_name, beat));
    }

    /// Every second death is noticed by others at once; the rest are silence.
    fn die(&mut self, name: Name) {
        self.replicas.remove(&name);
        if self.random.once_in(2) {
            self.count("death noticed");
            let arrival = self.now + Duration::from_millis(20);
            for replica in self.replicas.values_mut() {
                replica.inbox.push((arrival, name, Message::Dead));
            }
        }
    }

    fn join(&mut self, name: Name) {
        if self.is_hung(name) {
            return;
        }
        let known = self.any_socket(name);
        let (socket, user) = match known {
            // A socket may come as another user, once in a long while.
            Some((socket, user)) if !self.random.once_in(3) => {
                (socket, if self.random.once_in(50) { "c".into() } else { user })
            }
            _ => {
                self.last_socket += 1;
                (SocketId(self.last_socket), self.random.pick(&["a", "b"]).into())
            }
        };
        let method: Arc<str> = self.random.pick(&["m", "n", "o", "p"]).into();
        let now = self.now;
        self.announced.entry((name, socket, user.clone(), method.clone())).or_insert(now);
        let numbered = self.replica(name).announcer.join(socket, user, true, method, now);
        self.announce(name, numbered);
    }

    fn leave(&mut self, name: Name) {
        let Some((socket, _)) = self.any_socket(name) else { return };
        let method: Arc<str> = self.random.pick(&["m", "n", "o", "p"]).into();
        let numbered = self.replica(name).announcer.leave(socket, &method);
        self.announce(name, numbered);
    }

    fn close(&mut self, name: Name) {
        let Some((socket, _)) = self.any_socket(name) else { return };
        let numbered = self.replica(name).announcer.gone(socket, Departure::Closed);
        self.announce(name, numbered);
    }

    fn announce(&mut self, from: Name, numbered: Option<NumberedChange>) {
        if let Some(numbered) = numbered {
            self.broadcast(from, &Message::Change(numbered));
        }
    }

    fn broadcast(&mut self, from: Name, message: &Message) {
        for to in self.replicas.keys().copied().filter(|to| *to != from).collect::<Vec<_>>() {
            self.send(from, to, message.clone());
        }
    }

    /// Messages of one sender arrive in the order they were sent, or not at all.
    fn send(&mut self, from: Name, to: Name, message: Message) {
        let is_lost = self.is_lossy && self.random.once_in(12);
        let delay_max_us = if self.random.once_in(10) { 300_000 } else { 5_000 };
        let delay_us = self.random.below(delay_max_us);
        let Some(replica) = self.replicas.get_mut(&to) else { return };
        if is_lost || replica.deaf_until > self.now {
            return self.count("lost");
        }
        let last = replica.last_arrival.entry(from).or_default();
        *last = (*last).max(self.now + Duration::from_micros(delay_us));
        replica.inbox.push((*last, from, message));
    }

    /// Time passes; whoever is not hung does what is due.
    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        for name in self.replicas.keys().copied().collect::<Vec<_>>() {
            if self.is_hung(name) {
                continue;
            }
            let now = self.now;
            for (from, message) in self.replica(name).due(now) {
                let commands = self.receive(name, from, message);
                self.carry_out(name, commands);
            }
            let commands = self.replica(name).keep_time(now);
            self.carry_out(name, commands);
            if let Some(beat) = self.replica(name).beat(now) {
                self.broadcast(name, &beat);
            }
        }
    }

    fn receive(&mut self, name: Name, from: Name, message: Message) -> Vec<PeerCommand<Name>> {
        let now = self.now;
        if !matches!(message, Message::Ask) {
            return self.replica(name).hear(from, message, now);
        }
        self.count("asked");
        for part in self.replica(name).announcer.snapshot(now).into_parts(200) {
            self.send(name, from, Message::Part(part));
        }
        Vec::new()
    }

    fn carry_out(&mut self, name: Name, commands: Vec<PeerCommand<Name>>) {
        for command in commands {
            match &command {
                PeerCommand::AskSnapshot { peer } => self.send(name, *peer, Message::Ask),
                PeerCommand::Gone { cause: Departure::ReplicaSilent, .. } => self.count("silent"),
                PeerCommand::Gone { cause: Departure::ReplicaLost, .. } => self.count("dead"),
                PeerCommand::Gone { cause: Departure::TransportLost, .. } => self.count("vanished"),
                _ => {}
            }
            let Some(replica) = self.replicas.get_mut(&name) else { continue };
            replica.mirror.hear(&command, &replica.directory, &self.announced, self.now);
        }
        self.replica(name).check();
    }

    fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn replica(&mut self, name: Name) -> &mut Replica {
        self.replicas.get_mut(&name).expect("a replica that is there")
    }

    fn is_hung(&mut self, name: Name) -> bool {
        let now = self.now;
        self.replica(name).hung_until > now
    }

    fn any_replica(&mut self) -> Option<Name> {
        let names: Vec<Name> = self.replicas.keys().copied().collect();
        if names.is_empty() { None } else { Some(self.random.pick(&names)) }
    }

    /// A socket of a replica that is not hung.
    fn any_socket(&mut self, name: Name) -> Option<(SocketId, Arc<str>)> {
        let now = self.now;
        if self.is_hung(name) || self.replica(name).announcer.sockets() == 0 {
            return None;
        }
        let replica = self.replica(name);
        let mut sockets = replica.announcer.snapshot(now).sockets;
        let index = self.random.below(sockets.len() as u64) as usize;
        let announced = sockets.swap_remove(index);
        Some((announced.socket, announced.user))
    }
}

#[test]
fn directories_agree_with_announcers_whatever_the_network_does() {
    let seeds = seeded::seeds(SEEDS);
    let rounds = vec(seeded::steps(0..=STEPS_MAX), 1..=ROUNDS_MAX);
    let seen: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    for seed in &seeds {
        seeded::play(*seed, &rounds, |rounds, _| {
            let mut world = World::new(*seed);
            world.run(&rounds);
            for (what, count) in world.seen {
                *seen.borrow_mut().entry(what).or_default() += count;
            }
        });
    }
    let seen = seen.into_inner();
    if seeds.len() > 1 {
        assert_eq!(seen.len(), 8, "{seen:?}");
        assert!(seen.values().all(|count| *count > 500), "{seen:?}");
    }
}
