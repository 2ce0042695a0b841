// Broadcasts carry their offset, and a client that was away gets what it missed: on another replica, in order, once, or is told of a gap.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { offsets } from '../../../clients/js/index.mjs';
import { counted, startCluster, stopCluster } from '../fleet/cluster.mjs';
import { startHost } from '../support/host.mjs';
import { call, closeSockets, collect, connect, connected, newUser, next, open, register, succeeded } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const OFFSET = /^\d+-\d+$/;

afterEach(closeSockets);

/** A client with the capability, and all that it is told, as `[event, ...args]`. */
class Follower {
  told = [];
  socket;

  /** Connected, and told where it is, or what it missed. */
  static async start(place, user, lastOffset, options = {}) {
    const follower = new Follower();
    const auth = { capabilities: ['offsets'], ...(lastOffset !== undefined && { lastOffset }), ...options.auth };
    follower.socket = open(place, { ...options, user, auth });
    follower.socket.onAny((...event) => follower.told.push(event));
    await connected(follower.socket);
    await until(() => follower.word, undefined, () => `its place; it was told ${JSON.stringify(follower.told)}`);
    return follower;
  }

  /** The first `offset`, `recovered` or `gap`. */
  get word() {
    return this.told.find(([event]) => ['offset', 'recovered', 'gap'].includes(event));
  }

  /** All broadcasts of this name: `[...args, offset]`. */
  all(event = 'update') {
    return this.told.filter(([name]) => name === event).map(([, ...args]) => args);
  }

  /** The first arguments of all updates. */
  get updates() {
    return this.all().map(([first]) => first);
  }

  has(times, event) {
    const what = () => `${times} of ${event ?? 'update'}; told ${JSON.stringify(this.told.slice(-5))}`;
    return until(() => this.all(event).length >= times, undefined, what);
  }

  /** Where it is. */
  get last() {
    return this.told.flatMap(placesOf).at(-1);
  }

  leave() {
    this.socket.disconnect();
  }
}

/** The offsets that an event says that the client has reached. */
function placesOf([event, ...args]) {
  if (event === 'offset') return [args[0].at];
  if (event === 'recovered' || event === 'gap') return args[0].to === null ? [] : [args[0].to];
  return OFFSET.test(args.at(-1)) ? [args.at(-1)] : [];
}

/** Whether each offset is after the one before. */
function assertOrdered(list) {
  const places = list.map((offset) => (assert.match(offset, OFFSET), offset.split('-').map(BigInt)));
  places.forEach(([ms, seq], i) => {
    if (i === 0) return;
    const [beforeMs, beforeSeq] = places[i - 1];
    assert.ok(ms > beforeMs || (ms === beforeMs && seq > beforeSeq), `${list[i]} comes after ${list[i - 1]}`);
  });
}

const emit = (replica, user, ...args) => replica.emit({ rooms: [`user:${user}`], event: 'update', args });

/** Numbers from `from` up to `to`, from each of the places by turns, each once the one before was taken. */
async function count(places, user, from, to) {
  for (let n = from; n <= to; n += 1) await emit(places[n % places.length], user, n);
}

const numbers = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** Broadcasts straight onto the stream, as the emitter of the field's backend; a script, for there may be thousands. */
function add(redis, user, from, to) {
  const data = JSON.stringify({ packet: { type: 2, data: ['update', 0] }, opts: { rooms: [`user:${user}`], except: [], flags: {} } });
  const script = `for n = ${from}, ${to} do
    redis.call('XADD', 'socket.io', '*', 'uid', 'emitter', 'nsp', '/', 'type', '3', 'data', (ARGV[1]:gsub('"update",0', '"update",' .. n)))
  end`;
  return redis.command('EVAL', script, '0', data);
}

