//! The world of the simulation: replicas, the store, the network between them, and operators.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pointwork_core::rollout::{Digest, Document, Follower, ReplicaReport, RolloutStep, RolloutView, Uid};

use crate::auditor::{Auditor, Ready};
use crate::seeded::Random;

const TIMEOUT_MS: u64 = 3_000;
const POLL_MS: u64 = 1_000;
const DELAY_MAX_MS: u64 = 80;
/// After how long the others know that a replica came, or is gone.
const NEWS_MS: u64 = 400;
/// A replica that joined is ready at the earliest after that.
const READY_MS: u64 = 1_000;
const CHAOS_MS: u64 = 40_000;
const QUIET_MS: u64 = 30_000;
const TRACE_MAX: usize = 120;
const MODULES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// What is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// A write wins whatever is there.
    NothingCompared,
    /// A replica takes itself for the only one.
    PeersForgotten,
    /// Each report of another is read as that it is prepared.
    EveryoneElsePrepared,
}

struct Replica {
    follower: Follower,
    serving: Option<Digest>,
    generation: u64,
    held: BTreeSet<Digest>,
    kept: BTreeSet<Digest>,
    joined_ms: u64,
    died_ms: Option<u64>,
    is_turning: bool,
    is_turn_due: bool,
}

#[derive(Debug)]
enum Event {
    Poll(Uid),
    Read(Uid, ReplicaReport),
    Seen(Uid, Box<RolloutView>),
    Write(Uid, Box<Document>, Box<Document>, BTreeSet<Digest>),
    Done(Uid, Digest, bool),
    Operator(Box<Document>, Box<Document>, Option<Digest>),
    Chaos,
}

