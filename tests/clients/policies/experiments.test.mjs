// Experiments on two replicas behind one Redis, and on one that is alone: arms, weights, guardrails, shadows, promotion, restarts.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { counted, startCluster, stopCluster } from '../fleet/cluster.mjs';
import { admin, DeviceSocket, NEVER_MS, record, registration } from '../devices/devices.mjs';
import { becomes, decides, exp, experiment, failing, report } from './exp.mjs';
import { guestFile, policyFile, startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, newUser } from '../support/sockets.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';

/** A window that never ends: what holds an incumbent holds it for good, so an answer shows who decided. */
const SETTINGS = {
  'device.settle_ms': NEVER_MS,
  'device.offline_debounce_ms': 300,
  'device.heartbeat_timeout_ms': 1_000,
  'device.connect_rate_max': 10_000,
  'device.reconnect_base_max': 10_000,
  'device.reconnect_hard_ceiling': 10_000,
};

const HOLDS = 'current'; // settle-hold
const NEWEST = policyFile('settle-newest');

/** A device with an incumbent; `newcomer(place)` opens another socket and gives whether that got the session. */
async function device(place, id = newUser('device')) {
  const words = registration(place, id);
  const first = DeviceSocket.register(place, words);
  await first.registered();
  const beats = setInterval(() => first.isOpen && first.heartbeat(id), 200);
  beats.unref();
  const newcomer = async (at) => {
    const socket = DeviceSocket.register(at, words);
    const [event, payload] = await socket.answer();
    const isAccepted = event === 'device:registered';
    if (isAccepted) setInterval(() => socket.isOpen && socket.heartbeat(id), 200).unref();
    return { isAccepted, payload };
  };
  return { id, first, newcomer };
}

const devices = (places, count) =>
  Promise.all(Array.from({ length: count }, (_, index) => device(places[index % places.length])));

const trial = async (place, { id }) => (await record(place, id)).trial;

/** Creates an experiment in settle with one treatment, and waits until it decides everywhere. */
async function create(places, name, treatment, weights, ...more) {
  const arms = ['--arm', `control=${HOLDS}`, '--arm', `treatment=${treatment}`, '--weights', weights];
  const said = await exp(places[0], 'create', name, '--slot', 'settle', ...arms, ...more);
  if (!more.includes('--shadow-only')) await decides(places, name);
  return said;
}

