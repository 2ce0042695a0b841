//! The world of one seed: what there is in it, and its clock, which jumps from one event to the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::Time;
use pointwork_core::device::{DeviceSettings, Moment, Record, Sessions};

use super::events::Event;
use super::meter::DeviceMeter;
use super::report::SettleReport;
use super::rules::SettleRules;
use super::sockets::{Connector, Device, Socket};
use crate::draws::{Drawn, Draws};
use crate::scenario::SettleScenario;

/// The wall clock when the world began, in milliseconds since 1970.
const BEGAN_MS: u64 = 1_800_000_000_000;
pub(super) const MS: u64 = 1_000;
pub(super) const SECOND: u64 = 1_000_000;
/// How long it is quiet at the end, beyond the time after which half-open connections are noticed and devices are back.
const CALM_US: u64 = 90 * SECOND;

pub(super) struct World<'a> {
    pub(super) scenario: &'a SettleScenario,
    pub(super) rules: &'a dyn SettleRules,
    pub(super) draws: Draws,
    pub(super) settings: DeviceSettings,
    pub(super) now_us: u64,
    /// The end of what is measured; afterwards all is quiet.
    pub(super) end_us: u64,
    queue: BTreeMap<(u64, u64), Event>,
    last_seq: u64,
    /// Every replica there ever was, and which of them are running.
    pub(super) replicas: Vec<Replica>,
    pub(super) running: Vec<usize>,
    /// How many are to start.
    pub(super) starting: usize,
    pub(super) devices: Vec<Device>,
    pub(super) by_id: BTreeMap<Arc<str>, usize>,
    /// Every socket there ever was.
    pub(super) sockets: Vec<Socket>,
    pub(super) store: Store,
    /// When the store was last in trouble.
    pub(super) trouble_us: Option<u64>,
    /// Devices that something happened to in this step.
    touched: Vec<usize>,
    pub(super) report: SettleReport,
}

pub(super) struct Replica {
    pub(super) uid: Arc<str>,
    pub(super) machine: Sessions,
    pub(super) is_running: bool,
    /// The others know that it is dead.
    pub(super) is_known_dead: bool,
    started_us: u64,
    /// Its wall clock against the others', in milliseconds.
    skew_ms: u64,
}

/// Records that are changed by compare-and-set; it can be away, and come back empty.
#[derive(Default)]
pub(super) struct Store {
    /// By device.
    pub(super) records: Vec<Record>,
    pub(super) is_away: bool,
}

