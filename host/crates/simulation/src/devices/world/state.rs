//! Holds the state of a world of devices, and its clocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointwork_core::Time;
use pointwork_core::devices::{DeviceRecord, DeviceSessions, DeviceSettings, Moment};

use crate::agenda::Agenda;
use crate::devices::audit::{Believed, DeviceAuditor};
use crate::devices::conditions::Conditions;
use crate::devices::events::DeviceEvent;
use crate::devices::meter::DeviceMeter;
use crate::devices::rules::SettleRules;
use crate::devices::sockets::{DeviceConnector, SimulatedDevice, SimulatedSocket, index, number};
use crate::draws::Draws;
use crate::scenario::SettleScenario;
use crate::time::{BEGAN_MS, MS, WorldTime};
use crate::trace::Trace;

pub(crate) struct DeviceWorld<'a> {
    pub(crate) conditions: Box<dyn Conditions + 'a>,
    /// What the world is like; without one, a random schedule says what happens.
    pub(super) scenario: Option<&'a SettleScenario>,
    pub(crate) draws: Draws,
    pub(crate) rules: &'a dyn SettleRules,
    pub(crate) settings: DeviceSettings,
    pub(crate) now_us: u64,
    /// The end of what is measured; afterwards all is quiet.
    pub(crate) end_us: u64,
    pub(super) agenda: Agenda<u64, DeviceEvent>,
    /// Every replica there ever was, and which of them are running.
    pub(crate) replicas: Vec<DeviceReplica>,
    pub(crate) running: Vec<usize>,
    /// How many are to start.
    pub(super) starting: usize,
    pub(crate) devices: Vec<SimulatedDevice>,
    pub(super) by_id: BTreeMap<Arc<str>, usize>,
    /// Every socket there ever was.
    pub(crate) sockets: Vec<SimulatedSocket>,
    /// What the store holds, by device. It can be away, and come back empty.
    pub(crate) records: Vec<DeviceRecord>,
    pub(crate) is_store_away: bool,
    /// Devices that something happened to in this step.
    pub(super) touched: Vec<usize>,
    pub(crate) auditor: DeviceAuditor,
    pub(crate) trace: Trace<'a>,
    /// How often the rule was asked.
    pub(crate) questions: u64,
}

pub(crate) struct DeviceReplica {
    pub(crate) uid: Arc<str>,
    pub(crate) machine: DeviceSessions,
    pub(super) is_running: bool,
    /// The others know that it is dead.
    pub(super) is_known_dead: bool,
    started_us: u64,
    /// Its wall clock against the others', in milliseconds.
    skew_ms: u64,
}

