// What holds of the sessions of devices, on one replica as on several: this file runs it on one, device-fleet.test.mjs on two.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { admin, Dashboard, describeStorms, DeviceSocket, deviceToken, INFO, NEVER_MS, record, registration, Replicas, SETTLE_MS, vacant } from './devices.mjs';
import { closeSockets, newUser, refusal, TRANSPORTS } from '../support/sockets.mjs';
import { hs256, nowSeconds, unsigned } from '../support/tokens.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';

const BAD_TOKEN = 'invalid device token';
const NO_TOKEN = 'device token or pairing code is required';
const BLOCKED = 'device is blocked';
const ALREADY_PAIRED = 'device is already paired';
const OTHER_DEVICE = 'another device is registered on this connection';

/** Moves, liveness, refreshes, heartbeats, tokens, dashboards and operators. */
function describeSessions(number) {
  const settings = {
    'device.offline_debounce_ms': 500,
    'device.reconnect_base_max': 100,
    'device.reconnect_hard_ceiling': 100,
    'device.connect_rate_max': 200,
  };
  for (const isWarm of [true, false]) {
    describe(`sessions, ${isWarm ? 'in' : 'out of'} the warm-up, ${number} replica(s)`, () => {
      const shared = {};
      const warmup = { 'device.reconnect_warmup_ms': isWarm ? NEVER_MS : 0 };
      before(async () => (shared.replicas = await Replicas.start(number, { settings: { ...settings, ...warmup } })));
      after(() => shared.replicas?.stop());
      afterEach(closeSockets);
      for (const [name, run] of Object.entries(SESSIONS)) test(name, (t) => run(shared.replicas, t));
    });
  }
}