describe('two replicas', () => {
  let fleet;
  let places;
  let folder;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pointwork-experiments-'));
    fleet = await startCluster(2, { settings: SETTINGS });
    places = fleet.replicas;
  });
  after(() => stopCluster(fleet).finally(() => rm(folder, { recursive: true })));
  afterEach(closeSockets);

  const config = async (name, value) => {
    const file = join(folder, `${name}.json`);
    await writeFile(file, JSON.stringify(value));
    return file;
  };

  test('settle is asked by the key of the device', async () => {
    const treatment = `${guestFile('stubborn')},${await config('key', { mode: 'key' })}`;
    await create(places, 'key', treatment, '0,100');
    const one = await device(places[0]);
    const hash = createHash('sha256').update(`pointwork key v1 device\0${one.id}`).digest();
    const { payload } = await one.newcomer(places[1]);
    assert.equal(payload.retry_after_ms, Number(hash.readBigUInt64BE(0) % 1_000_000n) + 1);
    await exp(places[0], 'abort', 'key');
  });

  test('each device has one arm, on both replicas, until the experiment is paused and when it runs again', async () => {
    const said = await create(places, 'split', NEWEST, '50,50');
    assert.match(said, /^split: running in settle: control=current 50%, treatment=[0-9a-f]{12} 50%\n$/);
    const all = await devices(places, 40);
    const arms = [];
    for (const one of all) {
      const answers = [];
      for (const place of [places[1], places[0], places[1]]) answers.push((await one.newcomer(place)).isAccepted);
      assert.equal(new Set(answers).size, 1, `${one.id} is decided by one arm: ${answers}`);
      const seen = await Promise.all(places.map((place) => trial(place, one)));
      assert.deepEqual(seen.map(({ arm }) => arm), Array(2).fill(answers[0] ? 'treatment' : 'control'));
      const { experiment: name, decisions, failures, flips, refused } = seen[0];
      assert.deepEqual([name, decisions, failures], ['split', 3, 0]);
      assert.deepEqual([flips, refused], answers[0] ? [3, 0] : [0, 3]);
      arms.push(seen[0].arm);
    }
    const treated = all.filter((_, index) => arms[index] === 'treatment');
    assert.ok(treated.length > 5 && treated.length < 35, `${treated.length} of 40`);
    const asked = fleet.replicas.flatMap(({ log }) => log).filter((line) => line.includes('"arm":"treatment"'));
    assert.ok(asked.length >= treated.length * 3, 'the log tells the arm');

    await exp(places[1], 'pause', 'split');
    await decides(places, 'split', false);
    for (const one of treated.slice(0, 4)) assert.equal((await one.newcomer(places[0])).isAccepted, false, 'what serves decides');
    assert.equal((await trial(places[0], treated[0])).decisions, 3);
    await exp(places[1], 'resume', 'split');
    await decides(places, 'split');
    for (const one of treated.slice(0, 4)) assert.equal((await one.newcomer(places[1])).isAccepted, true);

    const { sample_ratio: ratio, arms: names } = await until(async () => {
      const read = await report(places[1], 'split');
      return read.sample_ratio.exposed.reduce((sum, count) => sum + count) === 40 && read;
    }, PATIENCE_MS, '40 units in the report');
    assert.deepEqual(names, ['control', 'treatment']);
    assert.deepEqual(ratio.exposed, [40 - treated.length, treated.length]);
    const text = await exp(places[0], 'report', 'split');
    assert.match(text, /treatment/);
  });

  test('an exposed device keeps its arm when weights change, and a restarted replica knows all of it', async () => {
    const all = await devices(places, 30);
    for (const one of all) await one.newcomer(places[0]);
    const before = await Promise.all(all.map((one) => trial(places[0], one)));
    await exp(places[0], 'set-weight', 'split', '0.01,99.99');
    await becomes(places[1], 'split', ({ arms }) => arms[1].weight === 9_999);
    await until(async () => (await device(places[1]).then((one) => one.newcomer(places[1]))).isAccepted, PATIENCE_MS, 'new devices in the treatment');
    for (const [index, one] of all.entries()) {
      assert.equal((await one.newcomer(places[1])).isAccepted, before[index].arm === 'treatment', one.id);
    }
    await places[1].restart();
    await decides(places, 'split');
    const { arms, here } = await experiment(places[1], 'split');
    assert.deepEqual([arms[1].weight, here.problems], [9_999, []]);
    // Those whose holder is at the other replica.
    const control = all.filter((_, index) => before[index].arm === 'control' && index % 2 === 0);
    for (const one of control.slice(0, 3)) {
      assert.equal((await one.newcomer(places[1])).isAccepted, false);
      assert.equal((await trial(places[1], one)).decisions, 3);
    }
    await exp(places[0], 'abort', 'split', '--reason', 'seen enough');
    const { status, reason } = await becomes(places[1], 'split', (one) => one.status === 'aborted');
    assert.deepEqual([status, reason], ['aborted', 'seen enough']);
  });

  test('a treatment that keeps devices offline ends within two seconds of crossing its guardrail', async () => {
    const LIMIT_MS = 500;
    const limits = ['--guardrail', `offline_ms_mean_max=${LIMIT_MS}`, '--guardrail', 'units_min=5'];
    await create(places, 'strands', guestFile('stubborn'), '50,50', ...limits);
    // Their holders say nothing: they are offline a second later, and whoever comes for them is refused.
    const words = Array.from({ length: 30 }, () => registration(places[0], newUser('device')));
    for (const one of words) await DeviceSocket.register(places[0], one).registered();
    await Promise.all(words.map((one) => DeviceSocket.register(places[1], one).answer()));
    const ended = await becomes(places[0], 'strands', ({ status }) => status === 'aborted');
    assert.deepEqual([ended.guardrail, ended.arms.map(({ weight }) => weight)], ['offline', [10_000, 0]]);
    const [, found] = /^guardrail: treatment: offline for (\d+) ms a unit, more than 500, over \d+ units$/.exec(ended.reason);
    // A unit is offline for no more than a second in a second: so much later than the limit was crossed it was found.
    assert.ok(Number(found) > LIMIT_MS && Number(found) <= LIMIT_MS + 2_000, ended.reason);
    await decides(places, 'strands', false);
    const ends = await Promise.all(places.map((place) => counted(place, 'pointwork_experiment_guardrail_total', 'guardrail="offline"')));
    assert.equal(ends.reduce((sum, count) => sum + count), 1);
    const { guardrails } = await report(places[1], 'strands');
    const crossed = guardrails.filter(({ crossed_ms }) => crossed_ms !== null);
    assert.deepEqual(crossed.map(({ name, arm, limit }) => [name, arm, limit]), [['offline', 'treatment', LIMIT_MS]]);
    assert.match(await exp(places[0], 'list'), /strands: aborted in settle.*\n {2}guardrail: treatment: offline/);
  });

  test('a treatment that fails ends, and nobody was refused for it', async () => {
    const treatment = `${guestFile('stubborn')},${await config('trap', { mode: 'trap' })}`;
    await create(places, 'fails', treatment, '0,100', '--guardrail', 'decisions_min=10');
    const all = await devices(places, 12);
    for (const one of all) {
      // The native rule: it holds.
      const { isAccepted, payload } = await one.newcomer(places[0]);
      assert.deepEqual([isAccepted, payload.reason], [false, 'session_settle']);
    }
    const { guardrail, reason } = await becomes(places[1], 'fails', ({ status }) => status === 'aborted');
    assert.equal(guardrail, 'failures');
    assert.match(reason, /^guardrail: treatment: 1\.0000 of 1[0-2] decisions failed/);
  });

  test('a treatment that devices come into after their horizon ends by a guardrail too', async () => {
    const treatment = `${guestFile('stubborn')},${await config('later', { mode: 'trap' })}`;
    const limits = ['--horizon-ms', '1000', '--guardrail', 'decisions_min=10'];
    await create(places, 'later', treatment, '99.99,0.01', ...limits);
    const all = await devices(places, 15);
    for (const one of all) await one.newcomer(places[0]);
    const trials = () => Promise.all(all.map((one) => trial(places[0], one)));
    const over = Math.max(...(await trials()).map(({ ends_ms }) => ends_ms));
    await until(async () => Date.now() > over, PATIENCE_MS, 'all horizons to be over');
    const observed = await trials();
    await exp(places[0], 'set-weight', 'later', '0,100');
    await becomes(places[1], 'later', ({ arms }) => arms[1].weight === 10_000);
    await Promise.all(all.map((one) => one.newcomer(places[1])));
    const { guardrail } = await becomes(places[0], 'later', ({ status }) => status === 'aborted');
    assert.equal(guardrail, 'failures');
    assert.deepEqual(await trials(), observed, 'what was observed stays');
  });

  test('a shadow is asked and decides nothing', async () => {
    await create(places, 'shadow', NEWEST, '0,100', '--shadow-only');
    await until(async () => (await experiment(places[1], 'shadow')).here.decides, PATIENCE_MS, 'the shadow everywhere');
    const all = await devices(places, 10);
    for (const one of all) assert.equal((await one.newcomer(places[1])).isAccepted, false);
    assert.equal(await trial(places[0], all[0]), null);
    const shadow = await until(async () => {
      const { shadow: cells } = await report(places[0], 'shadow');
      return cells.length > 0 && cells[0].count === 10 && cells;
    }, PATIENCE_MS, 'ten disagreements');
    assert.deepEqual(shadow, [{ arm: 'treatment', served: 'refuse', shadow: 'accept', count: 10 }]);
    await exp(places[0], 'abort', 'shadow');
  });

  test('users have arms too, and what became of their calls is counted', async () => {
    const arms = ['--arm', 'control=current', '--arm', `treatment=${policyFile('target-least-loaded')}`];
    await exp(places[0], 'create', 'calls', '--slot', 'target', ...arms, '--weights', '50,50', '--horizon-ms', '4000');
    await decides(places, 'calls');
    const USERS = 20;
    for (let index = 0; index < USERS; index += 1) {
      const user = newUser();
      await daemon(places[0], { user, methods: ['m'], handler: (value) => value });
      const caller = await connect(places[1], { user });
      for (const value of [1, 2]) assert.equal((await call(caller, 'm', value)).ok, true);
    }
    const read = await until(async () => {
      const seen = await report(places[0], 'calls');
      return seen.counted.reduce((sum, count) => sum + count) === USERS && seen;
    }, PATIENCE_MS, 'all users to be counted');
    const of = (name) => read.outcomes.find((one) => one.name === name).means;
    assert.deepEqual(read.sample_ratio.exposed, read.counted);
    for (const [arm, units] of read.counted.entries()) {
      if (units === 0) continue;
      assert.deepEqual([of('calls')[arm].mean, of('answered')[arm].mean, of('failures')[arm].mean], [2, 1, 0]);
    }
    await exp(places[0], 'abort', 'calls');
  });

  test('what makes no sense is refused, and says why', async () => {
    const arms = (...modules) => modules.flatMap((module, index) => ['--arm', `arm-${index}=${module}`]);
    const refused = (name, ...more) => failing(places[0], 'create', name, '--slot', 'settle', ...more);
    assert.match(await refused('Wrong', ...arms('current', 'native'), '--weights', '50,50'), /is no name/);
    assert.match(await refused('one', ...arms('current'), '--weights', '100'), /2 to 8 arms/);
    assert.match(await refused('sum', ...arms('current', 'native'), '--weights', '50,60'), /must be 100/);
    assert.match(await refused('split', ...arms('current', 'native'), '--weights', '50,50'), /there is an experiment "split" already \(409/);
    assert.match(await refused('slot', ...arms('current', policyFile('target-first')), '--weights', '50,50'), /target/);
    assert.match(await refused('none', ...arms('current', 'a'.repeat(64)), '--weights', '50,50'), /No such file|os error 2/);
    assert.match(await failing(places[0], 'pause', 'nobody'), /there is no experiment "nobody" \(404/);
    assert.match(await failing(places[0], 'pause', 'split'), /is over: aborted \(409/);
    const unknown = { name: 'x', slot: 'settle', arms: [{ name: 'a', module: 'current' }, { name: 'b', module: 'a'.repeat(64) }], weights: [5_000, 5_000] };
    assert.equal((await admin(places[0], '/v1/experiments', unknown)).status, 409);
    assert.equal((await admin(places[0], '/v1/experiments', { ...unknown, more: 1 })).status, 400);
  });

  // The last: another policy serves afterwards.
  test('a treatment is promoted on every replica', async () => {
    await create(places, 'better', NEWEST, '50,50');
    const said = await exp(places[1], 'promote', 'better');
    assert.match(said, /^better: promoted in settle/);
    const serving = async (place) => (await admin(place, '/v1/policies')).body.policies.find(({ slot }) => slot === 'settle').name;
    for (const place of places) await until(async () => (await serving(place)) === 'settle-newest', PATIENCE_MS, 'settle-newest to serve');
    const one = await device(places[0]);
    assert.equal((await one.newcomer(places[1])).isAccepted, true);
    assert.equal(await trial(places[0], one), null);
  });
});

describe('a host that is alone', () => {
  test('keeps its experiments over a restart, if it has a place for them', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pointwork-state-'));
    const settings = { ...SETTINGS, 'policy.state_dir': folder };
    try {
      const first = await startHost({ settings });
      await create([first], 'alone', NEWEST, '0,100');
      const one = await device(first);
      assert.equal((await one.newcomer(first)).isAccepted, true);
      const seen = await until(async () => {
        const { sample_ratio: ratio } = await report(first, 'alone');
        return ratio.exposed[1] === 1 && ratio;
      }, PATIENCE_MS, 'its unit');
      assert.deepEqual(seen.exposed, [0, 1]);
      closeSockets();
      await first.stop();
      const second = await startHost({ settings });
      await decides([second], 'alone');
      const two = await device(second);
      assert.equal((await two.newcomer(second)).isAccepted, true);
      await exp(second, 'abort', 'alone');
      assert.equal((await two.newcomer(second)).isAccepted, false);
      closeSockets();
      await second.stop();
    } finally {
      closeSockets();
      await rm(folder, { recursive: true });
    }
  });
});

