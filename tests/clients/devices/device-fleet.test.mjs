// Sessions of devices on two replicas behind one Redis, the sockets of each device spread over both; and what only a fleet can do wrong.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { DeviceSocket, INFO, record, registration, Replicas, SETTLE_MS, vacant } from './devices.mjs';
import { describeDevices } from './devices.test.mjs';
import { closeSockets, newUser } from '../support/sockets.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';

describeDevices(2);

describe('two replicas that accept at the same moment', () => {
  const ROUNDS = 20;
  let replicas;
  before(async () => (replicas = await Replicas.start(2, { settings: { 'device.offline_debounce_ms': 300 } })));
  after(() => replicas?.stop());
  afterEach(closeSockets);

  test('one holder, and the other is told', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const it = await replicas.device('raced');
      const sockets = replicas.places.map((place) => it.at(place));
      await Promise.all(sockets.map((socket) => socket.answer()));
      const open = () => sockets.filter(({ isOpen }) => isOpen);
      await until(() => open().length === 1, PATIENCE_MS, () => `one open socket; there are ${open().length}`);
      const [holder] = open();
      const loser = sockets.find((socket) => socket !== holder);
      assert.equal((await loser.throttled()).reason, 'session_settle');
      await holder.holds(it.device);
      const holdings = await Promise.all(replicas.places.map((place) => record(place, it.device)));
      assert.deepEqual(holdings[0].holder, holdings[1].holder);
      assert.equal(holdings[0].flips, 0);
    }
  });

  test('of devices that pair', async () => {
    const words = { pairing_code: newUser('code'), fingerprint: newUser('print'), device_info: INFO };
    const sockets = replicas.places.map((place) => DeviceSocket.register(place, words));
    const answers = await Promise.all(sockets.map((socket) => socket.answer()));
    assert.deepEqual(answers.map(([event]) => event).sort(), ['device:registered', 'device:throttled']);
    await sockets.find(({ isRegistered }) => !isRegistered).throttled();
    assert.equal(sockets.filter(({ isOpen }) => isOpen).length, 1);
  });

  test('the gauges count one holder', async () => {
    const it = await replicas.device('counted');
    const before = await replicas.counted('pointwork_device_holders');
    const one = it.at(replicas.first);
    await one.registered();
    await until(async () => (await replicas.counted('pointwork_device_holders')) === before + 1, PATIENCE_MS, 'one holder more');
    one.close();
    await until(async () => (await replicas.counted('pointwork_device_holders')) === before, PATIENCE_MS, 'one holder less');
  });

  // The last: the first replica is another process afterwards.
  test('the holder’s replica is killed: the next is taken, and nobody in favour of the dead', async () => {
    const it = await replicas.device('orphan');
    await it.at(replicas.first).registered();
    const unseen = await replicas.device('forsaken');
    await unseen.at(replicas.first).registered();
    await replicas.first.kill();
    const back = it.at(replicas.last);
    await back.registered();
    await back.holds(it.device);
    assert.equal((await record(replicas.last, it.device)).flips, 0);
    // One that does not come back is offline, though nobody was left to say so.
    await unseen.dashboard.sees(unseen.device, 'offline');
    assert.equal((await record(replicas.last, unseen.device)).holder, null);
    assert.deepEqual(new Set(it.dashboard.statuses(it.device)), new Set(['online']));
    await replicas.first.start();
    const early = it.at(replicas.first);
    const [event, payload] = await early.answer();
    if (event === 'device:throttled') assert.ok(payload.reason === 'session_settle' && payload.retry_after_ms <= SETTLE_MS);
    else assert.equal(event, 'device:registered');
  });
});

describe('while Redis is away', () => {
  let replicas;
  const settings = { 'device.offline_debounce_ms': 300 };
  before(async () => (replicas = await Replicas.start(2, { settings, mayLogErrors: true })));
  after(() => replicas?.stop());
  afterEach(closeSockets);

  test('incumbents stay, newcomers are decided here, and one is left when it is back', async () => {
    const [held, split] = [await replicas.device('held'), await replicas.device('split')];
    const holder = held.at(replicas.first);
    await holder.registered();
    await replicas.fleet.redis.stop();
    assert.equal((await held.at(replicas.first).throttled()).reason, 'session_settle');
    await holder.holds(held.device);
    // Neither replica can see the other's.
    const sockets = replicas.places.map((place) => split.at(place));
    await Promise.all(sockets.map((socket) => socket.registered()));
    await replicas.fleet.redis.startEmpty();
    const open = () => sockets.filter(({ isOpen }) => isOpen);
    await until(() => open().length === 1, PATIENCE_MS, () => `one open socket; there are ${open().length}`);
    const loser = sockets.find(({ isOpen }) => !isOpen);
    await loser.closed();
    assert.deepEqual(loser.all('device:throttled').map(({ reason }) => reason), ['session_settle']);
    await open()[0].holds(split.device);
    await holder.holds(held.device);
    // The records are there again.
    for (const { device } of [held, split]) {
      const isRecorded = async (place) => {
        const response = await record(place, device).catch(() => undefined);
        return response?.holder && response.status === 'online';
      };
      for (const place of replicas.places) await until(() => isRecorded(place), PATIENCE_MS, `${device} to be recorded`);
    }
    await replicas.debounced(held);
    assert.deepEqual(new Set(held.dashboard.statuses(held.device)), new Set(['online']));
    // As if nothing had been.
    open()[0].close();
    await vacant(replicas.first, split.device);
    const next = DeviceSocket.register(replicas.last, registration(replicas.last, split.device, { user: split.owner }));
    await next.registered();
    await split.dashboard.sees(split.device, 'online');
  });
});
