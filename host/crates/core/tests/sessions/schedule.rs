//! Plays a schedule (which sockets open when, and what goes wrong) and checks what must be true when all is quiet again.

use std::sync::Arc;

use pointwork_core::decisions::Departure;
use pointwork_core::devices::{DeviceLoad, DeviceSettings, DeviceStatus};

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::Strategy;

use crate::clients::Brings;
use crate::happening::{Happening, Operator};
use crate::ledger::experiment;
use crate::seeded::{Random, step, steps};
use crate::world::{Faults, MS, SECOND, World};

/// When clients and faults come to rest.
const ACTIVE_US: u64 = 60 * SECOND;
/// By when all is quiet: evictions are said again every half minute, and a half-open connection is noticed.
const QUIET_US: u64 = ACTIVE_US + 75 * SECOND;

/// What is to happen in a world. Each part is a seed of its own.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// Bursts of sockets that open, and the sockets of each.
    bursts: Vec<(u64, Vec<u64>)>,
    /// Times when the store is away.
    troubles: Option<Vec<u64>>,
    /// A replica that is killed.
    kill: Option<u64>,
    /// What operators do.
    operations: Option<Vec<u64>>,
}

pub(crate) fn schedules() -> impl Strategy<Value = Schedule> {
    let bursts = vec((step(), steps(1..=9)), 1..=17);
    let parts = (bursts, weighted(0.5, steps(1..=5)), weighted(0.3, step()), weighted(0.4, steps(1..=2)));
    parts.prop_map(|(bursts, troubles, kill, operations)| Schedule { bursts, troubles, kill, operations })
}

/// The world of a seed.
pub(crate) fn world(seed: u64) -> World {
    let mut settings =
        DeviceSettings { heartbeat_timeout_ms: 10_000, step_timeout_ms: 2_000, ..DeviceSettings::default() };
    settings.limiter.rate_max = if seed.is_multiple_of(4) { 5 } else { 1_000 };
    settings.limiter.cooldown_ms = 3_000;
    settings.limiter.quarantine_trips = 2;
    settings.throttle.warmup_ms = if seed.is_multiple_of(3) { 30_000 } else { 0 };
    settings.throttle.hard_ceiling = if seed.is_multiple_of(5) { 20 } else { 1_000 };
    settings.throttle.base_max = if seed.is_multiple_of(5) { 5 } else { 1_000 };
    settings.registers_per_device_max = if seed.is_multiple_of(7) { 2 } else { 8 };
    settings.evictions_max = if seed.is_multiple_of(11) { 0 } else { 10_000 };
    settings.reconciles_max = if seed.is_multiple_of(13) { 1 } else { 64 };
    let mut world = World::new(seed, if seed.is_multiple_of(2) { 2 } else { 3 }, settings);
    world.experiment = (!seed.is_multiple_of(3)).then(experiment);
    world
}

/// Runs a world to its end.
pub(crate) fn run(world: &mut World, schedule: &Schedule) {
    world.faults = Faults {
        loss: world.random.pick(&[0, 0, 4, 20]),
        slow: world.random.pick(&[0, 0, 5, 30]),
        stuck: world.random.pick(&[0, 0, 0, 15]),
        unanswered: world.random.pick(&[0, 0, 0, 12]),
        any_verdict: world.random.once_in(2),
    };
    let devices: Vec<Arc<str>> =
        ["a", "b", "p"][..1 + world.random.below(3) as usize].iter().map(|id| (*id).into()).collect();
    for (step, sockets) in &schedule.bursts {
        plan_burst(world, &devices, *step, sockets);
    }
    for device in &devices {
        // One that never gives a heartbeat, and one that never registers.
        let silent = world.open(ACTIVE_US / 2, 0, device, brings_of(device));
        let never = world.open(ACTIVE_US / 3, 1, device, Brings::GoodToken);
        world.make_silent(silent, never);
    }
    plan_faults(world, &devices, schedule);
    world.run_until(ACTIVE_US);
    world.faults = Faults::default();
    for device in &devices {
        world.step(Happening::Operate { device: device.clone(), operator: Operator::Unblock });
    }
    world.run_until(QUIET_US);
    for device in &devices {
        check_quiet(world, device);
    }
    world.auditor.check_answered();
    wind_down(world, &devices);
}

fn plan_burst(world: &mut World, devices: &[Arc<str>], step: u64, sockets: &[u64]) {
    let mut random = Random::new(step);
    let device = random.pick(devices);
    let begins_us = random.below(ACTIVE_US);
    let span_us = random.pick(&[2 * MS, 300 * MS, 3 * SECOND, 15 * SECOND]);
    let is_attack = random.once_in(8);
    for step in sockets {
        let mut random = Random::new(*step);
        let at_us = begins_us + random.below(span_us);
        let brings = brings(&mut random, &device, is_attack);
        let replica = random.below(2) as usize;
        let socket = world.open(at_us.min(ACTIVE_US), replica, &device, brings);
        if random.once_in(5) {
            world.at(at_us + random.below(30 * SECOND), Happening::Register { socket });
        }
        let stays_us = random.pick(&[MS, 20 * MS, 2 * SECOND, 12 * SECOND, 40 * SECOND]);
        let ends_us = at_us + random.below(stays_us);
        match random.below(6) {
            0 | 1 => {
                let how = random.pick(&[Departure::Closed, Departure::TransportLost, Departure::Drained]);
                world.at(ends_us, Happening::Closed { socket, how });
            }
            2 => world.at(ends_us, Happening::HalfOpen { socket }),
            _ => {}
        }
    }
}

