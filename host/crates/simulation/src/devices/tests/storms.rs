//! Storms of opens and their neighbours, by name: on one replica and on two, inside and outside the warm-up.

use pointwork_core::SocketId;
use pointwork_core::decisions::Departure;
use pointwork_core::decisions::rules::SETTLE_MS;
use pointwork_core::devices::{DeviceRecord, DeviceSettings, DeviceStatus, LimiterKey};

use super::conditions::RandomConditions;
use super::schedule::{REGISTER_US, open};
use crate::devices::events::DeviceEvent;
use crate::devices::rules::NativeSettle;
use crate::devices::sockets::{Credential, index, number};
use crate::devices::world::DeviceWorld;
use crate::time::{MS, SECOND};

const WINDOW_US: u64 = SETTLE_MS as u64 * MS;
/// Inside and outside the warm-up.
const BEGINNINGS_US: [u64; 2] = [SECOND, 45 * SECOND];
const TABLET: usize = 0;

/// A world in which nothing goes wrong, and its one device.
struct Calm {
    world: DeviceWorld<'static>,
}

impl Calm {
    fn new(replicas: u64, settings: DeviceSettings) -> Calm {
        let mut world =
            DeviceWorld::new(7, Box::new(RandomConditions::new(7)), None, settings, replicas, u64::MAX, &NativeSettle);
        world.add_device("tablet".into(), 0, 0);
        Calm { world }
    }

    fn open(&mut self, at_us: u64, replica: usize, credential: Credential) -> SocketId {
        let socket = open(&mut self.world, at_us, replica, TABLET, credential);
        self.world.at(at_us + REGISTER_US, DeviceEvent::Register { socket });
        number(socket)
    }

    /// A replica notices that a socket has ended.
    fn lose(&mut self, socket: SocketId) {
        self.world.step(DeviceEvent::ReplicaNotices { socket: index(socket), how: Departure::TransportLost });
    }

    /// Runs until a moment. Every invariant holds.
    fn run_until(&mut self, until_us: u64) {
        self.world.run_until(until_us);
        assert_eq!(self.world.auditor.broken, None);
    }

    fn record(&self) -> DeviceRecord {
        self.world.records[TABLET].clone()
    }

    fn is_open(&self, socket: SocketId) -> bool {
        self.world.sockets[index(socket)].is_known
    }

    fn open_sockets(&self) -> usize {
        self.world.sockets.iter().filter(|socket| socket.is_known).count()
    }

    /// The sockets that were told that they have the session, and not that they have lost it.
    fn registered(&self) -> Vec<SocketId> {
        let sockets = (0..self.world.sockets.len()).map(number);
        sockets.filter(|socket| self.is_open(*socket) && self.world.auditor.is_registered(*socket)).collect()
    }

    fn is_held_by(&self, socket: SocketId) -> bool {
        self.registered() == [socket] && self.record().holder.is_some_and(|holder| holder.socket == socket)
    }

    fn is_quarantined(&self) -> bool {
        let key = LimiterKey::Device("tablet".into());
        let mut running = self.world.running.iter();
        running.any(|replica| {
            let now = self.world.moment(*replica).now;
            self.world.replicas[*replica].machine.limiter().is_quarantined(&key, now)
        })
    }

    fn count(&self, what: &str) -> u64 {
        self.world.auditor.counts.as_ref().map_or(0, |counts| counts.of(what))
    }

    /// Runs until a moment and looks every few milliseconds: once there is a holder there is one, which is open.
    fn watch_until(&mut self, until_us: u64) {
        while self.world.now_us < until_us {
            self.run_until((self.world.now_us + 5 * MS).min(until_us));
            let record = self.record();
            let Some(holder) = &record.holder else {
                assert_eq!(record.epoch, 0, "nobody holds the session");
                continue;
            };
            assert!(self.is_open(holder.socket), "the record names {holder:?}, which is closed");
            assert_eq!(record.status, DeviceStatus::Online);
            assert!(!self.is_quarantined());
        }
    }
}