impl<'a> DeviceWorld<'a> {
    /// A world without devices. Without a scenario, what happens is counted.
    pub(crate) fn new(
        seed: u64,
        conditions: Box<dyn Conditions + 'a>,
        scenario: Option<&'a SettleScenario>,
        settings: DeviceSettings,
        replicas: u64,
        end_us: u64,
        rules: &'a dyn SettleRules,
    ) -> DeviceWorld<'a> {
        let mut world = DeviceWorld {
            conditions,
            scenario,
            draws: Draws::new(seed),
            rules,
            settings,
            now_us: 0,
            end_us,
            agenda: Agenda::new(),
            replicas: Vec::new(),
            running: Vec::new(),
            starting: 0,
            devices: Vec::new(),
            by_id: BTreeMap::new(),
            sockets: Vec::new(),
            records: Vec::new(),
            is_store_away: false,
            touched: Vec::new(),
            auditor: DeviceAuditor::new(&settings, scenario.is_none()),
            trace: Trace::new(None),
            questions: 0,
        };
        for _ in 0..replicas {
            world.start();
        }
        world
    }

    pub(crate) fn add_device(&mut self, id: Arc<str>, address: u64, heartbeat_us: u64) -> usize {
        let device = self.devices.len();
        self.by_id.insert(id.clone(), device);
        self.records.push(DeviceRecord::default());
        self.conditions.add_device();
        let meter = DeviceMeter::new(self.end_us, u64::from(self.settings.settle_ms) * MS);
        self.devices.push(SimulatedDevice {
            id,
            connectors: Vec::new(),
            sockets: Vec::new(),
            address,
            heartbeat_us,
            meter,
        });
        device
    }

    pub(crate) fn add_connector(&mut self, device: usize) -> usize {
        self.devices[device].connectors.push(DeviceConnector::default());
        self.devices[device].connectors.len() - 1
    }

    /// A new socket of a connector, which is yet to arrive at its replica.
    pub(crate) fn add_socket(&mut self, socket: SimulatedSocket) -> usize {
        let place = self.sockets.len();
        let SimulatedDevice { connectors, sockets, .. } = &mut self.devices[socket.device];
        connectors[socket.connector].socket = Some(place);
        connectors[socket.connector].attempts += 1;
        sockets.push(place);
        self.sockets.push(socket);
        place
    }

    pub(super) fn start(&mut self) {
        let nth = self.replicas.len();
        let uid: Arc<str> = format!("r{nth}").into();
        let machine = DeviceSessions::new(uid.clone(), self.settings);
        let (skew_ms, started_us) = (self.conditions.skew_ms(nth), self.now_us);
        self.running.push(nth);
        self.replicas.push(DeviceReplica { uid, machine, is_running: true, is_known_dead: false, started_us, skew_ms });
    }

    pub(crate) fn at(&mut self, at_us: u64, event: DeviceEvent) {
        self.agenda.enter(at_us.max(self.now_us), event);
    }

    pub(crate) fn after(&mut self, delay_us: u64, event: DeviceEvent) {
        self.at(self.now_us + delay_us, event);
    }

    pub(super) fn wake_us(&self, replica: usize) -> Option<u64> {
        let replica = &self.replicas[replica];
        Some(replica.started_us + replica.machine.poll_timeout()?.as_micros())
    }

    pub(crate) fn moment(&self, replica: usize) -> Moment {
        let replica = &self.replicas[replica];
        Moment { now: Time::from_micros(self.now_us - replica.started_us), unix_ms: self.unix_ms() + replica.skew_ms }
    }

    /// The wall clock of the world, in milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> u64 {
        BEGAN_MS + self.now_us / MS
    }

    pub(super) fn touch(&mut self, device: usize) {
        self.touched.push(device);
    }

    /// The sockets that running replicas take for holders of a device.
    pub(super) fn believed(&self, device: usize) -> Vec<Believed> {
        let id = &self.devices[device].id;
        let running = self.running.iter().map(|replica| &self.replicas[*replica]);
        let believed = running.filter_map(|replica| Some((replica.uid.clone(), replica.machine.holder(id)?)));
        believed.map(|(replica, holder)| Believed { replica, holder }).collect()
    }

    pub(super) fn is_wanted(&self, device: usize) -> bool {
        self.devices[device].sockets.iter().any(|socket| self.sockets[*socket].is_open() && self.sockets[*socket].wants)
    }

    /// The living socket that has the session: the one that the record names, or that its replica takes for the holder.
    pub(super) fn serving_socket(&self, device: usize) -> Option<usize> {
        let SimulatedDevice { id, sockets, .. } = &self.devices[device];
        let is_open = |socket: &usize| self.sockets.get(*socket).is_some_and(SimulatedSocket::is_open);
        let named = self.records[device].holder.as_ref().map(|holder| index(holder.socket));
        named.filter(is_open).or_else(|| {
            let is_believed = |socket: &&usize| {
                let holder = self.replicas[self.sockets[**socket].replica].machine.holder(id);
                is_open(socket) && holder.is_some_and(|holder| holder.socket == number(**socket))
            };
            sockets.iter().find(is_believed).copied()
        })
    }

    pub(super) fn trace(&mut self, who: &str, what: impl FnOnce() -> String) {
        if self.trace.is_on() {
            self.trace.line(WorldTime::from_micros(self.now_us), who, &what());
        }
    }
}
