// Every device opens ten sockets in a few seconds, all of them at once, with calls beside: each settles on one, and the calls do not notice.
import { setTimeout as delay } from 'node:timers/promises';
import { counted } from '../../../clients/fleet/cluster.mjs';
import { Dashboard, DeviceSocket, record, registration } from '../../../clients/devices/devices.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, median, shownFailures } from '../../../clients/support/calls.mjs';
import { newUser, pair } from '../../clients.mjs';

const LONG = { devices: 200, calmMs: 10_000, stormMs: 10_000 };
const SHORT = { devices: 40, calmMs: 3_000, stormMs: 3_000 };

const SOCKETS = 10;
const PAIRS = 3;
const CALL_EVERY_MS = 20;

const LAG = /^pointwork_runtime_lag_p99_ms ([\d.e+-]+)$/m;

export default {
  name: 'device-storm',
  seed: '8 flips in 9 s',
  on: ['pointwork'],
  replicasMin: 1,
  async run(stage) {
    const { calls } = stage;
    const { devices, calmMs, stormMs } = stage.isShort ? SHORT : LONG;
    const { replicas } = await stage.fleet();
    const org = newUser('org');
    const dashboard = await Dashboard.open(replicas[0], { sub: newUser(), org });
    const at = (i) => replicas[i % replicas.length];
    const pairs = await Promise.all(Array.from({ length: PAIRS }, (_, i) => pair(calls, at(i), at(i + 1), { method: `work-${i}` })));

    const calm = await loaded(calls, pairs, () => delay(calmMs));
    const members = Array.from({ length: devices }, () => ({ device: newUser('device'), sockets: [] }));
    const busy = await loaded(calls, pairs, () => storm(members, at, org, stormMs));
    const isSettled = ({ sockets }) => sockets.filter(({ isOpen }) => isOpen).length === 1;
    await until(() => members.every(isSettled), 20_000, () => `all devices to settle; ${members.filter(isSettled).length} have`);

    await judgeLag(stage, replicas);
    await judgeDevices(stage, replicas, dashboard, members);
    judgeCalls(stage, calm, busy);
  },
};

/** The records of the calls that were made meanwhile. */
async function loaded(calls, pairs, meanwhile) {
  const loads = pairs.map(({ caller, method }) => calls.load(caller, method, CALL_EVERY_MS));
  await meanwhile();
  return (await Promise.all(loads.map((load) => load.stop()))).flat();
}

/** All sockets of all devices, evenly over the time and over the replicas; resolves when the last was answered. */
async function storm(members, at, org, stormMs) {
  const startedAt = performance.now();
  const opens = members.length * SOCKETS;
  for (let i = 0; i < opens; i += 1) {
    const wait = startedAt + (stormMs * i) / opens - performance.now();
    if (wait > 1) await delay(wait);
    const { device, sockets } = members[i % members.length];
    sockets.push(DeviceSocket.register(at(i + sockets.length), registration(at(0), device, { org })));
  }
  await Promise.all(members.flatMap(({ sockets }) => sockets.map((socket) => socket.answer())));
}

async function judgeDevices(stage, replicas, dashboard, members) {
  const sockets = members.flatMap(({ sockets }) => sockets);
  const holders = await Promise.all(members.map(async ({ device, sockets }) => {
    const [holder] = sockets.filter(({ isOpen }) => isOpen);
    return holder.holds(device).then(() => true, () => false);
  }));
  stage.all('devices with one socket, whose heartbeats count', holders.filter(Boolean).length, members.length);
  const unheard = sockets.filter((socket) => !socket.isRegistered && socket.all('device:throttled').length !== 1);
  stage.atMost(`refused without a word, of ${sockets.length} sockets`, unheard.length, '', { ours: 0 });
  await Promise.all(members.map(({ device }) => dashboard.sees(device, 'online')));
  const offline = members.filter(({ device }) => dashboard.statuses(device).some((status) => status !== 'online'));
  stage.atMost('devices that were seen as anything but online', offline.length, '', { ours: 0 });
  const flips = await Promise.all(members.map(async ({ device }) => (await record(replicas[0], device)).flips));
  const windows = Math.ceil((stage.isShort ? SHORT : LONG).stormMs / 2_500);
  stage.atMost('most flips of a device', Math.max(...flips), '', { ours: windows });
  const quarantined = await Promise.all(replicas.map((replica) => counted(replica, 'pointwork_device_sessions_total', 'reason="quarantined"')));
  stage.atMost('registers met by a quarantine', quarantined.reduce((sum, one) => sum + one, 0), '', { ours: 0 });
}

function judgeCalls(stage, calm, busy) {
  const all = [...calm, ...busy];
  stage.atMost(`failed of ${all.length} calls beside it`, bad(all).length, '', { ours: 0 });
  if (bad(all).length > 0) stage.note(shownFailures(all));
  const [before, during] = [calm, busy].map((records) => median(records.map(({ ms }) => ms)));
  stage.atMost('median call before', before, ' ms', {});
  stage.atMost('median call in the storm', during, ' ms', {});
  // This program shares the machine with the replicas, and its thousands of handshakes are in the figure.
  stage.atMost('ratio of the medians', during / before, '', { ours: 3 });
}

/** Of the last ten seconds, as the replicas print it. */
async function judgeLag(stage, replicas) {
  const texts = await Promise.all(replicas.map(async (replica) => (await replica.request('/metrics')).text));
  const lags = texts.map((text) => Number(LAG.exec(text)?.[1]));
  stage.atMost("replicas' lag p99", Math.max(...lags), ' ms', { ours: 20 });
}