const SESSIONS = {
  async 'legitimate single move: the old one closed first'(replicas) {
    const { device, dashboard, at } = await replicas.device();
    const old = at(replicas.first);
    assert.equal((await old.registered()).status, 'online');
    old.close();
    await vacant(replicas.last, device);
    const moved = at(replicas.last);
    assert.equal((await moved.registered()).device_id, device);
    await moved.holds(device);
    const { flips, refusals, holder } = await record(replicas.first, device);
    assert.deepEqual([flips, refusals], [0, 0]);
    assert.equal(holder.socket, moved.socket.id);
    assert.ok(holder.replica && holder.since_ms > 0, JSON.stringify(holder));
    await dashboard.sees(device, 'online');
  },

  async 'legitimate single move: after the window the old one is evicted'(replicas) {
    const { device, dashboard, at } = await replicas.device();
    const old = at(replicas.first);
    await old.registered();
    const early = at(replicas.last);
    const { reason, retry_after_ms } = await early.throttled();
    assert.equal(reason, 'session_settle');
    assert.ok(retry_after_ms <= SETTLE_MS);
    await old.holds(device);
    await delay(retry_after_ms); // as it was told to
    const moved = at(replicas.last);
    await moved.registered();
    await old.closed();
    await moved.holds(device);
    const { flips, refusals, events } = await record(replicas.first, device);
    assert.deepEqual([flips, refusals], [1, 1]);
    assert.deepEqual(events.map(({ what }) => what), ['accepted', 'evicted', 'refused', 'accepted']);
    await dashboard.sees(device, 'online');
  },

  async 'each decision is one line in the log, and says who made it'(replicas) {
    const { device, at } = await replicas.device();
    await at(replicas.first).registered();
    await at(replicas.last).throttled();
    const read = (line) => (typeof line === 'string' && line.startsWith('{') ? JSON.parse(line) : line);
    const isOurs = (line) => line.message === 'device session' && line.device === device;
    const lines = () => replicas.places.flatMap(({ log }) => log).map(read).filter(isOurs);
    await until(() => lines().length >= 2, PATIENCE_MS, 'two lines');
    const [accepted, refused] = lines();
    assert.deepEqual([accepted.outcome, accepted.reason, accepted.generation], ['accepted', 'free', undefined]);
    assert.deepEqual([refused.outcome, refused.reason], ['refused', 'settled']);
    assert.match(refused.generation, /^[0-9a-f]{12}$/);
    assert.ok(refused.decision > 0 && refused.incumbent_age_ms >= 0, JSON.stringify(refused));
  },

  async 'liveness safeguard: the incumbent is cut in the window'(replicas, t) {
    const { device, dashboard, at } = await replicas.device();
    const door = await replicas.door(t);
    const old = at(door);
    await old.registered();
    const refused = await at(replicas.last).throttled();
    assert.equal(refused.reason, 'session_settle');
    door.cut();
    await vacant(replicas.last, device);
    const next = at(replicas.last);
    await next.registered();
    await next.holds(device);
    assert.equal((await record(replicas.first, device)).flips, 0, 'nobody was evicted');
    await dashboard.sees(device, 'online');
  },

  async 'a register again on the same socket is a refresh'(replicas) {
    const { device, owner, dashboard, at } = await replicas.device();
    const one = at(replicas.first);
    await one.registered();
    const words = registration(replicas.first, device, { user: owner });
    const times = 300; // more than any limit
    for (let i = 0; i < times; i += 1) one.register(words);
    assert.equal((await one.registered(times)).status, 'online');
    await one.holds(device);
    assert.equal(one.all('device:registered').length, times + 1);
    assert.equal(one.all('device:throttled').length, 0);
    const { flips, refusals } = await record(replicas.last, device);
    assert.deepEqual([flips, refusals], [0, 0]);
    assert.deepEqual(new Set(dashboard.statuses(device)), new Set(['online']));
    // Another device on it is refused, and the session is not touched.
    const other = newUser('other');
    one.register(registration(replicas.first, other));
    assert.deepEqual(await one.answer(times + 1), ['device:auth-error', { error: OTHER_DEVICE }]);
    await one.holds(device);
  },

  async 'heartbeats of another socket are refused'(replicas) {
    const { device, at } = await replicas.device();
    const holder = at(replicas.first);
    await holder.registered();
    for (const place of replicas.places) {
      const stranger = DeviceSocket.open(place);
      stranger.heartbeat(device);
      await stranger.heard();
      const [refused] = stranger.all('device:heartbeat-refused');
      assert.equal(refused.device_id, device);
      const { holder: named } = refused;
      if (place === replicas.first || named !== null) {
        const { holder: recorded } = await record(place, device);
        assert.deepEqual(named, { replica: recorded.replica, since_ms: recorded.since_ms });
      }
      assert.ok(stranger.isOpen, 'nothing else happens to it');
    }
    await holder.holds(device);
  },

  async 'tokens that prove nothing'(replicas) {
    const { device, at } = await replicas.device();
    const holder = at(replicas.first);
    await holder.registered();
    const place = replicas.last;
    const good = deviceToken(place, device);
    const [header, claims, signature] = good.split('.');
    const tokens = {
      'of another secret': hs256('another secret of thirty-two bytes', { sub: device }),
      'of another device': deviceToken(place, newUser('other')),
      expired: deviceToken(place, device, { exp: nowSeconds() - 3_600 }),
      'not valid yet': deviceToken(place, device, { nbf: nowSeconds() + 3_600 }),
      unsigned: unsigned({ sub: device }),
      'without its signature': `${header}.${claims}.`,
      'signed for something else': `${header}.${hs256(place.secret, { sub: newUser() }).split('.')[1]}.${signature}`,
      'of nobody': hs256(place.secret, {}),
      'no token at all': 'nonsense',
    };
    for (const [what, device_token] of Object.entries(tokens)) {
      const one = DeviceSocket.register(place, { device_id: device, device_token, device_info: INFO, fingerprint: 'f' });
      const [event, payload] = await one.answer();
      assert.deepEqual([event, payload], ['device:auth-error', { error: BAD_TOKEN }], what);
      await one.closed();
    }
    await DeviceSocket.register(place, { device_id: device, device_info: INFO, fingerprint: 'f' }).refused(NO_TOKEN);
    await holder.holds(device);
    const { flips, refusals } = await record(place, device);
    assert.deepEqual([flips, refusals], [0, 0]);
  },

  async 'the token says who it is for, also where the device does not'(replicas) {
    const { device, owner } = await replicas.device();
    const device_token = deviceToken(replicas.first, device, { user: owner });
    const one = DeviceSocket.register(replicas.first, { device_token, device_info: INFO, fingerprint: 'f' });
    assert.equal((await one.registered()).device_id, device);
    await one.holds(device);
  },

  async 'tokens of users are none of devices, and the other way round'(replicas) {
    const [user, device] = [newUser(), newUser('device')];
    const place = replicas.last;
    const words = { device_info: INFO, fingerprint: 'f' };
    const ofUser = hs256(place.secret, { sub: user });
    await DeviceSocket.register(place, { ...words, device_id: device, device_token: ofUser }).refused(BAD_TOKEN);
    // Of a token that does not say that it is a device's, the device must be named.
    await DeviceSocket.register(place, { ...words, device_token: ofUser }).refused(BAD_TOKEN);
    const scoped = deviceToken(place, device, { scope: 'user' });
    await DeviceSocket.register(place, { ...words, device_id: device, device_token: scoped }).refused(BAD_TOKEN);
    const minted = await DeviceSocket.register(place, { pairing_code: newUser('code'), fingerprint: newUser('print') }).registered();
    for (const token of [deviceToken(place, newUser('device'), { user }), minted.device_token]) {
      for (const namespace of ['/', '/dashboard']) {
        assert.equal(await refusal(place, { namespace, auth: { token } }), 'Invalid authentication token', namespace);
      }
    }
    assert.equal(await refusal(place, { namespace: '/dashboard' }), 'Missing authentication token');
    assert.equal(await refusal(place, { namespace: '/dashboard', auth: { token: 'x' } }), 'Invalid authentication token');
  },

  async 'pairing, the whole way'(replicas) {
    const [owner, pairing_code, fingerprint] = [newUser('owner'), newUser('code'), newUser('print')];
    const dashboard = await Dashboard.open(replicas.last, { sub: owner });
    const unpaired = { pairing_code, fingerprint, device_info: INFO };
    const new_ = DeviceSocket.register(replicas.first, unpaired);
    const { device_id: device, device_token: provisional, status } = await new_.registered();
    assert.deepEqual([typeof device, typeof provisional, status], ['string', 'string', 'provisioning']);
    assert.equal((await record(replicas.last, device)).is_paired, false);
    // The same device again: settle holds for those that pair, too.
    assert.equal((await DeviceSocket.register(replicas.last, unpaired).throttled()).reason, 'session_settle');
    await new_.holds(device);

    // It uses its token on its next connection, paired or not yet.
    const withToken = (token) => ({ device_id: device, device_token: token, fingerprint, device_info: INFO });
    new_.close();
    await vacant(replicas.last, device);
    const back = DeviceSocket.register(replicas.last, withToken(provisional));
    const again = await back.registered();
    assert.deepEqual([again.device_id, again.status], [device, 'provisioning']);

    const pair = () => admin(replicas.first, '/v1/devices/pair', { pairing_code, owner: `user:${owner}` });
    const paired = await pair();
    assert.deepEqual([paired.status, paired.body.device_id], [200, device]);
    const told = await until(() => back.all('device:paired')[0], PATIENCE_MS, 'device:paired');
    assert.deepEqual([told.device_id, typeof told.device_token], [device, 'string']);
    await dashboard.sees(device, 'online');
    const after = await record(replicas.last, device);
    assert.deepEqual([after.is_paired, after.owner, after.status, after.flips], [true, `user:${owner}`, 'online', 0]);
    assert.equal((await pair()).status, 404, 'the code is used up');
    await DeviceSocket.register(replicas.first, unpaired).refused(ALREADY_PAIRED);
    await back.holds(device);

    let last = back;
    for (const token of [provisional, told.device_token, paired.body.device_token]) {
      last.close();
      await vacant(replicas.first, device);
      last = DeviceSocket.register(replicas.first, withToken(token));
      assert.equal((await last.registered()).status, 'online');
    }
    assert.deepEqual(new Set(dashboard.statuses(device)), new Set(['online']));
  },

  async 'a token that was given for another code than the one that was paired proves nothing'(replicas) {
    const [first, second] = [newUser('code'), newUser('code')];
    const device_info = INFO;
    const fingerprint = newUser('print');
    const early = DeviceSocket.register(replicas.first, { pairing_code: first, fingerprint, device_info });
    const { device_id, device_token } = await early.registered();
    early.close();
    await vacant(replicas.last, device_id);
    const true_ = DeviceSocket.register(replicas.last, { pairing_code: second, fingerprint, device_info });
    assert.equal((await true_.registered()).device_id, device_id);
    assert.equal((await admin(replicas.first, '/v1/devices/pair', { pairing_code: first })).status, 404);
    assert.equal((await admin(replicas.first, '/v1/devices/pair', { pairing_code: second })).status, 200);
    await DeviceSocket.register(replicas.first, { device_id, device_token, fingerprint, device_info }).refused(BAD_TOKEN);
    await true_.holds(device_id);
  },

  async 'a code that nobody brought pairs nobody'(replicas) {
    const pair = async (body) => (await admin(replicas.last, '/v1/devices/pair', body)).status;
    assert.equal(await pair({ pairing_code: newUser('code') }), 404);
    for (const pairing_code of ['', 'x'.repeat(10_000)]) assert.ok([400, 404].includes(await pair({ pairing_code })));
    for (const body of [{}, [], { pairing_code: 7 }, { pairing_code: 'x', owner: 7 }, { pairing_code: 'x', owner: 'nonsense' }]) {
      assert.ok([400, 422].includes(await pair(body)), JSON.stringify(body));
    }
  },

  async 'an operator disconnects a device, which comes back'(replicas) {
    const { device, dashboard, at } = await replicas.device();
    const one = at(replicas.first);
    await one.registered();
    assert.equal((await operate(replicas.last, device, 'disconnect')).status, 200);
    await one.closed();
    await dashboard.sees(device, 'offline');
    const back = at(replicas.first);
    assert.equal((await back.registered()).status, 'online');
    await back.holds(device);
    await dashboard.sees(device, 'online');
  },

  async 'an operator blocks a device and lets it in again'(replicas) {
    const { device, dashboard, at } = await replicas.device();
    const one = at(replicas.first);
    await one.registered();
    assert.equal((await operate(replicas.last, device, 'block')).status, 200);
    await one.closed();
    await dashboard.sees(device, 'offline');
    for (const place of replicas.places) await at(place).refused(BLOCKED);
    const { is_blocked, holder, status } = await record(replicas.first, device);
    assert.deepEqual([is_blocked, holder, status], [true, null, 'offline']);
    assert.equal((await operate(replicas.first, device, 'unblock')).status, 200);
    const back = at(replicas.last);
    await back.registered();
    await back.holds(device);
    assert.equal((await record(replicas.first, device)).is_blocked, false);
    await dashboard.sees(device, 'online');
  },

  async 'a device that nobody knows'(replicas) {
    const device = newUser('unknown');
    assert.equal((await admin(replicas.last, `/v1/devices/${device}`)).status, 404);
    for (const what of ['disconnect', 'block', 'unblock']) {
      assert.equal((await operate(replicas.last, device, what)).status, 404, what);
    }
  },

  async 'all devices, page by page'(replicas) {
    const devices = Array.from({ length: 5 }, () => newUser('paged'));
    await Promise.all(devices.map((device) =>
      DeviceSocket.register(replicas.first, registration(replicas.first, device)).registered()));
    const found = [];
    let after = '';
    for (let pages = 0; pages < 1_000; pages += 1) {
      const { status, body } = await admin(replicas.last, `/v1/devices?limit=2${after && `&after=${encodeURIComponent(after)}`}`);
      assert.equal(status, 200);
      assert.ok(body.devices.length <= 2);
      found.push(...body.devices.map(({ device_id }) => device_id));
      after = body.next;
      if (after === null || after === undefined) break;
    }
    assert.equal(new Set(found).size, found.length, 'each once');
    assert.deepEqual(found, [...found].sort(), 'in order');
    for (const device of devices) assert.ok(found.includes(device), device);
  },

  async 'dashboards see only their own'(replicas) {
    const [one, other, third, org] = ['one', 'other', 'third', 'org'].map((name) => newUser(name));
    const of = Object.fromEntries(['one', 'other', 'org', 'nobody'].map((name) => [name, newUser(`of-${name}`)]));
    const claims = { [of.one]: { user: one }, [of.other]: { user: other }, [of.org]: { org }, [of.nobody]: {} };
    const dashboards = await Promise.all([{ sub: one }, { sub: other, org }, { sub: third }].map((claims) => Dashboard.open(replicas.last, claims)));
    const sockets = Object.entries(claims).map(([device, claims]) =>
      DeviceSocket.register(replicas.first, registration(replicas.first, device, claims)));
    await Promise.all(sockets.map((socket) => socket.registered()));
    await dashboards[0].sees(of.one, 'online');
    await dashboards[1].sees(of.other, 'online');
    await dashboards[1].sees(of.org, 'online');
    // No user is taken for the organisation of that name.
    const namesake = await Dashboard.open(replicas.last, { sub: org, org: other });
    sockets[2].close();
    await dashboards[1].sees(of.org, 'offline');
    // One that connects now is told of what there is, and of nothing else.
    const late = await Dashboard.open(replicas.first, { sub: other, org });
    await late.sees(of.other, 'online');
    await late.sees(of.org, 'offline');
    // Whoever has none is told of none: this comes last.
    const fence = newUser('fence');
    await DeviceSocket.register(replicas.first, registration(replicas.first, fence, { user: third })).registered();
    await dashboards[2].sees(fence, 'online');
    const seen = [...dashboards, late, namesake].map(({ devices }) => devices);
    const both = [of.other, of.org].sort();
    assert.deepEqual(seen, [[of.one], both, [fence], both, []]);
    for (const { device_id, status, epoch, last_seen_ms, ...more } of late.told) {
      assert.deepEqual([typeof device_id, typeof status, typeof epoch, typeof last_seen_ms], ['string', 'string', 'number', 'number']);
      assert.deepEqual(more, {});
    }
  },

  async 'offline after the debounce, and not within it'(replicas) {
    const { device, dashboard, owner, at } = await replicas.device();
    const one = at(replicas.first);
    await one.registered();
    await dashboard.sees(device, 'online');
    one.close();
    await vacant(replicas.last, device);
    const back = at(replicas.last);
    await back.registered();
    await replicas.debounced({ owner, dashboard });
    assert.deepEqual(new Set(dashboard.statuses(device)), new Set(['online']));
    back.close();
    await dashboard.sees(device, 'offline');
    const { status, holder } = await record(replicas.first, device);
    assert.deepEqual([status, holder], ['offline', null]);
  },

  async 'not offline because a refused or an evicted socket closed'(replicas) {
    const it = await replicas.device();
    const { device, dashboard, at } = it;
    const old = at(replicas.first);
    await old.registered();
    await dashboard.sees(device, 'online');
    const [{ retry_after_ms }] = await Promise.all(replicas.places.map((place) => at(place).throttled()));
    await replicas.debounced(it);
    await delay(retry_after_ms); // as it was told to
    const moved = at(replicas.last);
    await moved.registered();
    await old.closed();
    await replicas.debounced(it);
    assert.deepEqual(new Set(dashboard.statuses(device)), new Set(['online']));
    await moved.holds(device);
  },
};