/// So many opens, evenly over a span; 0: at once.
fn storm(opens: u64, span_us: u64) {
    for begins_us in BEGINNINGS_US {
        for replicas in [1, 2] {
            let mut calm = Calm::new(replicas as u64, DeviceSettings::default());
            for open in 0..opens {
                let at_us = begins_us + open * span_us / opens;
                calm.open(at_us, open as usize % replicas, Credential::GoodToken);
            }
            calm.watch_until(begins_us + span_us + 30 * SECOND);
            let (record, registered) = (calm.record(), calm.registered());
            assert_eq!(registered.len(), 1, "one stable socket of {opens}");
            assert_eq!(record.holder.map(|holder| holder.socket), registered.first().copied());
            assert!(record.flips <= span_us / WINDOW_US, "{} flips of {opens} in {span_us} µs", record.flips);
            assert_eq!((calm.count("status Offline"), calm.count("status Provisioning")), (0, 0), "online throughout");
        }
    }
}

#[test]
fn storm_converges_of_8_opens_in_9_seconds() {
    storm(8, 9 * SECOND);
}

#[test]
fn storm_converges_of_6_opens_at_once() {
    storm(6, 0);
}

#[test]
fn storm_converges_of_50_opens_in_10_seconds() {
    storm(50, 10 * SECOND);
}

#[test]
fn legitimate_single_move() {
    for begins_us in BEGINNINGS_US {
        for replicas in [1, 2] {
            // To a device that nobody holds, and to one whose holder is gone.
            let mut calm = Calm::new(replicas as u64, DeviceSettings::default());
            let one = calm.open(begins_us, 0, Credential::GoodToken);
            calm.watch_until(begins_us + 50 * MS);
            assert!(calm.is_held_by(one));
            calm.lose(one);
            let two = calm.open(calm.world.now_us + MS, replicas - 1, Credential::GoodToken);
            calm.run_until(begins_us + 100 * MS);
            assert!(calm.is_held_by(two));
            assert_eq!(calm.record().flips, 0);

            // And from one that is there, when its window is over.
            let three = calm.open(begins_us + 100 * MS + WINDOW_US, 0, Credential::GoodToken);
            calm.watch_until(begins_us + 200 * MS + WINDOW_US);
            assert!(calm.is_held_by(three));
            assert_eq!((calm.record().flips, calm.count("Refused Settled"), calm.open_sockets()), (1, 0, 1));
            assert_eq!(calm.count("status Offline"), 0);
        }
    }
}

#[test]
fn liveness_safeguard() {
    for begins_us in BEGINNINGS_US {
        for replicas in [1, 2] {
            let mut calm = Calm::new(replicas as u64, DeviceSettings::default());
            let held = calm.open(begins_us, 0, Credential::GoodToken);
            let refused = calm.open(begins_us + 500 * MS, replicas - 1, Credential::GoodToken);
            calm.watch_until(begins_us + SECOND);
            assert!(calm.is_held_by(held) && !calm.is_open(refused));

            // The holder dies in its window: the next one is taken, refused was only the one before.
            calm.lose(held);
            let next = calm.open(calm.world.now_us, replicas - 1, Credential::GoodToken);
            calm.run_until(begins_us + 1_050 * MS);
            assert!(calm.is_held_by(next));
            assert_eq!(calm.count("Refused Settled"), 1);
        }
    }
}

/// The holder's replica is killed in a storm: the device's next open has the session, known to be dead or not yet.
#[test]
fn liveness_safeguard_of_a_killed_replica() {
    for begins_us in BEGINNINGS_US {
        for after_us in [MS, SECOND] {
            let mut calm = Calm::new(2, DeviceSettings::default());
            let held = calm.open(begins_us, 0, Credential::GoodToken);
            calm.run_until(begins_us + 100 * MS);
            assert!(calm.is_held_by(held));
            calm.world.step(DeviceEvent::Kill { nth: 0 });
            let next = calm.open(calm.world.now_us + after_us, 1, Credential::GoodToken);
            calm.run_until(begins_us + 1_100 * MS + after_us);
            assert!(calm.is_held_by(next));
            calm.watch_until(begins_us + 20 * SECOND);
            assert_eq!((calm.count("Refused Settled"), calm.count("status Offline")), (0, 0));
        }
    }
}

