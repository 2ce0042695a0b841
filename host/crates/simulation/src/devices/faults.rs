//! What goes wrong with replicas and the store.

use super::events::{EndHeard, Event};
use super::world::{MS, SECOND, World};
use crate::draws::Drawn;
use crate::scenario::Span;

use pointwork_core::device::{Record, Status};

/// How often records are looked for that name a dead replica, and how soon again.
const SCANS: u32 = 4;
const SCAN_EVERY_US: u64 = 6 * SECOND;
/// A replica hears within so many milliseconds that the store is back.
const BACK_MS: Span = Span { min: 0, max: 1_000 };

impl World<'_> {
    /// Everything that goes wrong, by its moment.
    pub(super) fn plan_trouble(&mut self) {
        let (replicas, store, draws) = (&self.scenario.replicas, &self.scenario.store, self.draws);
        for nth in 0..draws.span(replicas.kills, Drawn::Kill, 0, 0) {
            self.at(draws.below(self.end_us, Drawn::Kill, 1, nth), Event::Kill { nth });
        }
        for nth in 0..draws.span(store.away, Drawn::StoreAway, u64::MAX, 0) {
            self.at(draws.below(self.end_us, Drawn::StoreSpan, 1, nth), Event::StoreAway { nth });
        }
    }

    /// From now on nothing goes wrong.
    pub(super) fn heal(&mut self) {
        if self.store.is_away {
            self.at(self.now_us, Event::StoreBack { is_empty: false });
        }
        for _ in 0..std::mem::take(&mut self.starting) {
            self.start();
        }
    }

    pub(super) fn kill(&mut self, nth: u64) {
        let killed: Vec<usize> = if self.scenario.replicas.all_at_once {
            self.running.clone()
        } else {
            let place = self.draws.below(self.running.len() as u64, Drawn::Killed, 0, nth) as usize;
            self.running.get(place).copied().into_iter().collect()
        };
        for replica in killed {
            self.replicas[replica].is_running = false;
            self.running.retain(|running| *running != replica);
            for socket in 0..self.sockets.len() {
                if self.sockets[socket].replica == replica && self.sockets[socket].is_known {
                    self.ended_at_replica(socket, EndHeard::Lost);
                }
            }
            let (scenario, whom) = (&self.scenario.replicas, replica as u64);
            let noticed_us = self.draws.micros(scenario.noticed_ms, Drawn::Noticed, u64::MAX - whom, nth);
            let back_us = self.draws.micros(scenario.back_ms, Drawn::Back, whom, nth);
            self.after(noticed_us, Event::DeadKnown { replica, scans_left: SCANS });
            self.starting += 1;
            self.after(back_us, Event::Start);
        }
    }

    /// A replica is there in the place of one that was killed.
    pub(super) fn start_another(&mut self) {
        if self.starting > 0 {
            self.starting -= 1;
            self.start();
        }
    }

    pub(super) fn dead_known(&mut self, dead: usize, scans_left: u32) {
        self.replicas[dead].is_known_dead = true;
        let uid = self.replicas[dead].uid.clone();
        let names = |record: &Record| {
            let by_holder = record.holder.as_ref().is_some_and(|holder| holder.replica == uid);
            let by_end = record.ended.as_ref().is_some_and(|ended| ended.replica == uid);
            by_holder || by_end && record.status != Status::Offline
        };
        let orphans: Vec<usize> =
            (0..self.devices.len()).filter(|device| names(&self.store.records[*device])).collect();
        for place in 0..self.running.len() {
            let replica = self.running[place];
            let at = self.moment(replica);
            let machine = &mut self.replicas[replica].machine;
            machine.handle_replica_gone(&uid, at);
            for device in &orphans {
                machine.handle_orphan(&self.devices[*device].id, uid.clone(), at);
            }
        }
        if scans_left > 0 {
            self.after(SCAN_EVERY_US, Event::DeadKnown { replica: dead, scans_left: scans_left - 1 });
        }
    }

    pub(super) fn store_away(&mut self, nth: u64) {
        let store = &self.scenario.store;
        let away_us = self.draws.micros(store.away_ms, Drawn::StoreSpan, 2, nth);
        let is_empty = self.draws.percent(store.empty_percent, Drawn::StoreEmpty, 0, nth);
        (self.store.is_away, self.trouble_us) = (true, Some(self.now_us));
        self.after(away_us, Event::StoreBack { is_empty });
    }

    pub(super) fn store_back(&mut self, is_empty: bool) {
        if !std::mem::take(&mut self.store.is_away) {
            return;
        }
        self.trouble_us = Some(self.now_us);
        if is_empty && self.now_us < self.end_us {
            self.store.records.fill(Record::default());
        }
        for place in 0..self.running.len() {
            let replica = self.running[place];
            let delay_us = self.draws.micros(BACK_MS, Drawn::StoreAway, replica as u64, self.now_us / MS);
            self.after(delay_us, Event::StoreSaidBack { replica });
        }
    }

    pub(super) fn store_said_back(&mut self, replica: usize) {
        self.trouble_us = Some(self.now_us);
        if self.replicas[replica].is_running {
            let at = self.moment(replica);
            self.replicas[replica].machine.handle_store_back(at);
        }
    }
}
