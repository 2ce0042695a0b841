// Devices, the dashboards that see them, the replicas that they are tested on, and their storms.
import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { Proxy } from '../fleet/proxy.mjs';
import { counted, startCluster, stopCluster } from '../fleet/cluster.mjs';
import { DEFAULT_POLICIES, policyFile, startHost } from '../support/host.mjs';
import { closeSockets, connected, newUser, open } from '../support/sockets.mjs';
import { hs256 } from '../support/tokens.mjs';
import { PATIENCE_MS, until, within } from '../support/waiting.mjs';

/** How a register can be answered. */
const ANSWERS = ['device:registered', 'device:throttled', 'device:auth-error'];
const REASONS = ['connect_rate', 'reconnect_rate', 'session_settle'];
const BY_SERVER = 'io server disconnect';
/** What a device says of itself. */
export const INFO = { model: 'test', version: '1' };

/** The seed's. */
export const SETTLE_MS = 2_500;

/** Longer than what a test may wait for on one replica: from there on a window is never over. */
export const NEVER_MS = 600_000;

/** A device's token; `claims`: its owner as `org` or `user`, and what else it is to say. */
export const deviceToken = (place, device, claims = {}) => hs256(place.secret, { sub: device, scope: 'device', ...claims });

/** What a device that has a token registers with. */
export const registration = (place, device, claims) => ({
  device_id: device,
  device_token: deviceToken(place, device, claims),
  device_info: INFO,
  fingerprint: `print-of-${device}`,
});