describe('on three replicas', () => {
  let fleet;
  let replicas;
  before(async () => {
    fleet = await startCluster(3);
    ({ replicas } = fleet);
  });
  after(() => stopCluster(fleet));

  test('a client that begins is told from where on it misses nothing', async () => {
    const follower = await Follower.start(replicas[0], newUser());
    const [event, ...args] = follower.word;
    assert.equal(event, 'offset');
    assert.deepEqual(Object.keys(args[0]), ['at']);
    assert.match(args[0].at, OFFSET);
    assert.equal(args.length, 1);
  });

  test('each broadcast carries its offset as an additional argument, the same on every replica', async () => {
    const user = newUser();
    const followers = await Promise.all(replicas.map((replica) => Follower.start(replica, user)));
    for (const [i, replica] of replicas.entries()) await emit(replica, user, { n: i }, 'second', null);
    await replicas[1].emit({ rooms: [`user:${user}`], event: 'update' });
    for (const follower of followers) {
      await follower.has(4);
      const all = follower.all();
      assert.deepEqual(all.map((args) => args.slice(0, -1)).toSorted(byLength), [[], ...numbers(0, 2).map((n) => [{ n }, 'second', null])]);
      assertOrdered([follower.word[1].at, ...all.map((args) => args.at(-1))]);
      assert.deepEqual(all, followers[0].all());
    }
  });
  const byLength = (one, other) => one.length - other.length || one[0]?.n - other[0]?.n;

  test('who does not say the capability sees what it always saw', async () => {
    const user = newUser();
    const auths = [{}, { capabilities: ['rpc-waiting', 'rpc-resume'] }, { capabilities: 'offsets' }, { lastOffset: '0-0' }];
    const told = await Promise.all(auths.map(async (auth) => {
      const socket = open(replicas[0], { user, auth });
      const events = [];
      socket.onAny((...event) => events.push(event));
      await connected(socket);
      return events;
    }));
    await Follower.start(replicas[0], user);
    for (const replica of replicas) await emit(replica, user, 'x', 'y');
    await until(() => told.every((events) => events.length >= 3));
    assert.deepEqual(told, auths.map(() => replicas.map(() => ['update', 'x', 'y'])));
  });

  test('what is meant for one socket carries none', async () => {
    const user = newUser();
    const follower = await Follower.start(replicas[0], user, undefined, { auth: { clientType: 'machine-scoped', machineId: 'm' } });
    const requests = [];
    follower.socket.on('rpc-request', (...args) => (requests.push(args.slice(0, -1)), args.at(-1)('done')));
    await register(follower.socket, 'm');
    const error = next(follower.socket, 'rpc-error');
    follower.socket.emit('rpc-register', {});
    await error;
    assert.deepEqual(await call(await connect(replicas[1], { user }), 'm', 1), succeeded('done'));
    assert.deepEqual(requests, [[{ method: 'm', params: 1 }]]);
    assert.deepEqual(follower.all('rpc-registered'), [[{ method: 'm' }]]);
    assert.equal(follower.all('rpc-error')[0].length, 1);
  });

  test('signs of life carry theirs, too', async () => {
    const user = newUser();
    const followers = await Promise.all(replicas.map((replica) => Follower.start(replica, user)));
    const session = await connect(replicas[0], { user, auth: { clientType: 'session-scoped', sessionId: 's' } });
    session.emit('session-alive', { sid: 's', time: Date.now(), mode: 'local' });
    for (const follower of followers) {
      await follower.has(1, 'ephemeral');
      const [args] = follower.all('ephemeral');
      assert.equal(args.length, 2);
      assert.equal(args[0].id, 's');
      assert.match(args[1], OFFSET);
    }
  });

  for (const at of [0, 1]) {
    test(`a client that was away gets what it missed on replica ${at}, and then what is new`, async () => {
      const user = newUser();
      const first = await Follower.start(replicas[0], user);
      await count(replicas, user, 1, 5);
      await first.has(5);
      first.leave();
      const from = first.last;
      await count(replicas, user, 6, 20);
      // Others' are none of its business.
      await count(replicas, newUser(), 1, 3);
      const missed = count(replicas, user, 21, 40);
      const second = await Follower.start(replicas[at], user, from);
      await missed;
      await count(replicas, user, 41, 45);
      await second.has(40);
      assert.deepEqual([...first.updates, ...second.updates].toSorted((a, b) => a - b), numbers(1, 45));
      const [event, word] = second.word;
      assert.equal(event, 'recovered');
      assert.deepEqual(Object.keys(word).toSorted(), ['from', 'to']);
      assert.equal(word.from, from);
      // In the stream's order: what it missed before the word, what is new after it.
      const where = second.told.findIndex(([name]) => name === 'recovered');
      const before = second.told.slice(0, where).flatMap(placesOf);
      const afterwards = second.told.slice(where + 1).flatMap(placesOf);
      assertOrdered([from, ...before]);
      assertOrdered([word.to, ...afterwards]);
      if (before.length > 0) assert.ok(before.at(-1) === word.to || (assertOrdered([before.at(-1), word.to]), true));
      assert.ok(before.length >= 15, 'what was there when it came is there before the word');
    });
  }

  test('a client that missed nothing is told so', async () => {
    const user = newUser();
    const first = await Follower.start(replicas[0], user);
    await emit(replicas[1], user, 1);
    await first.has(1);
    first.leave();
    for (const replica of replicas) {
      const again = await Follower.start(replica, user, first.last);
      assert.equal(again.word[0], 'recovered');
      assert.deepEqual(again.updates, []);
      assertOrdered([first.last, again.word[1].to].filter((offset, i, [from]) => i === 0 || offset !== from));
    }
  });

  test('only what its own rooms got is replayed, and nobody’s exception', async () => {
    const user = newUser();
    const machine = { auth: { clientType: 'machine-scoped', machineId: 'm' } };
    const first = await Follower.start(replicas[0], user, undefined, machine);
    first.leave();
    const rooms = [`user:${user}`];
    await replicas[0].emit({ rooms: [`user:${user}:user-scoped`], event: 'update', args: ['the apps'] });
    await replicas[0].emit({ rooms: [`user:${user}:machine:m`], event: 'update', args: ['the machine'] });
    await replicas[0].emit({ rooms, except: [`user:${user}:machine:m`], event: 'update', args: ['all but the machine'] });
    await replicas[0].emit({ rooms: [...rooms, `user:${user}:machine:m`], event: 'update', args: ['once'] });
    await replicas[0].emit({ rooms: [`user:${user}:m`, `user:${newUser()}`], event: 'update', args: ['others'] });
    const again = await Follower.start(replicas[1], user, first.last, machine);
    await again.has(2);
    assert.deepEqual(again.updates, ['the machine', 'once']);
  });

  test('requests are never replayed', async () => {
    const user = newUser();
    const auth = { clientType: 'machine-scoped', machineId: 'm', capabilities: ['offsets', 'rpc-resume'] };
    const first = await Follower.start(replicas[1], user, undefined, { auth });
    await register(first.socket, 'm');
    const caller = await connect(replicas[0], { user });
    caller.emit('rpc-call', { method: 'm' }, () => {});
    await first.has(1, 'rpc-request');
    first.leave();
    await emit(replicas[0], user, 'update');
    // One that a backend broadcast.
    await replicas[0].emit({ rooms: [`user:${user}`], event: 'rpc-request', args: [{ method: 'm' }] });
    await emit(replicas[0], user, 'after');
    const again = await Follower.start(replicas[2], user, first.last, { auth });
    await again.has(2);
    assert.deepEqual(again.updates, ['update', 'after']);
    assert.deepEqual(again.all('rpc-request'), []);
  });

  test('an offset that never was is a gap, and the client goes on', async () => {
    const user = newUser();
    await emit(replicas[0], user, 'before');
    for (const lastOffset of ['99999999999999-0', 'nonsense', '', '-', '1-2-3', '18446744073709551616-0', 7, {}, ['1-0'], '9'.repeat(300)]) {
      const follower = await Follower.start(replicas[0], user, lastOffset);
      const [event, { reason, to, ...rest }] = follower.word;
      const said = JSON.stringify(lastOffset);
      // Nothing at all is what a client says that begins.
      if (lastOffset === '' && event === 'offset') continue;
      assert.deepEqual({ event, reason, rest }, { event: 'gap', reason: 'unknown', rest: {} }, said);
      assert.match(to, OFFSET, said);
      await emit(replicas[1], user, 'new');
      await follower.has(1);
      assertOrdered([to, follower.all()[0][1]]);
      assert.deepEqual(follower.updates, ['new'], said);
      follower.leave();
    }
  });

  test('a storm of clients that were away is read for a few times, not once for each', async () => {
    const user = newUser();
    const first = await Follower.start(replicas[0], user);
    await count(replicas, user, 1, 30);
    await first.has(30);
    const places = first.all().map(([, offset]) => offset);
    // It comes up without knowing anything of the stream so far.
    await replicas[2].kill();
    await replicas[2].start();
    const back = await Promise.all(Array.from({ length: 60 }, (_, i) => Follower.start(replicas[2], user, places[i % 30])));
    for (const [i, follower] of back.entries()) {
      await follower.has(29 - (i % 30));
      assert.equal(follower.word[0], 'recovered');
      assert.deepEqual(follower.updates, first.updates.slice((i % 30) + 1));
    }
    const reads = await counted(replicas[2], 'adapter_recovery_reads_total');
    assert.ok(reads >= 1 && reads <= 10, `${reads} reads for 60 clients`);
  });

  test('more than a client is sent at once is a gap', async () => {
    const user = newUser();
    const follower = await Follower.start(replicas[0], user);
    follower.leave();
    const witness = await Follower.start(replicas[0], user);
    await add(fleet.redis, user, 1, 4_500);
    await witness.has(4_500);
    const again = await Follower.start(replicas[0], user, follower.last);
    const [event, { reason, to }] = again.word;
    assert.deepEqual({ event, reason }, { event: 'gap', reason: 'too-many' });
    await emit(replicas[0], user, 'new');
    await again.has(1);
    assert.deepEqual(again.updates, ['new']);
    assertOrdered([to, again.all()[0][1]]);
  });

  test('clients/js: cut and back on another replica, everything once and in order', async () => {
    const user = newUser();
    const door = await fleet.door(0);
    const socket = open(door, { user, reconnection: true, reconnectionDelay: 10, reconnectionDelayMax: 50 });
    const gaps = [];
    const place = offsets(socket, { onGap: (reason) => gaps.push(reason) });
    const updates = collect(socket, 'update');
    const begins = next(socket, 'offset');
    await connected(socket);
    await begins;
    let n = 0;
    for (const at of [1, 2, 0]) {
      await count(replicas, user, n + 1, (n += 10));
      const back = next(socket, 'recovered');
      door.leadTo(at);
      door.cut();
      await count(replicas, user, n + 1, (n += 10));
      await back;
    }
    await count(replicas, user, n + 1, (n += 10));
    await until(() => updates.length === n, undefined, () => `${n} updates; there are ${updates.length}`);
    assert.deepEqual(updates.map(([first]) => first).toSorted((a, b) => a - b), numbers(1, n));
    assertOrdered(updates.map(([, offset]) => offset));
    assert.deepEqual(gaps, []);
    assert.equal(place.last, updates.at(-1)[1]);
  });

  // The last: the first replica is another process afterwards.
  test('it holds over the death of the replica where the client was', async () => {
    const user = newUser();
    const first = await Follower.start(replicas[0], user);
    await count(replicas, user, 1, 6);
    await first.has(6);
    await replicas[0].kill();
    await count(replicas.slice(1), user, 7, 12);
    const elsewhere = await Follower.start(replicas[1], user, first.last);
    await elsewhere.has(6);
    assert.deepEqual(elsewhere.updates.toSorted((a, b) => a - b), numbers(7, 12));
    await replicas[0].start();
    const restarted = await Follower.start(replicas[0], user, first.last);
    await restarted.has(6);
    assert.deepEqual(restarted.all(), elsewhere.all());
    assert.equal(restarted.word[0], 'recovered');
  });
});