describe('a host that is alone and promotes', () => {
  test('has the treatment serve over a restart, until the file of the slot is newer', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pointwork-state-'));
    const options = { settings: { ...SETTINGS, 'policy.state_dir': folder }, policies: {} };
    const promotion = async (place) => (await experiment(place, 'alone')).here.promotion ?? '';
    try {
      const first = await startHost(options);
      await create([first], 'alone', NEWEST, '50,50');
      await first.stop();
      // Promoted by a process that was not the one to get the module.
      const second = await startHost(options);
      await decides([second], 'alone');
      await exp(second, 'promote', 'alone');
      assert.match(await promotion(second), /^it serves as generation/);
      await second.stop();
      const third = await startHost(options);
      await until(async () => /^it serves as generation/.test(await promotion(third)), PATIENCE_MS, 'the promotion');
      const one = await device(third);
      assert.equal((await one.newcomer(third)).isAccepted, true);
      closeSockets();
      await third.stop();
      const fourth = await startHost({ ...options, policies: { settle: 'settle-hold' } });
      await until(async () => /is newer$/.test(await promotion(fourth)), PATIENCE_MS, 'the file to be found newer');
      const two = await device(fourth);
      assert.equal((await two.newcomer(fourth)).isAccepted, false);
      closeSockets();
      await fourth.stop();
    } finally {
      closeSockets();
      await rm(folder, { recursive: true });
    }
  });
});

