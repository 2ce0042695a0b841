//! Random schedules of devices: what a seed makes of a world, the disturbances, and what must be true when all is quiet
//! again.
//!
//! Two or three replicas, a store that is slow, away or restarted empty, a network that delays and loses, sockets that
//! open, register, refresh, close and die half-open, replicas that are killed, an operator.

use pointwork_core::SocketId;
use pointwork_core::decisions::rules;
use pointwork_core::decisions::{Departure, Liveness, SettleVerdict};
use pointwork_core::devices::{DeviceLoad, DeviceSettings, DeviceStatus};
use pointwork_core::experiments::{self, Arm, ArmModule, Experiment, Guardrails, Slot};
use proptest::collection::vec;
use proptest::prelude::Strategy;

use super::conditions::{RandomConditions, RandomFaults};
use super::flaws::DeviceFlaw;
use super::seeded;
use crate::chance::Chance;
use crate::counts::Counts;
use crate::devices::events::{DeviceEvent, OperatorChange};
use crate::devices::rules::{NativeSettle, SettleQuestion, SettleRules};
use crate::devices::sockets::{Credential, SimulatedSocket, index, number};
use crate::devices::world::DeviceWorld;
use crate::time::{MS, SECOND};
use crate::trace::Trace;
use crate::violation::Violation;

/// When clients and faults come to rest.
const ACTIVE_US: u64 = 60 * SECOND;
/// By when all is quiet: evictions are said again every half minute, and a half-open connection is noticed.
const QUIET_US: u64 = ACTIVE_US + 75 * SECOND;
/// How soon a socket registers that has arrived.
pub(super) const REGISTER_US: u64 = 100;
/// Disturbances of a schedule at most.
const DISTURBANCES_MAX: usize = 22;
/// Sockets of a burst at most.
const BURST_MAX: usize = 9;

/// A burst of sockets, a fault or an operator's change, which follows from a seed of its own; and the seeds of the
/// sockets.
pub(super) type Disturbance = (u64, Vec<u64>);

/// Draws disturbances. A schedule that fails is shrunk to the fewest, with the fewest sockets.
pub(super) fn schedules() -> impl Strategy<Value = Vec<Disturbance>> {
    vec((seeded::step(), seeded::steps(1..=BURST_MAX)), 1..=DISTURBANCES_MAX)
}

/// What came of a schedule.
pub(super) struct DeviceReport {
    /// What happened, by name.
    pub(super) counts: Counts,
    /// The first invariant that did not hold.
    pub(super) broken: Option<Violation>,
}

/// Plays a schedule in the world of a seed, which may be made to make a mistake.
pub(super) fn play(
    seed: u64,
    disturbances: &[Disturbance],
    flaw: Option<DeviceFlaw>,
    listener: Option<&mut dyn FnMut(&str)>,
) -> DeviceReport {
    let mut chance = Chance::new(seed);
    let mut conditions = RandomConditions::new(seed);
    conditions.flaw = flaw;
    conditions.experiment = (!seed.is_multiple_of(3)).then(experiment);
    conditions.faults = RandomFaults {
        loss: chance.pick(&[0, 0, 4, 20]),
        slow: chance.pick(&[0, 0, 5, 30]),
        stuck: chance.pick(&[0, 0, 0, 15]),
        unanswered: chance.pick(&[0, 0, 0, 12]),
    };
    let replicas = if seed.is_multiple_of(2) { 2 } else { 3 };
    let rules: &dyn SettleRules = if chance.once_in(2) { &AnyVerdict } else { &NativeSettle };
    let mut world = DeviceWorld::new(seed, Box::new(conditions), None, settings(seed), replicas, u64::MAX, rules);
    world.trace = Trace::new(listener);
    for id in &["a", "b", "p"][..1 + chance.below(3)] {
        let device = world.add_device((*id).into(), 0, 0);
        plan_idle_sockets(&mut world, device);
    }
    for (seed, sockets) in disturbances {
        plan_disturbance(&mut world, &mut Chance::new(*seed), sockets);
    }
    run(&mut world);
    DeviceReport { counts: world.auditor.counts.unwrap_or_default(), broken: world.auditor.broken }
}

/// Says anything about an incumbent that is alive.
struct AnyVerdict;

impl SettleRules for AnyVerdict {
    fn settle(&self, question: &SettleQuestion<'_>) -> SettleVerdict {
        let refuse_ms = [0, 1, 900][(question.seed >> 8) as usize % 3];
        match question.seed % 4 {
            _ if question.incumbent.liveness != Liveness::Alive => {
                rules::settle(question.window_ms, question.incumbent)
            }
            0 => SettleVerdict::Accept,
            1 => SettleVerdict::Refuse(refuse_ms),
            2 => SettleVerdict::Beside(1_500),
            _ => rules::settle(question.window_ms, question.incumbent),
        }
    }
}