describe('on a stream that keeps little', () => {
  const STREAM_LEN_MAX = 50;
  let fleet;
  let replicas;
  before(async () => {
    fleet = await startCluster(2, { streamLenMax: STREAM_LEN_MAX });
    ({ replicas } = fleet);
    // Redis trims whole nodes of its list: small ones, so that `~` is near.
    await fleet.redis.command('CONFIG', 'SET', 'stream-node-max-entries', '10');
  });
  after(() => stopCluster(fleet));

  test('a client that was away for longer than the stream reaches back is told of the gap', async () => {
    const user = newUser();
    const first = await Follower.start(replicas[0], user);
    await emit(replicas[0], user, 'seen');
    await first.has(1);
    first.leave();
    await count([replicas[0]], user, 1, 4 * STREAM_LEN_MAX);
    // Nobody has followed the stream here: this one knows only what Redis has.
    const again = await Follower.start(replicas[1], user, first.last);
    const [event, { reason, to, ...rest }] = again.word;
    assert.deepEqual({ event, reason, rest }, { event: 'gap', reason: 'trimmed', rest: {} });
    await emit(replicas[0], user, 'new');
    await until(() => again.updates.includes('new'));
    assert.deepEqual(again.updates, ['new']);
    assertOrdered([to, again.last]);
  });

  test('a client that stayed is told when its replica slept through a part', async () => {
    const user = newUser();
    const [awake, asleep] = await Promise.all(replicas.map((replica) => Follower.start(replica, user)));
    await emit(replicas[0], user, 0);
    await Promise.all([awake.has(1), asleep.has(1)]);
    replicas[1].stop();
    try {
      await count([replicas[0]], user, 1, 4 * STREAM_LEN_MAX);
    } finally {
      replicas[1].cont();
    }
    await awake.has(4 * STREAM_LEN_MAX + 1);
    const gap = () => asleep.told.find(([event]) => event === 'gap');
    // The sleeper may only find its place again by what comes: a broadcast now and then.
    let n = 4 * STREAM_LEN_MAX;
    await until(async () => (await emit(replicas[0], user, (n += 1)), gap()), undefined, 'the gap');
    assert.equal(gap()[1].reason, 'trimmed');
    await emit(replicas[0], user, 'after');
    await until(() => asleep.updates.includes('after'));
    // What it has is without a hole on either side of the gap.
    const where = asleep.told.findIndex(([event]) => event === 'gap');
    const of = (told) => told.filter(([event]) => event === 'update').map(([, first]) => first);
    const [head, tail] = [of(asleep.told.slice(0, where)), of(asleep.told.slice(where))];
    assert.deepEqual(head, numbers(0, head.length - 1));
    assert.deepEqual(tail.slice(0, -1), numbers(n - tail.length + 2, n));
    assert.equal(asleep.told.filter(([event]) => event === 'gap').length, 1);
    assert.ok(!awake.told.some(([event]) => event === 'gap'));
  });

  test('a client of an emptied stream is told', async () => {
    const user = newUser();
    const first = await Follower.start(replicas[0], user);
    await emit(replicas[0], user, 'seen');
    await first.has(1);
    first.leave();
    await replicas[1].kill();
    await fleet.redis.command('DEL', 'socket.io');
    await replicas[1].start();
    const again = await Follower.start(replicas[1], user, first.last);
    assert.deepEqual([again.word[0], again.word[1].reason], ['gap', 'unknown']);
    await emit(replicas[1], user, 'new');
    await again.has(1);
    assert.deepEqual(again.updates, ['new']);
  });
});

