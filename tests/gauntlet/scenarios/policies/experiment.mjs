// An experiment on real sockets: newest-wins against hold-incumbent, half of the devices each, a tenth of all thrashing. The arm of each
// device is the same on every replica, and the report finds what the treatment does to flips.
import { setTimeout as delay } from 'node:timers/promises';
import { admin, DeviceSocket, record, registration } from '../../../clients/devices/devices.mjs';
import { decides, exp, report } from '../../../clients/policies/exp.mjs';
import { policyFile } from '../../../clients/support/host.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { newUser } from '../../clients.mjs';

const LONG = { devices: 2_000, thrashMs: 20_000, horizonMs: 30_000 };
const SHORT = { devices: 300, thrashMs: 5_000, horizonMs: 6_000 };

const EVERY_MS = 500;
/** Everybody moves once, so that everybody is exposed; so many at once. */
const AT_ONCE = 50;

export default {
  name: 'experiment',
  seed: 'no figure',
  on: ['pointwork'],
  replicasMin: 2,
  async run(stage) {
    const { devices, thrashMs, horizonMs } = stage.isShort ? SHORT : LONG;
    const wide = Object.fromEntries(['connect_rate_max', 'reconnect_base_max', 'reconnect_hard_ceiling'].map((name) => [`device.${name}`, 100_000]));
    const { replicas } = await stage.fleet({ settings: { ...wide, 'device.settle_ms': 2_500 } });
    const places = replicas.slice(0, 2);
    const arms = ['--arm', `control=${policyFile('settle-newest')}`, '--arm', `treatment=${policyFile('settle-hold')}`];
    await exp(places[0], 'create', 'hold', '--slot', 'settle', ...arms, '--weights', '50,50', '--horizon-ms', `${horizonMs}`);
    await decides(replicas, 'hold');

    const members = Array.from({ length: devices }, (_, index) => ({ id: newUser('device'), index, isThrashing: index % 10 === 0 }));
    await inTurns(members, (member) => opened(places, member, 0));
    // The duplicate at the other replica is what settle is asked about.
    const begun = performance.now();
    const thrashing = members.filter(({ isThrashing }) => isThrashing);
    const calm = members.filter(({ isThrashing }) => !isThrashing);
    const storm = Promise.all(thrashing.map((member) => thrash(places, member, thrashMs)));
    await inTurns(calm, (member) => opened(places, member, 1));
    await storm;
    stage.note(`${devices} devices exposed in ${((performance.now() - begun) / 1_000).toFixed(1)} s`);

    const seen = await Promise.all(places.map((place) => armsOf(place, members)));
    const torn = members.filter((_, index) => seen[0][index] !== seen[1][index] || seen[0][index] === undefined);
    stage.atMost('devices whose arm is not the same on both replicas', torn.length, '', { ours: 0 });
    const wrong = (await Promise.all(thrashing.map((member) => isDecidedByItsArm(places[0], member)))).filter((is) => !is);
    stage.atMost('thrashing devices that were not decided by their arm', wrong.length, '', { ours: 0 });

    const isCounted = (read) => read.counted.reduce((sum, count) => sum + count) === devices;
    let read;
    await until(async () => isCounted((read = await report(places[1], 'hold'))), horizonMs + 30_000, () => `all units to be counted; ${read?.counted} are`);
    judge(stage, read);
    const { status } = await admin(places[0], '/v1/experiments/hold/abort', {});
    stage.holds('it can be ended', status === 200);
  },
};

function judge(stage, read) {
  const [effect] = read.outcomes.find(({ name }) => name === 'flips').effects;
  stage.holds('the split is fair', read.sample_ratio.verdict === 'fair');
  stage.atMost('flips: treatment minus control', effect.estimate, ' a device', { ours: 0 });
  stage.atMost('flips: the upper end of its interval', effect.high, ' a device', { ours: 0 });
  stage.holds('flips: the verdict is better', effect.verdict === 'better');
  const means = read.outcomes.map(({ name, means: [control, treatment] }) => `${name} ${control.mean?.toFixed(2)} / ${treatment.mean?.toFixed(2)}`);
  stage.note(`control / treatment: ${means.join(', ')}`);
}

/** A socket of a device at one of the places; keeps its heartbeats going. */
async function opened(places, member, at) {
  const socket = DeviceSocket.register(places[(member.index + at) % 2], registration(places[0], member.id));
  await socket.answer();
  const beats = setInterval(() => (socket.isOpen ? socket.heartbeat(member.id) : clearInterval(beats)), 5_000);
  beats.unref();
}

/** A device that opens one socket after the other, here and there. */
async function thrash(places, member, forMs) {
  const until = performance.now() + forMs;
  for (let at = 1; performance.now() < until; at += 1) {
    await opened(places, member, at);
    await delay(EVERY_MS);
  }
}

async function inTurns(members, step) {
  for (let from = 0; from < members.length; from += AT_ONCE) {
    await Promise.all(members.slice(from, from + AT_ONCE).map(step));
  }
}

async function armsOf(place, members) {
  const arms = [];
  for (let from = 0; from < members.length; from += AT_ONCE) {
    const records = await Promise.all(members.slice(from, from + AT_ONCE).map(({ id }) => record(place, id)));
    arms.push(...records.map(({ trial }) => trial?.arm));
  }
  return arms;
}

/** Newest-wins refuses nobody; hold-incumbent refuses whoever comes within the window. */
async function isDecidedByItsArm(place, { id }) {
  const { trial } = await record(place, id);
  return trial.arm === 'control' ? trial.refused === 0 && trial.flips > 0 : trial.refused > 0;
}
