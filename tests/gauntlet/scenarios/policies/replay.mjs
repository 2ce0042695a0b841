// What a fleet decided in a storm of devices, with calls beside it, is asked again: the same rules decide alike in all, others tell where not.
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DeviceSocket, registration } from '../../../clients/devices/devices.mjs';
import { pointwork, policyFile } from '../../../clients/support/host.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, shownFailures } from '../../../clients/support/calls.mjs';
import { app, Daemon, newUser } from '../../clients.mjs';

const RULES = { target: 'target-least-loaded', grace: 'grace-adaptive', presence: 'presence-tolerant', settle: 'settle-adaptive' };
/** Others, and a disagreement that each must show. */
const OTHERS = {
  'target-first': ['pick', 'pick, another one'],
  'settle-newest': ['refuse', 'accept'],
};

/** Of a call that waits for its daemon: longer than a busy machine takes to bring it. */
const GRACE = { min_ms: 20_000 };

const LONG = { devices: 100, stormMs: 5_000 };
const SHORT = { devices: 20, stormMs: 1_500 };

const SOCKETS = 6;
const CALL_EVERY_MS = 10;
/** No decision is to be the native rule's because the machine was busy. */
const DEADLINE_MS = 1_000;

export default {
  name: 'replay',
  seed: '—',
  on: ['pointwork'],
  replicasMin: 2,
  async run(stage) {
    const folder = await mkdtemp(join(tmpdir(), 'pointwork-replay-'));
    try {
      await play(stage, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function play(stage, folder) {
  const settings = { 'policy.dir': folder, 'policy.records.ring': 20_000 };
  for (const [slot, policy] of Object.entries(RULES)) {
    await copyFile(policyFile(policy), join(folder, `${slot}.wasm`));
    settings[`policy.${slot}.deadline_ms`] = DEADLINE_MS;
  }
  const config = join(folder, 'grace.json');
  await writeFile(config, JSON.stringify(GRACE));
  const { replicas } = await stage.fleet({ settings });
  await Promise.all([storm(stage, replicas), callsOfAllKinds(stage, replicas)]);

  const files = await Promise.all(replicas.map((replica, index) => recorded(replica, join(folder, `replica-${index}.jsonl`))));
  const all = join(folder, 'all.jsonl');
  await writeFile(all, (await Promise.all(files.map((file) => readFile(file, 'utf8')))).join(''));
  await judgeCounts(stage, replicas, all);
  for (const [slot, policy] of Object.entries(RULES)) {
    const found = await replayed(policy, all, ...(slot === 'grace' ? ['--config', config] : []));
    stage.atLeast(`${slot}: decisions recorded`, found.of_slot, '', { ours: 1 });
    stage.all(`${slot}: ${policy} decides as it did`, found.agreed_of_this_generation, found.of_slot);
    stage.all(`${slot}: agreement`, found.agreed, found.of_slot);
  }
  for (const [policy, [recorded, here]] of Object.entries(OTHERS)) {
    const found = await replayed(policy, all);
    const cell = found.cells.find((cell) => cell.recorded === recorded && cell.here === here);
    stage.atLeast(`${policy}: ${recorded} -> ${here}, of ${found.of_slot}`, cell?.count ?? 0, '', { ours: 1 });
    const told = found.cells.reduce((sum, { count }) => sum + count, 0);
    stage.all(`${policy}: agreements and disagreements`, found.agreed + told, found.of_slot);
  }
  await judgeEdited(stage, all);
}

/** All sockets of all devices, evenly over the time and over the replicas. */
async function storm(stage, replicas) {
  const { devices, stormMs } = stage.isShort ? SHORT : LONG;
  const members = Array.from({ length: devices }, () => registration(replicas[0], newUser('device'), { org: 'storm' }));
  const opens = devices * SOCKETS;
  const sockets = [];
  for (let i = 0; i < opens; i += 1) {
    sockets.push(DeviceSocket.register(replicas[i % replicas.length], members[i % devices]));
    await delay(stormMs / opens);
  }
  await Promise.all(sockets.map((socket) => socket.answer()));
}

/** Several daemons of one method; a call that waits for its daemon; one whose daemon goes. */
async function callsOfAllKinds(stage, replicas) {
  const { calls } = stage;
  const { stormMs } = stage.isShort ? SHORT : LONG;
  const user = newUser();
  // One after the other: a replica knows of a daemon elsewhere before its own, so the first is not always the one at hand.
  for (const replica of replicas) await Daemon.start(replica, { user, method: 'work', calls });
  const callers = await Promise.all(replicas.map((replica) => app(replica, user)));
  const loads = callers.map((caller) => calls.load(caller, 'work', CALL_EVERY_MS));
  const first = await Daemon.start(replicas[0], { user, method: 'there', calls, handle: () => undefined, reconnection: false });
  const second = await Daemon.start(replicas[0], { user, method: 'elsewhere', calls });
  const left = calls.make(callers[1], 'there');
  await first.received(1);
  first.socket.disconnect();
  stage.holds('a call whose daemon left has failed', (await left).outcome === 'failed');
  const waited = calls.make(callers[1], 'there');
  await until(async () => (await asked(replicas[1], 'grace')) > 0, 20_000, 'a call that is held');
  second.socket.emit('rpc-register', { method: 'there' });
  await delay(stormMs);
  const made = [await waited, ...(await Promise.all(loads.map((load) => load.stop()))).flat()];
  stage.atMost(`failed of ${made.length} calls beside it`, bad(made).length, '', { ours: 0 });
  if (bad(made).length > 0) stage.note(shownFailures(made));
}

async function recorded(replica, file) {
  const { code, stderr } = await pointwork('policy', 'record', '--out', file, '--admin-url', replica.admin);
  if (code !== 0) throw new Error(`policy record: ${stderr}`);
  return file;
}

async function replayed(policy, records, ...more) {
  const { code, stdout, stderr } = await pointwork(
    'policy', 'replay', '--policy', policyFile(policy), '--records', records, '--deadline-ms', DEADLINE_MS, '--json', ...more);
  if (code !== 0) throw new Error(`policy replay: ${stderr}`);
  return JSON.parse(stdout);
}

/** None was lost: each replica's counters say how often its slots were asked. */
async function judgeCounts(stage, replicas, file) {
  const records = (await readFile(file, 'utf8')).split('\n').filter(Boolean);
  const counts = await Promise.all(replicas.map((replica) => asked(replica)));
  stage.all('decisions that are in the recording', records.length, counts.reduce((sum, one) => sum + one, 0));
}

/** How often a replica has asked a slot, or all. */
async function asked(replica, slot) {
  const { policies } = JSON.parse((await replica.request('/v1/policies')).text);
  return policies.filter((one) => !slot || one.slot === slot).reduce((sum, { calls }) => sum + calls, 0);
}

/** A line that somebody changed by hand. */
async function judgeEdited(stage, file) {
  const lines = (await readFile(file, 'utf8')).split('\n');
  const number = lines.findIndex((line) => line.includes('"slot":"settle"')) + 1;
  lines[number - 1] = lines[number - 1].replace('"liveness":"alive"', '"liveness":"well"');
  const edited = `${file}.edited`;
  await writeFile(edited, lines.join('\n'));
  const { code, stderr } = await pointwork('policy', 'replay', '--policy', policyFile(RULES.target), '--records', edited);
  stage.holds('a line that was edited is refused with its number', code === 1 && stderr.includes(`: line ${number}: `));
}