/** What an operator does with a device. */
const operate = (place, device, what) => admin(place, `/v1/devices/${encodeURIComponent(device)}/${what}`, {});

/** Abuse, and devices that only look like it. */
function describeLimits(number) {
  const COOLDOWN_MS = 400;
  const RATE_MAX = 4;
  const TRIPS = 2;
  const settings = {
    'device.settle_ms': 0,
    'device.connect_rate_max': RATE_MAX,
    'device.cooldown_ms': COOLDOWN_MS,
    'device.quarantine_trips': TRIPS,
    'device.quarantine_ms': NEVER_MS,
    'device.reconnect_base_max': 1_000,
    'device.reconnect_hard_ceiling': 1_000,
  };

  describe(`abuse is still caught, ${number} replica(s)`, () => {
    let replicas;
    before(async () => (replicas = await Replicas.start(number, { settings })));
    after(() => replicas?.stop());
    afterEach(closeSockets);
    const quarantined = () => replicas.counted('pointwork_device_sessions_total', 'reason="quarantined"');

    /** Registers until it is told to wait, waits so long, and so on; gives the spans. */
    async function flap(place, words, times) {
      const waits = [];
      for (let i = 0; waits.length < times && i < times * (RATE_MAX + 1) * 2; i += 1) {
        const one = DeviceSocket.register(place, words);
        const [event, payload] = await one.answer();
        if (event !== 'device:throttled') continue;
        assert.equal(payload.reason, 'connect_rate');
        await one.throttled();
        waits.push(payload.retry_after_ms);
        if (payload.retry_after_ms <= COOLDOWN_MS) await delay(payload.retry_after_ms);
      }
      assert.equal(waits.length, times, 'it was told to wait each time');
      return waits;
    }

    test('who proves a token is cooled down and never quarantined', async () => {
      const device = newUser('flapping');
      const before = await quarantined();
      const waits = await flap(replicas.first, registration(replicas.first, device), TRIPS * 3);
      assert.ok(waits.every((ms) => ms <= COOLDOWN_MS), JSON.stringify(waits));
      assert.equal(await quarantined(), before);
      const one = DeviceSocket.register(replicas.first, registration(replicas.first, device));
      await one.registered();
      await one.holds(device);
    });

    test('unpaired flapping is limited, and quarantined at last', async () => {
      const before = await quarantined();
      const words = { pairing_code: newUser('code'), fingerprint: newUser('print'), device_info: INFO };
      const waits = await flap(replicas.last, words, TRIPS);
      assert.ok(waits.slice(0, -1).every((ms) => ms <= COOLDOWN_MS) && waits.at(-1) > COOLDOWN_MS, JSON.stringify(waits));
      assert.equal(await quarantined(), before + 1);
      // Others are not bothered by it.
      const device = newUser('other');
      await DeviceSocket.register(replicas.last, registration(replicas.last, device)).registered();
    });

    test('nobody can lock a device out by its name, and a proof lifts the quarantine', async () => {
      const device = newUser('named');
      const forged = { device_id: device, device_token: 'nonsense', fingerprint: 'f', device_info: INFO };
      const waits = await flap(replicas.first, forged, TRIPS);
      assert.ok(waits.at(-1) > COOLDOWN_MS, JSON.stringify(waits));
      const one = DeviceSocket.register(replicas.first, registration(replicas.first, device));
      await one.registered();
      await DeviceSocket.register(replicas.first, forged).refused(BAD_TOKEN);
      await one.holds(device);
    });

    test('those that say nothing of themselves share one count', async () => {
      const open = () => DeviceSocket.register(replicas.first, {}).answer();
      const answers = await Promise.all(Array.from({ length: 61 }, open));
      const throttled = answers.filter(([event]) => event === 'device:throttled');
      assert.deepEqual(throttled.map(([, { reason }]) => reason), ['connect_rate']);
      await DeviceSocket.register(replicas.first, registration(replicas.first, newUser('device'))).registered();
    });
  });
}