/** GET or POST of a replica's admin API: `{status, body}`. */
export async function admin(place, path, body) {
  const headers = { 'content-type': 'application/json' };
  const options = body && { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(place.admin + path, { ...options, signal: AbortSignal.timeout(PATIENCE_MS) });
  const text = await response.text();
  return { status: response.status, body: text === '' ? null : JSON.parse(text) };
}

/** What a replica says of a device. */
export async function record(place, device) {
  const { status, body } = await admin(place, `/v1/devices/${encodeURIComponent(device)}`);
  assert.equal(status, 200, `${device}: ${JSON.stringify(body)}`);
  return body;
}

/** Waits until the cluster knows that no socket holds the device's session. */
export const vacant = (place, device) =>
  until(async () => (await record(place, device)).holder === null, PATIENCE_MS, `nobody to hold ${device}`);

/** A socket of a device. */
export class DeviceSocket {
  /** `[event, payload]` of all that it was told, in order. */
  told = [];
  /** Why its connection ended last. */
  ended;
  socket;
  #watchers = new Set();

  /** Begins to connect, as devices do without a word in the handshake. `options` as of `open`. */
  static open(place, options) {
    const one = new DeviceSocket();
    one.socket = open(place, { namespace: '/device', ...options });
    one.socket.auth = undefined;
    one.socket.onAny((event, payload) => one.#note(() => one.told.push([event, payload])));
    one.socket.on('connect', () => (one.ended = undefined));
    one.socket.on('disconnect', (reason) => one.#note(() => (one.ended = reason)));
    one.socket.on('connect_error', ({ message }) => one.#note(() => (one.ended = message)));
    return one;
  }

  /** As `open`, and registers whenever it is connected. */
  static register(place, words, options) {
    const one = DeviceSocket.open(place, options);
    one.socket.on('connect', () => one.register(words));
    return one;
  }

  register(words) {
    this.socket.emit('device:register', words);
  }

  heartbeat(device) {
    this.socket.emit('device:heartbeat', { device_id: device, telemetry: { battery: 50 } });
  }

  get isOpen() {
    return this.socket.connected;
  }

  /** The payloads of an event. */
  all(event) {
    return this.told.filter(([name]) => name === event).map(([, payload]) => payload);
  }

  get isRegistered() {
    return this.all('device:registered').length > 0;
  }

  /** How its register was answered, the first or a later one: `[event, payload]`, or `['closed', why]`. */
  async answer(index = 0) {
    const answers = () => this.told.filter(([event]) => ANSWERS.includes(event));
    const settled = () => answers()[index] ?? (this.ended && ['closed', this.ended]);
    return this.#when(settled, () => `answer ${index} to a register; told ${JSON.stringify(this.told).slice(-500)}`);
  }

  /** Waits until it has the session; gives what it was told. */
  async registered(index = 0) {
    const [event, payload] = await this.answer(index);
    assert.equal(event, 'device:registered', JSON.stringify(payload));
    return payload;
  }

  /** Waits until it was told to come back later and was disconnected; gives what it was told. */
  async throttled() {
    const [event, payload] = await this.answer();
    assert.equal(event, 'device:throttled', JSON.stringify(payload));
    await this.closed();
    this.assertTold([['device:throttled', payload]]);
    assert.ok(REASONS.includes(payload.reason), payload.reason);
    assert.ok(Number.isInteger(payload.retry_after_ms) && payload.retry_after_ms > 0, JSON.stringify(payload));
    return payload;
  }

  /** Waits until it was told that it is not let in, and why, and was disconnected. */
  async refused(error) {
    assert.deepEqual(await this.answer(), ['device:auth-error', { error }]);
    await this.closed();
    this.assertTold([['device:auth-error', { error }]]);
  }

  /** Waits until the server has disconnected it. */
  async closed() {
    await this.#when(() => this.ended, 'the end of a socket');
    assert.equal(this.ended, BY_SERVER);
  }

  /** Waits until the server has handled what this socket said before. */
  async heard() {
    const device = newUser('nobody');
    this.heartbeat(device);
    const isRefused = () => this.all('device:heartbeat-refused').find(({ device_id }) => device_id === device);
    return this.#when(isRefused, () => `a heartbeat of a stranger to be refused; ended: ${this.ended}`);
  }

  /** That it has the session: its heartbeats count. */
  async holds(device) {
    this.heartbeat(device);
    await this.heard();
    const refused = this.all('device:heartbeat-refused').filter(({ device_id }) => device_id === device);
    assert.deepEqual(refused, [], 'its heartbeats count');
    assert.ok(this.isOpen);
  }

  /** That it was told this and nothing else. */
  assertTold(words) {
    assert.deepEqual(this.told, words);
  }

  close() {
    this.socket.disconnect();
  }

  #note(what) {
    what();
    for (const look of this.#watchers) look();
  }

  /** Waits until there is something to see; looks whenever the server said something, for a storm has thousands that wait. */
  #when(see, what) {
    const seen = new Promise((resolve) => {
      const look = () => {
        const found = see();
        if (!found) return;
        this.#watchers.delete(look);
        resolve(found);
      };
      this.#watchers.add(look);
      look();
    });
    return within(seen, PATIENCE_MS, what);
  }
}

/** What somebody sees of the devices. */
export class Dashboard {
  /** All that it was told, in order. */
  told = [];
  socket;

  /** Connected; `claims`: of its user's token. */
  static async open(place, claims, options) {
    const one = new Dashboard();
    one.socket = open(place, { namespace: '/dashboard', auth: { token: hs256(place.secret, claims) }, ...options });
    one.socket.on('dashboard:device-status', (status) => one.told.push(status));
    await connected(one.socket);
    return one;
  }

  /** The statuses of a device one after the other. */
  statuses(device) {
    return this.changes(device).map(({ status }) => status);
  }

  /** The same with their epochs, `{status, epoch}`: what comes too late is dropped, as its epoch tells. */
  changes(device) {
    const shown = [];
    for (const { device_id, status, epoch } of this.told) {
      if (device_id === device && epoch >= (shown.at(-1)?.epoch ?? 0)) shown.push({ status, epoch });
    }
    return shown;
  }

  /** Waits until it shows this status of a device. */
  sees(device, status) {
    const shown = () => this.statuses(device).at(-1);
    return until(() => shown() === status, PATIENCE_MS, () => `${device} to be seen as ${status}; it is seen as ${shown()}`);
  }

  /** The devices that it was told of. */
  get devices() {
    return [...new Set(this.told.map(({ device_id }) => device_id))].sort();
  }
}

/** One replica alone, or several behind one Redis. */
export class Replicas {
  places;
  fleet;
  #stop;

  /** `settings`; `settle`: the policy that serves its slot. */
  static async start(number, { settings = {}, settle = 'settle-hold', mayLogErrors = false } = {}) {
    const one = new Replicas();
    if (number === 1) {
      const host = await startHost({ settings, policies: { ...DEFAULT_POLICIES, settle } });
      one.places = [host];
      one.#stop = () => host.stop();
      return one;
    }
    const folder = await mkdtemp(join(tmpdir(), 'pointwork-devices-'));
    await copyFile(policyFile(settle), join(folder, 'settle.wasm'));
    one.fleet = await startCluster(number, { settings: { 'policy.dir': folder, ...settings } });
    one.places = one.fleet.replicas;
    one.#stop = () => stopCluster(one.fleet, { mayLogErrors }).finally(() => rm(folder, { recursive: true }));
    return one;
  }

  /** Ends them and fails the test for errors in a log. */
  async stop() {
    closeSockets();
    await this.#stop();
  }

  get first() {
    return this.places[0];
  }

  /** Another one than the first, where there is one. */
  get last() {
    return this.places.at(-1);
  }

  /** A way to the first replica that can be cut and become a black hole; gone after the test. */
  async door(t) {
    const { url, path, secret } = this.first;
    const proxy = await Proxy.start(() => [Number(new URL(url).port)]);
    t.after(() => proxy.close());
    return Object.assign(proxy, { url: `http://127.0.0.1:${proxy.port}`, path, secret });
  }

  /** A device of a new owner, whom a dashboard on the last replica belongs to; `at(place, options)` gives a socket that registers it. */
  async device(name = 'device') {
    const [device, owner] = [newUser(name), newUser('owner')];
    const dashboard = await Dashboard.open(this.last, { sub: owner });
    const at = (place, options) => DeviceSocket.register(place, registration(place, device, { user: owner }), options);
    return { device, owner, dashboard, at };
  }

  /**
   * Waits until everything has happened that the end of a socket up to now could lead to after the debounce: on each replica a device
   * goes after them, and is seen to be offline.
   */
  async debounced({ owner, dashboard }) {
    await Promise.all(this.places.map(async (place) => {
      const device = newUser('fence');
      const one = DeviceSocket.register(place, registration(place, device, { user: owner }));
      await one.registered();
      one.close();
      await dashboard.sees(device, 'offline');
    }));
  }

  /** Over all replicas. */
  async counted(name, labels) {
    const counts = await Promise.all(this.places.map((place) => counted(asReplica(place), name, labels)));
    return counts.reduce((sum, count) => sum + count, 0);
  }
}

/** Metrics are no JSON, which is what a lone host's `request` reads. */
const asReplica = ({ admin }) => ({
  request: async (path) => ({ text: await (await fetch(admin + path)).text() }),
});

/** The seed's storms: so many sockets of one device, evenly over a span. */
export const STORMS = [
  { name: '8 opens in 9 s', opens: 8, ms: 9_000 },
  { name: '6 at once', opens: 6, ms: 0 },
  { name: '6 at once by polling', opens: 6, ms: 0, transport: 'polling' },
  { name: '50 opens in 10 s', opens: 50, ms: 10_000 },
];

/** Opens sockets by `register(place)`, on all places in turn, and waits until each is answered and all but one are closed. */
export async function storm(places, register, { opens, ms }) {
  const startedAt = performance.now();
  const sockets = [];
  for (let i = 0; i < opens; i += 1) {
    // The storm is one of so many opens in so much time: its pace is what is tested.
    if (i > 0) await delay(Math.max(0, startedAt + (ms * i) / (opens - 1) - performance.now()));
    sockets.push(register(places[i % places.length]));
  }
  await Promise.all(sockets.map((socket) => socket.answer()));
  const spanMs = performance.now() - startedAt;
  const open = () => sockets.filter(({ isOpen }) => isOpen);
  await until(() => open().length === 1, PATIENCE_MS, () => `one open socket; there are ${open().length}`);
  return { sockets, spanMs, holder: open()[0] };
}

/** Reads a device's record again and again, on all places in turn, until `stop()`, which gives what was read once somebody had the session. */
export function sample(places, device) {
  let isOn = true;
  const read = (async () => {
    const samples = [];
    for (let i = 0; isOn; i += 1) {
      const { body } = await admin(places[i % places.length], `/v1/devices/${device}`);
      if (samples.length > 0 || body?.holder) samples.push(body);
      await delay(20);
    }
    return samples;
  })();
  read.catch(() => {}); // told by `stop`
  return {
    stop() {
      isOn = false;
      return read;
    },
  };
}

/** The storms of a device with a token, for one policy, in or out of the warm-up. */
async function assertConverges(replicas, shape, { flipsMax, isWarm }) {
  const { places } = replicas;
  const it = await replicas.device('thrashing');
  const samples = sample(places, it.device);
  const { sockets, spanMs, holder } = await storm(places, (place) => it.at(place, { transport: shape.transport }), shape);
  await holder.holds(it.device);
  await replicas.debounced(it);
  const read = await samples.stop();

  const told = await Promise.all(sockets.filter(({ isRegistered }) => !isRegistered).map((socket) => socket.throttled()));
  for (const socket of sockets.filter((socket) => socket.isRegistered && socket !== holder)) await socket.closed();
  assert.ok(holder.isRegistered);
  assert.equal((await record(places[0], it.device)).holder.socket, holder.socket.id);
  assert.deepEqual(new Set(it.dashboard.statuses(it.device)), new Set(['online']), 'never seen as anything but online');
  assert.ok(read.length > 0 && read.every(({ holder, status }) => holder && status === 'online'), 'held at all times');
  const after = await record(replicas.last, it.device);
  assert.ok(after.flips <= flipsMax(spanMs), `${after.flips} flips in ${spanMs.toFixed()} ms`);
  const registered = sockets.length - told.length;
  const settled = told.filter(({ reason }) => reason === 'session_settle').length;
  assert.ok(registered <= after.flips + 1 && after.refusals <= settled, JSON.stringify({ registered, settled, after }));
  if (places.length === 1) assert.deepEqual([after.flips, after.refusals], [registered - 1, settled]);
  assertReasons(told, shape, places.length, isWarm);
}

/** Which gates a storm meets: the flap limiter by its number, the throttle by its pace and only after the warm-up. */
function assertReasons(told, { opens, name }, replicas, isWarm) {
  const times = (reason) => told.filter((one) => one.reason === reason).length;
  const ofOne = Math.ceil(opens / replicas);
  if (isWarm) assert.equal(times('reconnect_rate'), 0, `${name}: only the ceiling counts in the warm-up`);
  else if (ofOne > 5) assert.ok(times('reconnect_rate') > 0, `${name}: throttled after the warm-up`);
  if (ofOne > 20) assert.equal(times('connect_rate'), opens - 20 * replicas, `${name}: beyond 20 of each replica`);
  if (ofOne <= 20) assert.equal(times('connect_rate'), 0, `${name}: the flap limiter looks at a long window`);
  // A quarantine would be longer than any cooldown.
  assert.ok(told.every(({ retry_after_ms }) => retry_after_ms <= 60_000), `${name}: never quarantined`);
}

const POLICIES = [
  // A flip ends a holding that was as old as the window: so many fit into the storm.
  { settle: 'settle-hold', flipsMax: (spanMs) => Math.floor(spanMs / SETTLE_MS) },
  { settle: 'settle-adaptive', flipsMax: () => 1 },
];

/** Storms converge: each policy, in and out of the warm-up. */
export function describeStorms(number) {
  for (const isWarm of [true, false]) {
    for (const { settle, flipsMax } of POLICIES) {
      const title = `storm converges, ${settle}, ${isWarm ? 'in' : 'out of'} the warm-up, ${number} replica(s)`;
      describe(title, { concurrency: true }, () => {
        let replicas;
        const settings = { 'device.reconnect_warmup_ms': isWarm ? NEVER_MS : 0, 'device.offline_debounce_ms': 300 };
        before(async () => (replicas = await Replicas.start(number, { settings, settle })));
        after(() => replicas?.stop());
        for (const shape of STORMS) {
          test(shape.name, () => assertConverges(replicas, shape, { flipsMax, isWarm }));
        }
      });
    }
  }
}