describe('when Redis is away', () => {
  let fleet;
  let replica;
  before(async () => {
    fleet = await startCluster(1);
    [replica] = fleet.replicas;
  });
  after(() => stopCluster(fleet, { mayLogErrors: true }));

  test('what was missed cannot be read: a gap, and the client is served', async () => {
    const user = newUser();
    const first = await Follower.start(replica, user);
    await emit(replica, user, 1);
    await first.has(1);
    first.leave();
    await emit(replica, user, 2);
    // It comes up without knowing anything of the stream so far.
    await replica.kill();
    await replica.start();
    fleet.redis.hang();
    let again;
    try {
      again = await Follower.start(replica, user, first.last);
      assert.deepEqual([again.word[0], again.word[1].reason], ['gap', 'unreachable']);
      assert.ok('to' in again.word[1]);
      assert.deepEqual(await within(again.socket.emitWithAck('ping')), {});
    } finally {
      fleet.redis.resume();
    }
    const hasOffset = () => again.all().some(([, offset]) => OFFSET.test(offset));
    await until(async () => (await emit(replica, user, 'new'), hasOffset()), undefined, 'a broadcast with its offset');
  });

  test('broadcasts come without an offset, then a gap, and with one again when Redis is back', async () => {
    const user = newUser();
    const follower = await Follower.start(replica, user);
    await emit(replica, user, 'before');
    await follower.has(1);
    await fleet.redis.stop();
    // The first that is made may be on its way when the connection breaks: each is delivered once, whatever becomes of it.
    let n = 0;
    await until(async () => (await emit(replica, user, (n += 1)), follower.told.some(([event]) => event === 'gap')), undefined, 'the gap');
    await follower.has(n + 1);
    assert.deepEqual(follower.updates, ['before', ...numbers(1, n)]);
    const [[, gap]] = follower.told.filter(([event]) => event === 'gap');
    assert.equal(gap.reason, 'unreachable');
    assert.equal(gap.to, null);
    await fleet.redis.startEmpty();
    const isBack = () => follower.all().some(([first, offset]) => String(first).startsWith('back') && OFFSET.test(offset));
    await until(async () => (await emit(replica, user, `back ${(n += 1)}`), isBack()), undefined, 'a broadcast with its offset');
    assert.deepEqual(follower.updates.length, new Set(follower.updates).size, 'nothing came twice');
  });
});

