// The four bugs of the field's design before its present one. Each has a probe that is played on a fleet of Pointwork's, which must
// not have the bug, and on one of the old design, which must: else the probe could not fail.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../clients/support/waiting.mjs';
import { bad, Calls, shownFailures } from '../clients/support/calls.mjs';
import { app, closeSockets, collect, newUser, pair } from './clients.mjs';
import { Fleet } from '../clients/fleet/fleet.mjs';

/** How long a daemon may take to answer: short, so that a call that takes all of it does not take long. */
const CALL_TIMEOUT_MS = 2_000;

/** How long the old design keeps a registration that is not refreshed. */
const REGISTRATION_TTL_MS = 1_500;

const STREAM_LEN_MAX = 100;

const DISCONNECTED = 'RPC target disconnected';

/** A server may need this long to hear of a cut, on a machine that is busy. */
const HEARS_MS = 250;

/** The bugs by name: a probe that gives `{isPresent, found}`, and what it must find on the old design. */
const BUGS = {
  'dead pod': { probe: deadPod, symptom: /operation has timed out/ },
  'reconnect race': { probe: reconnectRace, symptom: /RPC method not available/ },
  'silent expiry': { probe: silentExpiry, symptom: /RPC method not available/ },
  'stream growth': { probe: streamGrowth, symptom: /^500 entries after 500/ },
};

for (const [name, { probe, symptom }] of Object.entries(BUGS)) {
  test(name, async (t) => {
    await t.test('Pointwork does not have it', async (t) => {
      const { isPresent, found } = await played(probe, 'pointwork');
      t.diagnostic(found);
      assert.equal(isPresent, false, found);
    });
    await t.test('the old design has it', async (t) => {
      const { isPresent, found } = await played(probe, 'old-design');
      t.diagnostic(found);
      assert.equal(isPresent, true, found);
      assert.match(found, symptom);
    });
  });
}

/** A call is in flight when the daemon's replica is killed: it eats its whole timeout. */
async function deadPod({ replicas }, calls) {
  const { caller, daemon, method } = await pair(calls, ...replicas, { handle: () => undefined, reconnection: false });
  const inFlight = calls.make(caller, method);
  await daemon.received(1);
  await replicas[1].kill();
  const { outcome, error, ms } = await inFlight;
  assert.equal(outcome, 'failed');
  return { isPresent: ms >= CALL_TIMEOUT_MS, found: `${error} after ${ms.toFixed()} ms` };
}

/** A daemon comes back after its connection was cut: calls made meanwhile are told that there is none. */
async function reconnectRace(fleet, calls) {
  const door = await fleet.door(1);
  const { caller, daemon, method } = await pair(calls, fleet.replicas[0], door);
  const load = calls.load(caller, method, 20);
  await daemon.received(1);
  const cuts = [];
  for (let cycle = 0; cycle < 2; cycle += 1) {
    const cutAt = performance.now();
    cuts.push(cutAt);
    door.cut();
    await until(() => daemon.registeredAt > cutAt, 20_000, 'the daemon to be back');
    await daemon.received(daemon.requests.length + 1);
  }
  const answers = await load.stop();
  // A call that had been handed to the socket when that died has had its daemon.
  const wasHanded = ({ error, startedAt, endedAt }) =>
    error === DISCONNECTED && cuts.some((cutAt) => startedAt < cutAt + HEARS_MS && endedAt > cutAt);
  const refused = bad(answers).filter((record) => !wasHanded(record));
  const found = `${refused.length} of ${answers.length} calls refused; ${shownFailures(refused)}`;
  return { isPresent: refused.length > 0, found };
}

/** A daemon stays connected and its signs of life stay away: its registration is gone, and it is not told. */
async function silentExpiry({ replicas }, calls) {
  const { caller, daemon, method } = await pair(calls, ...replicas);
  const connectedAs = daemon.socket.id;
  for (let ms = 0; ms < REGISTRATION_TTL_MS * 1.5; ms += 100) {
    daemon.socket.emit('machine-alive', { machineId: `machine-of-${method}`, time: Date.now() });
    await delay(100);
  }
  assert.equal((await calls.make(caller, method)).outcome, 'ok', 'with signs of life');
  // The silence is what is tested. It is also longer than a replica may be silent before it counts as lost.
  await delay(Math.max(2 * REGISTRATION_TTL_MS, 3_500));
  const { outcome, error } = await calls.make(caller, method);
  assert.equal(daemon.socket.id, connectedAs, 'the daemon stayed connected');
  return { isPresent: outcome !== 'ok', found: error ?? outcome };
}

/** More is broadcast than the stream should keep: it keeps it all. */
async function streamGrowth({ redis, replicas: [near, far] }) {
  // Redis trims whole nodes of its list: small ones, so that `~` is near.
  await redis.command('CONFIG', 'SET', 'stream-node-max-entries', '10');
  const user = newUser();
  const updates = collect(await app(far, user), 'update');
  const broadcasts = 5 * STREAM_LEN_MAX;
  for (let id = 1; id <= broadcasts; id += 1) {
    await near.emit({ rooms: [`user:${user}`], event: 'update', args: [{ id }] });
  }
  await until(() => updates.at(-1)?.[0].id === broadcasts, 20_000, 'the last broadcast');
  const kept = await redis.command('XLEN', 'socket.io');
  return { isPresent: kept > 2 * STREAM_LEN_MAX, found: `${kept} entries after ${broadcasts} broadcasts` };
}

/** A probe's verdict on a fleet of two that is gone afterwards. */
async function played(probe, kind) {
  const calls = new Calls();
  const fleet = await Fleet.start([kind, kind], {
    streamLenMax: STREAM_LEN_MAX,
    settings: { 'rpc.call_timeout_ms': CALL_TIMEOUT_MS },
    environment: { CALL_TIMEOUT_MS: String(CALL_TIMEOUT_MS), REGISTRATION_TTL_MS: String(REGISTRATION_TTL_MS) },
  });
  try {
    const verdict = await probe(fleet, calls);
    assert.deepEqual(fleet.replicas.flatMap(({ faults }) => faults), [], 'a log holds an error');
    return verdict;
  } finally {
    calls.close();
    closeSockets();
    await fleet.close();
  }
}