/// What proves nothing is cooled down and at last quarantined, and never touches the device whose name it uses.
#[test]
fn abuse_still_limited() {
    for begins_us in BEGINNINGS_US {
        for credential in [Credential::BadToken, Credential::Nothing] {
            let mut calm = Calm::new(1, DeviceSettings::default());
            let held = calm.open(begins_us, 0, Credential::GoodToken);
            for second in 1..900 {
                calm.open(begins_us + second * SECOND, 0, credential);
            }
            calm.run_until(begins_us + 900 * SECOND);
            assert!(calm.is_held_by(held));
            assert!(calm.count("Refused Flapping") + calm.count("Refused Quarantined") > 300);
            // The device has proved its token: its name is not quarantined, whoever uses it.
            let is_by_name = credential == Credential::BadToken;
            assert_eq!((calm.count("Refused Quarantined") == 0, calm.is_quarantined()), (is_by_name, false));
            assert_eq!((calm.record().flips, calm.record().refusals), (0, 0));
            let again = calm.open(calm.world.now_us, 0, Credential::GoodToken);
            calm.run_until(begins_us + 901 * SECOND);
            assert!(calm.is_held_by(again), "whoever proves its token passes");
        }
        let mut calm = Calm::new(1, DeviceSettings::default());
        for second in 0..900 {
            let credential = if second % 2 == 0 { Credential::BadToken } else { Credential::PairingCode };
            calm.open(begins_us + second * SECOND, 0, credential);
        }
        calm.run_until(begins_us + 900 * SECOND);
        assert!(calm.is_quarantined() && calm.count("Refused Quarantined") > 100);
        // By its name, and by its fingerprint.
        let passed = calm.count("Refused Auth(BadToken)");
        assert_eq!(passed, 5 * 20, "five times what the rate allows, then no more");
    }
}

/// The hard ceiling holds inside the warm-up, too.
#[test]
fn abuse_still_limited_by_the_ceiling() {
    let mut settings = DeviceSettings::default();
    settings.limiter.rate_max = 1_000;
    for (begins_us, passed_max) in BEGINNINGS_US.into_iter().zip([20, 5]) {
        let mut calm = Calm::new(1, settings);
        for open in 0..100 {
            calm.open(begins_us + open * 20 * MS, 0, Credential::GoodToken);
        }
        calm.watch_until(begins_us + 5 * SECOND);
        let asked = calm.count("Refused Settled") + calm.count("Accepted Free") + calm.count("Accepted Settled");
        assert!(asked <= passed_max, "{asked} came to settle");
        assert_eq!(calm.registered().len(), 1);
    }
}

/// Opens spaced just over the window, for ten minutes: the seed's rule flips on each, as it did in the field.
#[test]
#[allow(clippy::print_stdout)]
fn opens_just_over_the_window_flip_each_time() {
    let spacing_us = WINDOW_US + 100 * MS;
    let opens = 600 * SECOND / spacing_us;
    let run = |rate_max| {
        let mut settings = DeviceSettings::default();
        settings.limiter.rate_max = rate_max;
        let mut calm = Calm::new(2, settings);
        for open in 0..opens {
            calm.open(40 * SECOND + open * spacing_us, open as usize % 2, Credential::GoodToken);
        }
        calm.watch_until(700 * SECOND);
        assert_eq!(calm.registered().len(), 1);
        calm.record().flips
    };
    let (alone, limited) = (run(1_000), run(DeviceSettings::default().limiter.rate_max));
    println!("{opens} opens in 10 minutes: {alone} flips by the native rule, {limited} beside the flap limiter");
    assert_eq!(alone, opens - 1);
    assert!(limited < alone);
}
