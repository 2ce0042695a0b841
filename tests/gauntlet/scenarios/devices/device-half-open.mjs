// A device's network is gone and its connection is not: the adaptive policy gives the session to the next socket as soon as the old one is
// idle for too long, the seed's rule when its window is over, and neither waits for the ping timeout.
import { rmSync } from 'node:fs';
import { copyFile, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DeviceSocket, registration } from '../../../clients/devices/devices.mjs';
import { policyFile } from '../../../clients/support/host.mjs';
import { until, within } from '../../../clients/support/waiting.mjs';
import { newUser } from '../../clients.mjs';

const PING_EVERY_MS = 500;

/** Three pings. */
const IDLE_MS = 1_500;

/** How long the old connection lives: longer than what is idle for too long, for it answers pings and says nothing else. */
const ALIVE_MS = 2_000;

const WINDOW_MS = 6_000;
const OPEN_EVERY_MS = 300;
const SLACK_MS = 250;

const POLICIES = [
  { policy: 'settle-adaptive', config: { idle_ms: IDLE_MS } },
  { policy: 'settle-hold' },
];

export default {
  name: 'device-half-open',
  seed: 'held until the ping timeout',
  on: ['pointwork'],
  replicasMin: 2,
  async run(stage) {
    for (const { policy, config } of POLICIES) {
      const { acceptedAt, goneAt, takenAt, early } = await takeover(stage, policy, config);
      stage.atMost(`${policy}: sessions lost while the connection lived`, early, '', { ours: 0 });
      if (policy === 'settle-adaptive') {
        stage.atMost(`${policy}: taken over after the loss`, takenAt - goneAt, ' ms', { ours: IDLE_MS + OPEN_EVERY_MS + SLACK_MS });
      } else {
        const afterMs = takenAt - acceptedAt;
        stage.atLeast(`${policy}: taken over at an age of`, afterMs, ' ms', { ours: WINDOW_MS });
        stage.atMost(`${policy}: taken over at an age of`, afterMs, ' ms', { ours: WINDOW_MS + OPEN_EVERY_MS + SLACK_MS });
      }
    }
  },
};

/** The old socket is on the second replica behind a door that becomes a black hole, newcomers are on the first. */
async function takeover(stage, policy, config) {
  const settings = {
    'policy.dir': await policyDir(policy, config),
    'listen.ping_interval_ms': PING_EVERY_MS,
    'device.settle_ms': WINDOW_MS,
    'device.connect_rate_max': 1_000,
    'device.reconnect_base_max': 1_000,
    'device.reconnect_hard_ceiling': 1_000,
  };
  const fleet = await stage.fleet({ settings });
  const [place, device, door] = [fleet.replicas[0], newUser('device'), await fleet.door(1)];
  const words = registration(place, device);
  const old = DeviceSocket.register(door, words);
  const openedAt = performance.now();
  await old.registered();
  const acceptedAt = performance.now();
  /** Opens sockets until one has the session, or the time is over. */
  const newcomer = async (untilMs) => {
    while (performance.now() < untilMs) {
      const socket = DeviceSocket.register(place, words);
      const [event] = await socket.answer();
      if (event === 'device:registered') return socket;
      await delay(OPEN_EVERY_MS);
    }
    return undefined;
  };
  const tooEarly = await newcomer(openedAt + ALIVE_MS);
  door.blackhole();
  const goneAt = performance.now();
  const next = await newcomer(goneAt + 30_000);
  const takenAt = performance.now();
  if (next) {
    await next.holds(device);
    door.heal();
    await within(until(() => old.ended), 20_000, 'the old socket to be told');
  }
  return { acceptedAt: (openedAt + acceptedAt) / 2, goneAt, takenAt, early: tooEarly ? 1 : 0 };
}

/** A policy directory with nothing but this one; it is gone with this program. */
async function policyDir(policy, config) {
  const folder = await mkdtemp(join(tmpdir(), 'pointwork-settle-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  if (config) await writeFile(join(folder, 'settle.json'), JSON.stringify(config));
  await copyFile(policyFile(policy), join(folder, 'settle.wasm'));
  return folder;
}