impl<'a> World<'a> {
    pub(super) fn new(scenario: &'a SettleScenario, seed: u64, rules: &'a dyn SettleRules) -> World<'a> {
        let mut world = World {
            scenario,
            rules,
            draws: Draws::new(seed),
            settings: settings(scenario),
            now_us: 0,
            end_us: scenario.duration_s * SECOND,
            queue: BTreeMap::new(),
            last_seq: 0,
            replicas: Vec::new(),
            running: Vec::new(),
            starting: 0,
            devices: Vec::new(),
            by_id: BTreeMap::new(),
            sockets: Vec::new(),
            store: Store::default(),
            trouble_us: None,
            touched: Vec::new(),
            report: SettleReport::default(),
        };
        for _ in 0..scenario.replicas.count {
            world.start();
        }
        for device in 0..scenario.devices {
            world.add_device(device);
        }
        world.plan_trouble();
        world
    }

    fn add_device(&mut self, device: u64) {
        let id: Arc<str> = format!("device-{device}").into();
        let index = self.devices.len();
        self.by_id.insert(id.clone(), index);
        self.store.records.push(Record::default());
        let clients = &self.scenario.clients;
        self.devices.push(Device {
            id,
            connectors: Vec::new(),
            sockets: Vec::new(),
            address: self.draws.bits(Drawn::Move, device, u64::MAX),
            heartbeat_us: self.draws.micros(clients.heartbeat_ms, Drawn::Heartbeat, device, 0),
            messages: 0,
            questions: 0,
            meter: DeviceMeter::new(self.end_us, self.scenario.settle_ms * MS),
        });
        self.plan_device(index);
    }

    /// A replica starts.
    pub(super) fn start(&mut self) {
        let nth = self.replicas.len();
        let uid: Arc<str> = format!("r{nth}").into();
        let machine = Sessions::new(uid.clone(), self.settings);
        let skew_ms = self.draws.below(40, Drawn::Skew, nth as u64, 0);
        let started_us = self.now_us;
        self.running.push(nth);
        self.replicas.push(Replica { uid, machine, is_running: true, is_known_dead: false, started_us, skew_ms });
    }

    pub(super) fn at(&mut self, at_us: u64, event: Event) {
        self.last_seq += 1;
        self.queue.insert((at_us.max(self.now_us), self.last_seq), event);
    }

    pub(super) fn after(&mut self, delay_us: u64, event: Event) {
        self.at(self.now_us + delay_us, event);
    }

    /// Plays the world to its end.
    pub(super) fn run(mut self) -> SettleReport {
        self.run_until(self.end_us);
        self.heal();
        let network = &self.scenario.network;
        let back_ms = network.away_ms.max.max(self.scenario.clients.reopen_ms.max);
        self.run_until(self.end_us + (network.unnoticed_ms.max + back_ms) * MS + CALM_US);
        self.check_not_stranded();
        self.report.outcomes = self.outcomes();
        self.report.opens = self.sockets.len() as u64;
        self.report
    }

    fn run_until(&mut self, until_us: u64) {
        while self.report.broken.is_none() {
            let next = self.queue.first_key_value().map(|((at, _), _)| *at);
            let wakes = self.running.iter().filter_map(|replica| Some((self.wake_us(*replica)?, *replica)));
            let wake = wakes.min();
            match (next, wake) {
                (Some(at), _) if at <= until_us && wake.is_none_or(|(wake, _)| at <= wake) => {
                    let Some((_, event)) = self.queue.pop_first() else { return };
                    self.now_us = at;
                    self.happen(event);
                }
                (_, Some((wake, replica))) if wake <= until_us => {
                    self.now_us = self.now_us.max(wake);
                    let at = self.moment(replica);
                    self.replicas[replica].machine.handle_timeout(at);
                    self.touched.extend(0..self.devices.len());
                }
                _ => break,
            }
            self.run_commands();
            self.look();
        }
        self.now_us = self.now_us.max(until_us);
    }

    fn wake_us(&self, replica: usize) -> Option<u64> {
        let replica = &self.replicas[replica];
        Some(replica.started_us + replica.machine.poll_timeout()?.as_micros())
    }

    pub(super) fn moment(&self, replica: usize) -> Moment {
        let replica = &self.replicas[replica];
        let unix_ms = BEGAN_MS + self.now_us / MS + replica.skew_ms;
        Moment { now: Time::from_micros(self.now_us - replica.started_us), unix_ms }
    }

    pub(super) fn touch(&mut self, device: usize) {
        self.touched.push(device);
    }

    /// Looks at those that something happened to.
    fn look(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for device in touched.drain(..) {
            let (is_wanted, served) = (self.is_wanted(device), self.served(device));
            self.devices[device].meter.is(is_wanted, served, self.now_us);
            self.check_one_holder(device);
        }
        self.touched = touched;
    }

    fn is_wanted(&self, device: usize) -> bool {
        self.devices[device].sockets.iter().any(|socket| self.sockets[*socket].is_open() && self.sockets[*socket].wants)
    }

    /// The living socket that has the session: the one that the record names, or that its replica takes for the holder.
    fn served(&self, device: usize) -> Option<usize> {
        let Device { id, sockets, .. } = &self.devices[device];
        let is_open = |socket: &usize| self.sockets.get(*socket).is_some_and(Socket::is_open);
        let named = self.store.records[device].holder.as_ref().map(|holder| super::sockets::index(holder.socket));
        named.filter(is_open).or_else(|| {
            let is_believed = |socket: &&usize| {
                let holder = self.replicas[self.sockets[**socket].replica].machine.holder(id);
                is_open(socket) && holder.is_some_and(|holder| holder.socket == super::sockets::number(**socket))
            };
            sockets.iter().find(is_believed).copied()
        })
    }

    /// A new connector of a device.
    pub(super) fn add_connector(&mut self, device: usize) -> usize {
        self.devices[device].connectors.push(Connector::default());
        self.devices[device].connectors.len() - 1
    }

    fn outcomes(&mut self) -> super::report::SettleOutcomes {
        let mut sum = super::report::SettleOutcomes::default();
        let seconds = |us: u64| us as f64 / SECOND as f64;
        for device in &mut self.devices {
            let measured = device.meter.end();
            sum.flips += measured.flips as f64;
            sum.refused += measured.refused as f64;
            sum.stranded_s += seconds(measured.stranded_us);
            sum.unserved_s += seconds(measured.unserved_us);
            sum.offline_s += seconds(measured.offline_us);
            sum.stable_ms += measured.settled_us as f64 / MS as f64 / measured.bursts.max(1) as f64;
        }
        let count = self.devices.len().max(1) as f64;
        for outcome in [
            &mut sum.flips,
            &mut sum.refused,
            &mut sum.stranded_s,
            &mut sum.unserved_s,
            &mut sum.offline_s,
            &mut sum.stable_ms,
        ] {
            *outcome /= count;
        }
        sum
    }
}

fn settings(scenario: &SettleScenario) -> DeviceSettings {
    let settle_ms = u32::try_from(scenario.settle_ms).unwrap_or(u32::MAX);
    let mut settings = DeviceSettings { settle_ms, ..DeviceSettings::default() };
    if !scenario.limiters {
        settings.limiter.rate_max = u32::MAX;
        (settings.throttle.base_max, settings.throttle.hard_ceiling) = (u32::MAX, u32::MAX);
    }
    settings
}