fn settings(seed: u64) -> DeviceSettings {
    let every = |nth: u64, then: u32, otherwise: u32| if seed.is_multiple_of(nth) { then } else { otherwise };
    let mut settings =
        DeviceSettings { heartbeat_timeout_ms: 10_000, step_timeout_ms: 2_000, ..DeviceSettings::default() };
    settings.limiter.rate_max = every(4, 5, 1_000);
    settings.limiter.cooldown_ms = 3_000;
    settings.limiter.quarantine_trips = 2;
    settings.throttle.warmup_ms = every(3, 30_000, 0);
    settings.throttle.hard_ceiling = every(5, 20, 1_000);
    settings.throttle.base_max = every(5, 5, 1_000);
    settings.registers_per_device_max = every(7, 2, 8) as usize;
    settings.evictions_max = every(11, 0, 10_000) as usize;
    settings.reconciles_max = every(13, 1, 64) as usize;
    settings
}

/// Two arms between which it makes no difference.
fn experiment() -> Experiment {
    let arm = |name: &str| Arm { name: name.to_owned(), module: ArmModule::Native };
    Experiment {
        name: "e".to_owned(),
        slot: Slot::Settle,
        salt: "s".to_owned(),
        arms: vec![arm("control"), arm("treatment")],
        weights: vec![5_000, 5_000],
        status: experiments::ExperimentStatus::Running,
        shadow_only: false,
        horizon_ms: 20_000,
        window_ms: 2_500,
        // A client that lives is heard of every four seconds.
        silence_ms: 6_000,
        guardrails: Guardrails::default(),
        created_ms: 0,
        ended_ms: None,
        version: 1,
    }
}

/// Runs a world to its end.
fn run(world: &mut DeviceWorld<'_>) {
    world.run_until(ACTIVE_US);
    world.heal();
    world.rules = &NativeSettle;
    for device in 0..world.devices.len() {
        world.step(DeviceEvent::Operate { device, change: OperatorChange::Unblock });
    }
    world.run_until(QUIET_US);
    check_quiet(world);
    world.auditor.check_answered();
    wind_down(world);
}

/// A new socket, which arrives and registers at a moment.
pub(super) fn open(
    world: &mut DeviceWorld<'_>,
    at_us: u64,
    replica: usize,
    device: usize,
    credential: Credential,
) -> usize {
    let connector = world.add_connector(device);
    world.devices[device].connectors[connector].is_over = true;
    let name = world.sockets.len() as u64;
    let address = Some((name + 1) % 2);
    let socket = world.add_socket(SimulatedSocket {
        credential,
        address,
        ..SimulatedSocket::new(device, connector, replica, name)
    });
    world.at(at_us, DeviceEvent::Arrive { socket });
    socket
}

/// One that never gives a heartbeat, and one that never registers.
fn plan_idle_sockets(world: &mut DeviceWorld<'_>, device: usize) {
    let is_pairing = *world.devices[device].id == *"p";
    let credential = if is_pairing { Credential::PairingCode } else { Credential::GoodToken };
    let silent = open(world, ACTIVE_US / 2, 0, device, credential);
    world.sockets[silent].is_silent = true;
    world.at(ACTIVE_US / 2 + REGISTER_US, DeviceEvent::Register { socket: silent });
    open(world, ACTIVE_US / 3, 1, device, Credential::GoodToken);
}

fn plan_disturbance(world: &mut DeviceWorld<'_>, chance: &mut Chance, sockets: &[u64]) {
    let (device, at_us) = (chance.below(world.devices.len()), chance.below_u64(ACTIVE_US));
    match chance.below(40) {
        0..=4 => {
            let back_us = at_us + chance.pick(&[50 * MS, SECOND, 9 * SECOND]);
            let is_empty = chance.once_in(2);
            world.at(at_us, DeviceEvent::StoreAway);
            world.at(back_us.min(ACTIVE_US), DeviceEvent::StoreBack { is_empty });
        }
        5 => world.at(at_us, DeviceEvent::Kill { nth: chance.below_u64(2) }),
        6..=7 => {
            use OperatorChange::{Block, Disconnect, Pair, Unblock};
            let change = chance.pick(&[Disconnect, Block, Unblock, Pair]);
            world.at(at_us, DeviceEvent::Operate { device, change });
        }
        _ => {
            let span_us = chance.pick(&[2 * MS, 300 * MS, 3 * SECOND, 15 * SECOND]);
            let is_attack = chance.once_in(8);
            for socket in sockets {
                plan_socket(world, &mut Chance::new(*socket), device, (at_us, span_us), is_attack);
            }
        }
    }
}