/** What registers and heartbeats can be that they should not. */
const NONSENSE = [null, 7, -1, 1e300, true, '', 'text', 'x'.repeat(50_000), [], [[]], [{ device_id: 'x' }], {}, Buffer.from('binary')];

/** Sockets that say nothing in time, or nonsense. */
function describeSilence(number) {
  const settings = {
    'device.register_timeout_ms': 1_500,
    'device.heartbeat_timeout_ms': 1_500,
    'device.offline_debounce_ms': 300,
    'device.anonymous_rate_max': 10_000,
    'device.connect_rate_max': 10_000,
  };

  describe(`silence and nonsense, ${number} replica(s)`, () => {
    let replicas;
    before(async () => (replicas = await Replicas.start(number, { settings })));
    after(() => replicas?.stop());
    afterEach(closeSockets);

    for (const transport of TRANSPORTS) {
      test(`who does not register in time is closed, ${transport}`, async () => {
        const device = newUser('in-time');
        const one = DeviceSocket.register(replicas.last, registration(replicas.last, device), { transport });
        await one.registered();
        const silent = replicas.places.map((place) => DeviceSocket.open(place, { transport }));
        for (const socket of silent) {
          await socket.closed();
          assert.deepEqual(socket.all('device:registered'), []);
        }
        await one.holds(device);
      });
    }

    test('a holder without heartbeats is offline, whoever else sends some', async () => {
      const { device, dashboard, at } = await replicas.device('silent');
      const holder = at(replicas.first);
      await holder.registered();
      const other = newUser('other');
      const stranger = DeviceSocket.register(replicas.last, registration(replicas.last, other));
      await stranger.registered();
      const beats = setInterval(() => [device, other].forEach((one) => stranger.heartbeat(one)), 100);
      try {
        await dashboard.sees(device, 'offline');
      } finally {
        clearInterval(beats);
      }
      assert.ok((await record(replicas.last, device)).holder, 'it has the session all the same');
      holder.heartbeat(device);
      await dashboard.sees(device, 'online');
      await holder.holds(device);
    });

    test('nonsense registers nobody', async () => {
      const device = newUser('sound');
      const place = replicas.last;
      const sound = DeviceSocket.register(place, registration(place, device));
      await sound.registered();
      const words = [[], [undefined, registration(place, device)], ...NONSENSE.map((value) => [value])];
      const isText = (value) => typeof value === 'string' && value !== '';
      for (const value of NONSENSE) {
        words.push(...['device_id', 'device_token'].map((field) => [{ fingerprint: 'f', device_info: INFO, [field]: value }]));
        words.push([{ device_id: device, device_token: value, fingerprint: value, device_info: value }]);
        // Any text may be a pairing code.
        if (!isText(value)) words.push([{ pairing_code: value, fingerprint: 'f', device_info: INFO }]);
      }
      await Promise.all(words.map(async (args) => {
        const one = DeviceSocket.open(place);
        one.socket.on('connect', () => one.socket.emit('device:register', ...args));
        // Refused, or not taken for a register at all and closed in time.
        await one.closed();
        assert.ok(!one.isRegistered, JSON.stringify([args, one.told]).slice(0, 300));
      }));
      await sound.holds(device);
      assert.equal((await record(place, device)).flips, 0);
    });

    test('nonsense beside what proves a device does no harm', async () => {
      const place = replicas.first;
      for (const value of NONSENSE) {
        const device = newUser('odd');
        const words = { ...registration(place, device), device_info: value };
        const one = DeviceSocket.register(place, words);
        const [event] = await one.answer();
        if (event === 'device:registered') await one.holds(device);
        else await one.closed();
      }
    });

    test('a heartbeat of nonsense does no harm', async () => {
      const device = newUser('sound');
      const one = DeviceSocket.register(replicas.first, registration(replicas.first, device));
      await one.registered();
      for (const value of NONSENSE) {
        one.socket.emit('device:heartbeat', value);
        one.socket.emit('device:heartbeat', { device_id: value });
        one.socket.emit('device:heartbeat', { device_id: device, telemetry: value });
        one.socket.emit('device:no-such-event', value);
      }
      one.socket.emit('device:heartbeat');
      await one.holds(device);
    });
  });
}

/** Everything, on so many replicas. */
export function describeDevices(number) {
  describeSessions(number);
  describeLimits(number);
  describeSilence(number);
  describeStorms(number);
}

if (process.argv[1] === import.meta.filename) describeDevices(1);