describe('where rollouts say what serves', () => {
  let fleet;
  before(async () => (fleet = await startCluster(2, { settings: { ...SETTINGS, 'policy.source': 'cluster' } })));
  after(() => stopCluster(fleet));
  afterEach(closeSockets);

  test('a promoted treatment is pushed, and the native rule is none', async () => {
    const places = fleet.replicas;
    await create(places, 'native', 'native', '50,50');
    assert.match(await failing(places[0], 'promote', 'native'), /the native rule cannot be pushed to a cluster.*409/s);
    assert.equal((await experiment(places[1], 'native')).status, 'running');
    await exp(places[0], 'abort', 'native');
    await create(places, 'pushed', NEWEST, '50,50');
    assert.match(await exp(places[1], 'promote', 'pushed'), /pointwork policy status/);
    const serving = async (place) => (await admin(place, '/v1/policies')).body.policies.find(({ slot }) => slot === 'settle').name;
    for (const place of places) await until(async () => (await serving(place)) === 'settle-newest', PATIENCE_MS, 'settle-newest to serve');
    const one = await device(places[0]);
    assert.equal((await one.newcomer(places[1])).isAccepted, true);
  });
});

describe('connections that die without a word', () => {
  const PING_MS = 300;
  let fleet;
  before(async () => {
    const pings = { 'listen.ping_interval_ms': PING_MS, 'listen.ping_timeout_ms': 700, 'device.heartbeat_timeout_ms': NEVER_MS };
    fleet = await startCluster(2, { settings: { ...SETTINGS, ...pings } });
  });
  after(() => stopCluster(fleet));
  afterEach(closeSockets);

  test('a treatment that strands devices on them ends within two seconds of crossing its guardrail', async () => {
    const LIMIT_MS = 100;
    const UNITS = 6;
    const places = fleet.replicas;
    const limits = [`stranded_ms_mean_max=${LIMIT_MS}`, 'offline_ms_mean_max=off', `units_min=${UNITS}`];
    await create(places, 'strands', guestFile('stubborn'), '0,100', ...limits.flatMap((limit) => ['--guardrail', limit]));
    const door = await fleet.door(1);
    const words = Array.from({ length: UNITS }, () => registration(places[0], newUser('device')));
    for (const one of words) await DeviceSocket.register(door, one).registered();
    door.blackhole();
    // Newcomers come until one is accepted: when the end of the old one is found.
    const comes = async (one) => {
      let refused = 0;
      for (;;) {
        const [event] = await DeviceSocket.register(places[0], one).answer();
        if (event === 'device:registered') return refused;
        refused += 1;
      }
    };
    const refusals = await Promise.all(words.map(comes));
    assert.ok(refusals.every((refused) => refused > 0), `${refusals}`);
    const ended = await becomes(places[1], 'strands', ({ status }) => status === 'aborted');
    assert.equal(ended.guardrail, 'stranded');
    assert.match(ended.reason, /^guardrail: treatment: stranded for \d+ ms a unit, more than 100, over 6 units$/);
    // All has been found when the last of them was accepted; no unit was stranded for longer than its connection was dead.
    const trials = await Promise.all(words.map(({ device_id }) => record(places[0], device_id)));
    const found = trials.map(({ trial: { stranded_ms } }) => stranded_ms);
    assert.ok(found.some((ms) => ms > LIMIT_MS) && found.every((ms) => ms < 5_000), `${found}`);
    const latest = Math.max(...trials.map(({ holder }) => holder.since_ms));
    assert.ok(ended.ended_ms - latest <= 2_000, `${ended.ended_ms - latest} ms after the last of them was found`);
    door.heal();
  });
});