/// A socket of a burst that begins at a moment and lasts so long.
fn plan_socket(
    world: &mut DeviceWorld<'_>,
    chance: &mut Chance,
    device: usize,
    (begins_us, span_us): (u64, u64),
    is_attack: bool,
) {
    let is_pairing = *world.devices[device].id == *"p";
    let at_us = begins_us + chance.below_u64(span_us);
    let credential = credential(chance, is_pairing, is_attack);
    let replica = chance.below(2);
    let refreshes_us = chance.once_in(5).then(|| at_us + chance.below_u64(30 * SECOND));
    let stays_us = chance.pick(&[MS, 20 * MS, 2 * SECOND, 12 * SECOND, 40 * SECOND]);
    let ends_us = at_us + chance.below_u64(stays_us);
    let socket = open(world, at_us.min(ACTIVE_US), replica, device, credential);
    world.at(at_us.min(ACTIVE_US) + REGISTER_US, DeviceEvent::Register { socket });
    if let Some(refreshes_us) = refreshes_us {
        world.at(refreshes_us, DeviceEvent::Register { socket });
    }
    match chance.below(6) {
        0 | 1 => {
            let how = chance.pick(&[Departure::Closed, Departure::TransportLost, Departure::Drained]);
            world.at(ends_us, DeviceEvent::ReplicaNotices { socket, how });
        }
        2 => world.at(ends_us, DeviceEvent::TurnsHalfOpen { socket }),
        _ => {}
    }
}

fn credential(chance: &mut Chance, is_pairing: bool, is_attack: bool) -> Credential {
    use Credential::{BadToken, GoodToken, Nothing, PairingCode, TokenWithoutDevice};
    if is_attack {
        return chance.pick(&[BadToken, BadToken, BadToken, Nothing, PairingCode]);
    }
    match chance.below(12) {
        0 => BadToken,
        1 => TokenWithoutDevice,
        2 => GoodToken,
        _ if is_pairing => PairingCode,
        _ => GoodToken,
    }
}

/// No device is stranded or has two sockets, and record and dashboards show the truth.
fn check_quiet(world: &mut DeviceWorld<'_>) {
    // What a replica that was killed had told, or was yet to tell, while the store was away nobody can know.
    let has = |what: &str| world.auditor.counts.as_ref().is_some_and(|counts| counts.of(what) > 0);
    let is_lost = has("killed") && (has("store away") || has("store stuck"));
    for device in 0..world.devices.len() {
        let (known, record) = (&world.devices[device], &world.records[device]);
        let registered: Vec<(SocketId, bool)> = known
            .sockets
            .iter()
            .filter(|socket| world.sockets[**socket].is_known && world.auditor.is_registered(number(**socket)))
            .map(|socket| {
                let uid = &world.replicas[world.sockets[*socket].replica].uid;
                (number(*socket), record.is_held_by(uid, number(*socket)))
            })
            .collect();
        let is_heard = |(socket, _): &(SocketId, bool)| !world.sockets[index(*socket)].is_silent;
        let is_there = registered.first().is_some_and(is_heard);
        let expected = if is_there { record.status_held() } else { DeviceStatus::Offline };
        world.auditor.check_quiet(&known.id, record, &registered, expected, is_lost);
    }
}

/// All sockets go; then nothing is left but what the limiters remember, and then nothing.
fn wind_down(world: &mut DeviceWorld<'_>) {
    for socket in 0..world.sockets.len() {
        if world.sockets[socket].is_known {
            world.step(DeviceEvent::ReplicaNotices { socket, how: Departure::Closed });
        }
    }
    world.run_until(QUIET_US + 30 * SECOND);
    check_quiet(world);
    check_nothing_left(world, |load| {
        let DeviceLoad { limited_keys, throttled_devices, .. } = load;
        DeviceLoad { limited_keys, throttled_devices, ..DeviceLoad::default() }
    });
    world.run_until(QUIET_US + 3_600 * SECOND);
    check_nothing_left(world, |_| DeviceLoad::default());
    let woken = world.running.iter().find(|replica| world.replicas[**replica].machine.poll_timeout().is_some());
    world.auditor.demand(woken.is_none(), "nothing-left", || format!("{woken:?} has a timer"));
}

fn check_nothing_left(world: &mut DeviceWorld<'_>, expected: fn(DeviceLoad) -> DeviceLoad) {
    let loads = world.running.iter().map(|replica| world.replicas[*replica].machine.load());
    let left = loads.into_iter().find(|load| *load != expected(*load));
    world.auditor.demand(left.is_none(), "nothing-left", || format!("{left:?}"));
}
