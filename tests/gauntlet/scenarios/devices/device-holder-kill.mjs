// The replica that holds the sessions of storming devices is killed: the next open of each gets the session, and is not refused in
// favour of a socket that is gone.
import { setTimeout as delay } from 'node:timers/promises';
import { Dashboard, DeviceSocket, record, registration } from '../../../clients/devices/devices.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { newUser } from '../../clients.mjs';

const OPEN_EVERY_MS = 300;
const BEFORE_MS = 1_500;
const AFTER_MS = 2_500;

/** Where the sockets are that have the sessions when the storm begins. */
const KILLED = 1;

export default {
  name: 'device-holder-kill',
  seed: '—',
  on: ['pointwork'],
  replicasMin: 2,
  async run(stage) {
    const devices = stage.isShort ? 5 : 20;
    // Under the seed's rule nobody else gets the session while its holder lives.
    const settings = { 'device.settle_ms': 600_000, 'device.reconnect_base_max': 100, 'device.reconnect_hard_ceiling': 100 };
    const { replicas } = await stage.fleet({ settings });
    const org = newUser('org');
    const dashboard = await Dashboard.open(replicas[0], { sub: newUser(), org });
    const members = Array.from({ length: devices }, () => ({ device: newUser('device'), opened: [] }));
    const open = (member, index) => {
      const socket = DeviceSocket.register(replicas[index], registration(replicas[index], member.device, { org }));
      const one = { socket, at: performance.now(), replica: index };
      one.answered = socket.answer().then(([event]) => Object.assign(one, { event, ms: performance.now() - one.at }));
      member.opened.push(one);
      return one;
    };
    await Promise.all(members.map((member) => open(member, KILLED).answered));

    let turn = 0;
    const stormFor = async (ms) => {
      for (const until = performance.now() + ms; performance.now() < until; await delay(OPEN_EVERY_MS)) {
        const up = replicas.flatMap(({ isUp }, index) => (isUp ? [index] : []));
        turn += 1;
        members.forEach((member, i) => open(member, up[(turn + i) % up.length]));
      }
    };
    await stormFor(BEFORE_MS);
    const heldBefore = members.filter(({ opened: [first] }) => first.event === 'device:registered' && first.socket.isOpen).length;
    stage.all('devices on the killed replica, in a storm', heldBefore, devices);
    await replicas[KILLED].kill();
    const killedAt = performance.now();
    await stormFor(AFTER_MS);
    await Promise.all(members.flatMap(({ opened }) => opened.map(({ answered }) => answered)));
    await judge(stage, { replicas, dashboard, members, killedAt });
  },
};

async function judge(stage, { replicas, dashboard, members, killedAt }) {
  const nexts = members.map(({ opened }) => opened.find(({ at }) => at > killedAt));
  const taken = nexts.filter(({ event }) => event === 'device:registered');
  stage.all('next opens that got the session', taken.length, members.length);
  const others = nexts.filter((one) => !taken.includes(one)).map(({ event, socket }) => socket.told[0]?.[1].reason ?? event);
  if (others.length > 0) stage.note(`others: ${[...new Set(others)].join(', ')}`);
  stage.atMost('slowest from the open to the session', Math.max(...nexts.map(({ ms }) => ms)), ' ms', { ours: 1_000 });

  const open = ({ opened }) => opened.filter(({ socket }) => socket.isOpen);
  await until(() => members.every((member) => open(member).length <= 1), 20_000, 'no device with more than one socket');
  const holds = await Promise.all(members.map(async (member) => {
    const [one] = open(member);
    return one?.socket.holds(member.device).then(() => true, () => false);
  }));
  stage.all('devices with one socket, whose heartbeats count', holds.filter(Boolean).length, members.length);
  const records = await Promise.all(members.map(({ device }) => record(replicas[0], device)));
  const named = new Set(records.map(({ holder }) => holder?.replica));
  stage.holds('the records name replicas that live', !named.has(undefined) && named.size <= replicas.length - 1);
  const offline = members.filter(({ device }) => dashboard.statuses(device).includes('offline'));
  stage.atMost('devices that were seen as offline', offline.length, '', { ours: 0 });
}
