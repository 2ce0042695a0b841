//! Plays one world of a scenario to its end, and measures what its devices go through.

use pointwork_core::devices::DeviceSettings;

use super::conditions::ScenarioConditions;
use super::events::DeviceEvent;
use super::meter::Measured;
use super::report::{SettleOutcomes, SettleReport};
use super::rules::SettleRules;
use super::world::DeviceWorld;
use crate::draws::Drawn;
use crate::scenario::SettleScenario;
use crate::time::{MS, SECOND};

/// How long it is quiet at the end, beyond the time after which half-open connections are noticed and devices are back.
const CALM_US: u64 = 90 * SECOND;
/// How long a device may be stranded at the end: its register may wait for a replica that is silent, or for its turn.
const STRANDED_US: u64 = 20 * SECOND;

/// Plays the world of a seed with a rule. The same arguments give the same report.
pub fn settle(scenario: &SettleScenario, seed: u64, rules: &dyn SettleRules) -> SettleReport {
    let end_us = scenario.duration_s * SECOND;
    let conditions = Box::new(ScenarioConditions::new(seed, scenario));
    let (settings, replicas) = (settings(scenario), scenario.replicas.count);
    let mut world = DeviceWorld::new(seed, conditions, Some(scenario), settings, replicas, end_us, rules);
    for device in 0..scenario.devices {
        plan_device(&mut world, scenario, device);
    }
    plan_faults(&mut world, scenario);
    world.run_until(end_us);
    world.heal();
    let network = &scenario.network;
    let back_ms = network.away_ms.max.max(scenario.clients.reopen_ms.max);
    world.run_until(end_us + (network.unnoticed_ms.max + back_ms) * MS + CALM_US);
    let now_us = world.now_us;
    let stranded = world.devices.iter().find(|device| device.meter.stranded_for_us(now_us) > STRANDED_US);
    world.auditor.demand(stranded.is_none(), "not-stranded", || {
        let id = stranded.map(|device| &device.id);
        format!("{id:?} has a socket that wants the session, and no living one has it")
    });
    SettleReport { outcomes: outcomes(&mut world), questions: world.questions, broken: world.auditor.broken }
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

/// Everything that a device does of its own accord.
fn plan_device(world: &mut DeviceWorld<'_>, scenario: &SettleScenario, whom: u64) {
    let (clients, network, draws, end_us) = (&scenario.clients, &scenario.network, world.draws, world.end_us);
    let heartbeat_us = draws.micros(clients.heartbeat_ms, Drawn::Heartbeat, whom, 0);
    let address = draws.bits(Drawn::Move, whom, u64::MAX);
    let device = world.add_device(format!("device-{whom}").into(), address, heartbeat_us);
    let mut begins_us = draws.micros(clients.first_open_ms, Drawn::FirstOpen, whom, 0);
    let mut opened = 0;
    for burst in 0..draws.span(clients.bursts, Drawn::Bursts, whom, 0) {
        let mut at_us = begins_us;
        for _ in 0..draws.span(clients.opens, Drawn::Opens, whom, burst) {
            if at_us < end_us {
                world.at(at_us, DeviceEvent::OpenNext { device });
            }
            at_us += draws.micros(clients.spacing_ms, Drawn::Spacing, whom, opened);
            opened += 1;
        }
        begins_us += draws.micros(clients.burst_every_ms, Drawn::BurstEvery, whom, burst);
    }
    for (nth, at_us) in (0..).zip(draws.moments(network.drops_per_hour, end_us, Drawn::Drop, whom)) {
        world.at(at_us, DeviceEvent::NetworkBreaks { device, nth });
    }
    for (nth, at_us) in (0..).zip(draws.moments(network.moves_per_hour, end_us, Drawn::Move, whom)) {
        world.at(at_us, DeviceEvent::DeviceMoves { device, nth });
    }
}

/// Everything that goes wrong with the replicas and the store.
fn plan_faults(world: &mut DeviceWorld<'_>, scenario: &SettleScenario) {
    let (replicas, store, draws, end_us) = (&scenario.replicas, &scenario.store, world.draws, world.end_us);
    for nth in 0..draws.span(replicas.kills, Drawn::Kill, 0, 0) {
        world.at(draws.below(end_us, Drawn::Kill, 1, nth), DeviceEvent::Kill { nth });
    }
    for nth in 0..draws.span(store.away, Drawn::StoreAway, u64::MAX, 0) {
        let away_us = draws.below(end_us, Drawn::StoreSpan, 1, nth);
        let back_us = away_us + draws.micros(store.away_ms, Drawn::StoreSpan, 2, nth);
        let is_empty = draws.percent(store.empty_percent, Drawn::StoreEmpty, 0, nth);
        world.at(away_us, DeviceEvent::StoreAway);
        world.at(back_us, DeviceEvent::StoreBack { is_empty });
    }
}

fn outcomes(world: &mut DeviceWorld<'_>) -> SettleOutcomes {
    let measured: Vec<Measured> = world.devices.iter_mut().map(|device| device.meter.end()).collect();
    let mean = |outcome: fn(&Measured) -> f64| measured.iter().map(outcome).sum::<f64>() / measured.len().max(1) as f64;
    SettleOutcomes {
        flips: mean(|one| one.flips as f64),
        stable_ms: mean(|one| one.settled_us as f64 / MS as f64 / one.bursts.max(1) as f64),
        refused: mean(|one| one.refused as f64),
        stranded_s: mean(|one| one.stranded_us as f64 / SECOND as f64),
        unserved_s: mean(|one| one.unserved_us as f64 / SECOND as f64),
        offline_s: mean(|one| one.offline_us as f64 / SECOND as f64),
    }
}