describe('a host that is alone', () => {
  let host;
  before(async () => (host = await startHost()));
  after(() => host.stop());

  test('gives offsets of its own, and what was missed out of its memory', async () => {
    const user = newUser();
    const emitHere = (first) => host.emit({ rooms: [`user:${user}`], event: 'update', args: [first] });
    const first = await Follower.start(host, user);
    assert.equal(first.word[0], 'offset');
    for (const n of numbers(1, 5)) await emitHere(n);
    await first.has(5);
    assertOrdered([first.word[1].at, ...first.all().map(([, offset]) => offset)]);
    first.leave();
    for (const n of numbers(6, 9)) await emitHere(n);
    const second = await Follower.start(host, user, first.last);
    assert.equal(second.word[0], 'recovered');
    await emitHere(10);
    await second.has(5);
    assert.deepEqual(second.updates, numbers(6, 10));
    assertOrdered([first.last, ...second.all().map(([, offset]) => offset)]);
    assert.equal(second.told.findIndex(([event]) => event === 'recovered'), 4);
  });

  test('knows nothing of before it started', async () => {
    for (const lastOffset of ['1-0', '99999999999999-0', 'nonsense']) {
      const follower = await Follower.start(host, newUser(), lastOffset);
      assert.deepEqual([follower.word[0], follower.word[1].reason], ['gap', 'unknown'], lastOffset);
    }
  });

  test('gives plain clients what they always got', async () => {
    const user = newUser();
    const told = collect(await connect(host, { user }), 'update');
    await Follower.start(host, user);
    await host.emit({ rooms: [`user:${user}`], event: 'update', args: ['x'] });
    await until(() => told.length === 1);
    assert.deepEqual(told, [['x']]);
  });
});

