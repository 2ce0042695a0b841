//! Kills replicas, tells the others of it, and heals everything at the end.

use pointwork_core::devices::{DeviceRecord, DeviceStatus};

use super::state::DeviceWorld;
use crate::devices::events::{DeviceEvent, SocketEnd};
use crate::time::SECOND;

/// How often records are looked for that name a dead replica, and how soon again.
const SCANS: u32 = 4;
const SCAN_EVERY_US: u64 = 6 * SECOND;

impl DeviceWorld<'_> {
    /// From now on nothing goes wrong.
    pub(crate) fn heal(&mut self) {
        self.conditions.heal();
        if self.is_store_away {
            self.at(self.now_us, DeviceEvent::StoreBack { is_empty: false });
        }
        for _ in 0..std::mem::take(&mut self.starting) {
            self.start();
        }
    }

    pub(super) fn kill(&mut self, nth: u64) {
        let places = self.conditions.killed(nth, self.running.len());
        let killed: Vec<usize> = places.into_iter().map(|place| self.running[place]).collect();
        for replica in killed {
            self.auditor.count(format_args!("killed"));
            self.replicas[replica].is_running = false;
            self.running.retain(|running| *running != replica);
            for socket in 0..self.sockets.len() {
                if self.sockets[socket].replica == replica && self.sockets[socket].is_known {
                    self.ended_at_replica(socket, SocketEnd::Lost);
                }
            }
            let (noticed_us, back_us) = self.conditions.death_us(replica, nth);
            self.after(noticed_us, DeviceEvent::DeathNoticed { replica, scans_left: SCANS });
            self.starting += 1;
            self.after(back_us, DeviceEvent::Start);
        }
    }

    /// A replica is there in the place of one that was killed.
    pub(super) fn start_another(&mut self) {
        if self.starting > 0 {
            self.starting -= 1;
            self.start();
        }
    }

    pub(super) fn death_noticed(&mut self, dead: usize, scans_left: u32) {
        self.replicas[dead].is_known_dead = true;
        let uid = self.replicas[dead].uid.clone();
        let names = |record: &DeviceRecord| {
            let by_holder = record.holder.as_ref().is_some_and(|holder| holder.replica == uid);
            let by_end = record.ended.as_ref().is_some_and(|ended| ended.replica == uid);
            by_holder || by_end && record.status != DeviceStatus::Offline
        };
        let orphans: Vec<usize> = (0..self.devices.len()).filter(|device| names(&self.records[*device])).collect();
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
            self.after(SCAN_EVERY_US, DeviceEvent::DeathNoticed { replica: dead, scans_left: scans_left - 1 });
        }
    }
}