fn brings_of(device: &Arc<str>) -> Brings {
    if **device == *"p" { Brings::Pairing } else { Brings::GoodToken }
}

fn brings(random: &mut Random, device: &Arc<str>, is_attack: bool) -> Brings {
    if is_attack {
        return random.pick(&[Brings::BadToken, Brings::BadToken, Brings::BadToken, Brings::Nothing, Brings::Pairing]);
    }
    match random.below(12) {
        0 => Brings::BadToken,
        1 => Brings::OnlyToken,
        2 if **device == *"p" => Brings::GoodToken,
        _ => brings_of(device),
    }
}

fn plan_faults(world: &mut World, devices: &[Arc<str>], schedule: &Schedule) {
    for step in schedule.troubles.iter().flatten() {
        let mut random = Random::new(*step);
        let away_us = random.below(ACTIVE_US);
        let back_us = away_us + random.pick(&[50 * MS, SECOND, 9 * SECOND]);
        let is_empty = random.once_in(2);
        world.at(away_us, Happening::StoreAway);
        world.at(back_us.min(ACTIVE_US), Happening::StoreBack { is_empty });
    }
    if let Some(step) = schedule.kill {
        let mut random = Random::new(step);
        let kill_us = random.below(ACTIVE_US);
        let replica = random.below(2) as usize;
        world.at(kill_us, Happening::Kill { replica });
        world.at(kill_us + 3 * SECOND, Happening::Restart);
    }
    for step in schedule.operations.iter().flatten() {
        let mut random = Random::new(*step);
        let (at_us, device) = (random.below(ACTIVE_US), random.pick(devices));
        let operator = random.pick(&[Operator::Disconnect, Operator::Block, Operator::Unblock, Operator::Pair]);
        world.at(at_us, Happening::Operate { device, operator });
    }
}

/// No device is stranded or has two sockets, and dashboards show the truth.
fn check_quiet(world: &World, device: &Arc<str>) {
    let open = world.clients.iter().filter(|(_, client)| client.device == *device);
    let registered: Vec<_> = open.filter(|(socket, _)| world.auditor.is_registered(**socket)).collect();
    let record = world.store.read(device);
    assert!(registered.len() <= 1, "one-holder: {device} has {registered:?} when all is quiet, of {record:?}");
    // What a replica that was killed had told, or was yet to tell, while the store was away nobody can know.
    let has = |what: &str| world.auditor.ends.contains_key(what);
    let is_lost = has("killed") && (has("store away") || has("store stuck"));
    let shown = world.auditor.dashboards.get(device).map_or(DeviceStatus::Offline, |(_, status)| *status);
    let shown = if is_lost { record.status } else { shown };
    match registered.first() {
        Some((socket, client)) => {
            let uid = &world.replicas[client.replica].uid;
            assert!(record.is_held_by(uid, **socket), "not-stranded: {device} has {socket:?}, its record {record:?}");
            let expected = if client.heartbeats { record.status_held() } else { DeviceStatus::Offline };
            assert_eq!((record.status, shown), (expected, expected), "{device} is there");
        }
        None => {
            assert_eq!(record.holder, None, "{device} is not there");
            assert_eq!((record.status, shown), (DeviceStatus::Offline, DeviceStatus::Offline), "{device} is not there");
        }
    }
}

/// All sockets go; then nothing is left but what the limiters remember, and then nothing.
fn wind_down(world: &mut World, devices: &[Arc<str>]) {
    let sockets: Vec<_> = world.clients.keys().copied().collect();
    for socket in sockets {
        world.step(Happening::Closed { socket, how: Departure::Closed });
    }
    world.run_until(QUIET_US + 30 * SECOND);
    for device in devices {
        check_quiet(world, device);
    }
    for replica in world.replicas.iter().filter(|replica| replica.is_alive) {
        let load = replica.machine.load();
        let limiters = (load.limited_keys, load.throttled_devices);
        let left = DeviceLoad { limited_keys: limiters.0, throttled_devices: limiters.1, ..DeviceLoad::default() };
        assert_eq!(load, left, "nothing-left");
    }
    world.run_until(QUIET_US + 3_600 * SECOND);
    for replica in world.replicas.iter().filter(|replica| replica.is_alive) {
        let nothing = (DeviceLoad::default(), None);
        assert_eq!((replica.machine.load(), replica.machine.poll_timeout()), nothing, "nothing-left");
    }
}