pub(crate) struct World {
    random: Random,
    /// What is yet to disturb, each a seed of its own.
    disturbances: VecDeque<u64>,
    now_ms: u64,
    queue: BTreeMap<(u64, u64), Event>,
    seq: u64,
    document: Document,
    modules: BTreeSet<Digest>,
    reports: BTreeMap<Uid, ReplicaReport>,
    replicas: BTreeMap<Uid, Replica>,
    /// Who cannot prepare what; a hung one answers when nobody waits for it any more.
    cannot: BTreeSet<(Uid, Digest)>,
    hangs: BTreeSet<(Uid, Digest)>,
    joined: u64,
    is_quiet: bool,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) auditor: Auditor,
    pub(crate) trace: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, disturbances: Vec<u64>, mutation: Option<Mutation>) -> Self {
        let mut world = Self {
            random: Random::new(seed),
            disturbances: disturbances.into(),
            now_ms: 1_000_000,
            queue: BTreeMap::new(),
            seq: 0,
            document: Document::default(),
            modules: BTreeSet::new(),
            reports: BTreeMap::new(),
            replicas: BTreeMap::new(),
            cannot: BTreeSet::new(),
            hangs: BTreeSet::new(),
            joined: 0,
            is_quiet: false,
            mutation,
            auditor: Auditor::new(),
            trace: Vec::new(),
        };
        for _ in 0..3 {
            world.join();
        }
        world
    }

    pub(crate) fn play(&mut self) {
        let start_ms = self.now_ms;
        self.after(0, Event::Chaos);
        while let Some(((at_ms, _), event)) = self.queue.pop_first() {
            self.now_ms = at_ms;
            if at_ms > start_ms + CHAOS_MS && !self.is_quiet {
                self.quiet();
            }
            if at_ms > start_ms + CHAOS_MS + QUIET_MS {
                break;
            }
            if self.trace.len() >= TRACE_MAX {
                self.trace.remove(0);
            }
            self.trace.push(format!("{at_ms} {event:?}"));
            self.handle(event);
            self.auditor.time(&self.document, self.now_ms, TIMEOUT_MS);
        }
        self.agree();
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Poll(uid) => {
                self.turn(&uid);
                self.after(POLL_MS, Event::Poll(uid));
            }
            Event::Read(uid, report) => self.read(uid, report),
            Event::Seen(uid, seen) => self.seen(&uid, &seen),
            Event::Write(uid, was, is, modules) => {
                self.write(&was, &is, modules);
                if let Some(replica) = self.living(&uid) {
                    replica.is_turning = false;
                    self.turn(&uid);
                }
            }
            Event::Done(uid, digest, is_good) => self.done(&uid, &digest, is_good),
            Event::Operator(was, is, module) => {
                if !self.write(&was, &is, module.into_iter().collect()) {
                    self.auditor.note("lost a race");
                }
            }
            Event::Chaos => self.chaos(),
        }
    }

    fn turn(&mut self, uid: &Uid) {
        let delay = self.delay();
        let Some(replica) = self.living(uid) else { return };
        if std::mem::replace(&mut replica.is_turning, true) {
            replica.is_turn_due = true;
            return;
        }
        let report = replica.follower.report();
        self.after(delay, Event::Read(uid.clone(), report));
    }

    fn read(&mut self, uid: Uid, report: ReplicaReport) {
        if self.living(&uid).is_none() {
            return;
        }
        if self.reports.insert(uid.clone(), report.clone()) != Some(report) {
            self.tell_all();
        }
        let live = self.known_to(&uid);
        let mut reports = self.reports.clone();
        if self.mutation == Some(Mutation::EveryoneElsePrepared)
            && let Some(pending) = &self.document.pending
        {
            for report in reports.values_mut() {
                report.push = Some(pending.pushed_ms);
                report.prepared = Some(pending.digest.clone());
            }
        }
        let is_complete = self.now_ms >= self.replicas[&uid].joined_ms + NEWS_MS;
        let is_current_stored = self.document.current.as_ref().is_none_or(|digest| self.modules.contains(digest));
        let seen = RolloutView {
            is_current_stored,
            now_ms: self.now_ms,
            document: self.document.clone(),
            reports,
            live,
            is_complete,
        };
        let delay = self.delay();
        self.after(delay, Event::Seen(uid, Box::new(seen)));
    }

    fn seen(&mut self, uid: &Uid, seen: &RolloutView) {
        let Some(replica) = self.living(uid) else { return };
        replica.is_turning = false;
        let mut is_changed = std::mem::take(&mut replica.is_turn_due);
        for _ in 0..64 {
            let now_ms = self.now_ms;
            let stored = self.modules.clone();
            let replica = self.living(uid).unwrap();
            replica.follower.serves(replica.serving.clone(), replica.generation);
            let Some(step) = replica.follower.step(seen) else {
                if is_changed {
                    self.turn(uid);
                }
                return;
            };
            is_changed = true;
            match step {
                RolloutStep::Store(digest) => {
                    self.modules.insert(digest);
                    return self.turn(uid);
                }
                RolloutStep::Write(is) => return self.send_write(uid, seen, is, BTreeSet::new()),
                RolloutStep::Restore(is) => {
                    let kept = is.modules().intersection(&replica.kept).cloned().collect();
                    self.auditor.note("restored");
                    return self.send_write(uid, seen, is, kept);
                }
                RolloutStep::Switch(digest) => {
                    assert!(replica.held.remove(&digest), "it is prepared");
                    self.serve(uid, Some(digest));
                }
                RolloutStep::Unload => self.serve(uid, None),
                RolloutStep::Discard(digest) => assert!(replica.held.remove(&digest), "it is prepared"),
                RolloutStep::Quarantine(digest, _) => {
                    replica.held.remove(&digest);
                }
                RolloutStep::Free(_) => {}
                RolloutStep::Prepare(digest) if stored.contains(&digest) || replica.kept.contains(&digest) => {
                    replica.kept.insert(digest.clone());
                    replica.follower.keep(digest.clone());
                    self.prepare(uid, digest);
                }
                RolloutStep::Prepare(digest) => {
                    replica.follower.refused(&digest, "unreadable", "no such module", now_ms)
                }
            }
        }
        panic!("{uid} takes steps without end");
    }

    fn send_write(&mut self, uid: &Uid, seen: &RolloutView, is: Document, modules: BTreeSet<Digest>) {
        self.living(uid).unwrap().is_turning = true;
        let delay = self.delay();
        self.after(delay, Event::Write(uid.clone(), Box::new(seen.document.clone()), Box::new(is), modules));
    }

    fn prepare(&mut self, uid: &Uid, digest: Digest) {
        let key = (uid.clone(), digest.clone());
        let is_hung = self.hangs.contains(&key);
        let delay = if is_hung { TIMEOUT_MS + self.random.below(5_000) } else { 20 + self.random.below(400) };
        let is_good = !self.cannot.contains(&key);
        self.after(delay, Event::Done(uid.clone(), digest, is_good));
    }

    fn done(&mut self, uid: &Uid, digest: &Digest, is_good: bool) {
        let now_ms = self.now_ms;
        let Some(replica) = self.living(uid) else { return };
        if is_good {
            replica.held.insert(digest.clone());
            replica.follower.prepared(digest);
        } else {
            replica.follower.refused(digest, "memory", "too little", now_ms);
        }
        self.turn(uid);
    }

    fn serve(&mut self, uid: &Uid, digest: Option<Digest>) {
        self.auditor.switched(digest.as_ref());
        let replica = self.living(uid).unwrap();
        replica.serving = digest;
        replica.generation += 1;
    }

    fn write(&mut self, was: &Document, is: &Document, modules: BTreeSet<Digest>) -> bool {
        if self.document != *was && self.mutation != Some(Mutation::NothingCompared) {
            return false;
        }
        let is_ready = |replica: &&Replica| {
            let is_old = self.now_ms >= replica.joined_ms + READY_MS;
            replica.died_ms.is_none() && is_old && replica.follower.was_in_step()
        };
        let living = self.replicas.iter().filter(|(_, replica)| is_ready(replica));
        let ready: Vec<_> = living
            .map(|(uid, replica)| Ready { uid, has: replica.held.iter().chain(&replica.serving).cloned().collect() })
            .collect();
        self.auditor.written(&self.document, is, &ready);
        self.modules.extend(modules);
        self.document = is.clone();
        let wanted = self.document.modules();
        self.modules.retain(|digest| wanted.contains(digest));
        self.tell_all();
        true
    }

    /// A note to all; some get lost.
    fn tell_all(&mut self) {
        for uid in self.replicas.keys().cloned().collect::<Vec<_>>() {
            if !self.random.once_in(6) && self.living(&uid).is_some() {
                self.turn(&uid);
            }
        }
    }

    fn known_to(&self, uid: &Uid) -> BTreeSet<Uid> {
        if self.mutation == Some(Mutation::PeersForgotten) {
            return BTreeSet::from([uid.clone()]);
        }
        let is_known = |replica: &Replica| {
            let came = self.now_ms >= replica.joined_ms + NEWS_MS;
            came && replica.died_ms.is_none_or(|died_ms| self.now_ms < died_ms + NEWS_MS)
        };
        let known = self.replicas.iter().filter(|(_, replica)| is_known(replica)).map(|(uid, _)| uid.clone());
        known.chain([uid.clone()]).collect()
    }

    fn chaos(&mut self) {
        let Some(step) = self.disturbances.pop_front().filter(|_| !self.is_quiet) else { return };
        self.random = Random::new(step);
        let wait = 20 + self.random.below(1_500);
        self.after(wait, Event::Chaos);
        match self.random.below(20) {
            0..=7 => {
                self.operator();
                // Another one at the same moment.
                if self.random.once_in(4) {
                    self.operator();
                }
            }
            8 | 9 => self.kill(),
            10 | 11 if self.alive().len() < 4 => self.join(),
            12 | 13 => self.trip(),
            14 if self.random.once_in(2) => self.empty(),
            15 => {
                let key = (self.random.pick(&self.alive()), Digest::from(self.random.pick(&MODULES)));
                if self.random.once_in(2) {
                    self.cannot.insert(key)
                } else {
                    self.hangs.insert(key)
                };
            }
            16 => {
                self.cannot.clear();
                self.hangs.clear();
            }
            _ => {}
        }
    }

    /// Reads the document and writes what the operator wants, a while later.
    fn operator(&mut self) {
        let digest = Digest::from(self.random.pick(&MODULES));
        let (force, now_ms) = (self.random.once_in(5), self.now_ms);
        let was = self.document.clone();
        let (is, module) = match self.random.below(10) {
            0 => (was.undo(now_ms).ok().inspect(|_| self.auditor.note("undone")), None),
            1 => {
                let quarantined = was.quarantined.first().map_or(digest, |quarantined| quarantined.digest.clone());
                let is_stored = self.modules.contains(&quarantined);
                let retried = was.retry(&quarantined, is_stored, force, now_ms).ok();
                (retried.inspect(|_| self.auditor.note("retried")), None)
            }
            _ => match was.push(&digest, force, now_ms) {
                Ok(is) => (is, Some(digest)),
                Err(_) => {
                    self.auditor.note("push refused");
                    (None, None)
                }
            },
        };
        if let Some(is) = is {
            let delay = self.delay();
            self.after(delay, Event::Operator(Box::new(was), Box::new(is), module));
        }
    }

    fn kill(&mut self) {
        let alive = self.alive();
        if alive.len() > 1 {
            let uid = self.random.pick(&alive);
            let now_ms = self.now_ms;
            self.living(&uid).unwrap().died_ms = Some(now_ms);
            self.auditor.note("killed");
        }
    }

    fn join(&mut self) {
        self.joined += 1;
        let uid = Uid::from(format!("r{}", self.joined));
        let replica = Replica {
            follower: Follower::new(uid.clone(), TIMEOUT_MS),
            serving: None,
            generation: 0,
            held: BTreeSet::new(),
            kept: BTreeSet::new(),
            joined_ms: self.now_ms,
            died_ms: None,
            is_turning: false,
            is_turn_due: false,
        };
        self.replicas.insert(uid.clone(), replica);
        self.auditor.note("joined");
        self.after(0, Event::Poll(uid));
    }

    /// A breaker: the engine goes back to the native rule by itself.
    fn trip(&mut self) {
        let alive = self.alive();
        let uid = self.random.pick(&alive);
        let replica = self.living(&uid).unwrap();
        if let Some(digest) = replica.serving.take() {
            replica.held.remove(&digest);
            replica.follower.tripped(digest, "traps".into());
            self.turn(&uid);
        }
    }

    fn empty(&mut self) {
        self.auditor.note("emptied");
        self.document = Document::default();
        self.modules.clear();
        self.reports.clear();
    }

    fn quiet(&mut self) {
        self.is_quiet = true;
        self.cannot.clear();
        self.hangs.clear();
    }

    /// After a quiet time.
    fn agree(&self) {
        for uid in self.alive() {
            let replica = &self.replicas[&uid];
            assert_eq!(replica.serving, self.document.current, "converged: {uid}");
            assert!(replica.follower.is_in_step(), "converged: {uid}");
            assert!(!replica.follower.is_ahead(&self.document), "newest-wins: {uid} knows more");
        }
        assert!(self.document.pending.is_none(), "pushes-end");
        let missing: Vec<_> = self.document.current.iter().filter(|digest| !self.modules.contains(*digest)).collect();
        assert!(missing.is_empty(), "converged: what serves can be had by whoever joins");
    }

    fn living(&mut self, uid: &Uid) -> Option<&mut Replica> {
        self.replicas.get_mut(uid).filter(|replica| replica.died_ms.is_none())
    }

    fn alive(&self) -> Vec<Uid> {
        let alive = self.replicas.iter().filter(|(_, replica)| replica.died_ms.is_none());
        alive.map(|(uid, _)| uid.clone()).collect()
    }

    fn delay(&mut self) -> u64 {
        1 + self.random.below(DELAY_MAX_MS)
    }

    fn after(&mut self, delay_ms: u64, event: Event) {
        self.seq += 1;
        self.queue.insert((self.now_ms + delay_ms, self.seq), event);
    }
}