test('a client that does not read is cut off, comes back, and loses nothing without a word', async () => {
  const fleet = await startCluster(1, { settings: { 'listen.max_buffer_packets': 64 } });
  try {
    const [replica] = fleet.replicas;
    const user = newUser();
    const socket = open(replica, { user, reconnection: true, reconnectionDelay: 20, reconnectionDelayMax: 100 });
    const seen = [];
    offsets(socket, { onGap: (reason) => seen.push(reason) });
    socket.on('update', (first) => seen.push(first));
    const begins = next(socket, 'offset');
    await connected(socket);
    await begins;
    const other = await Follower.start(replica, user);
    const gone = next(socket, 'disconnect');
    const wire = socket.io.engine.transport.ws._socket;
    wire.pause();
    // The kernel takes some megabytes, then the buffer fills.
    const text = 'x'.repeat(64 * 1024);
    const shed = () => counted(replica, 'pointwork_slow_consumers_total');
    let n = 0;
    while (n < 2_000 && (await shed()) === 0) {
      for (let i = 0; i < 20; i += 1) await emit(replica, user, (n += 1), text);
      await other.has(n);
    }
    assert.equal(await shed(), 1);
    wire.resume();
    await gone;
    await next(socket, 'connect');
    await emit(replica, user, (n += 1));
    await until(() => seen.includes(n), undefined, () => `the last update; it has ${JSON.stringify(seen.slice(-5))}`);
    // Each number follows the one before it, or a gap.
    const isHole = (one, before = 0) => typeof one === 'number' && typeof before === 'number' && one !== before + 1;
    const holes = seen.filter((one, i) => isHole(one, seen[i - 1]));
    assert.deepEqual(holes, [], JSON.stringify(seen));
    const known = seen.filter((one) => typeof one === 'number');
    assert.equal(new Set(known).size, known.length, 'nothing came twice');
    await other.has(n);
    assert.deepEqual(other.updates, numbers(1, n), 'nobody else notices');
  } finally {
    await stopCluster(fleet);
  }
});
