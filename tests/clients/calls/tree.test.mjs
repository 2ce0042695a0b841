// What an rpc-call does, branch by branch, on two replicas: the tree of the field's own documentation, of which every branch is a
// test here. Caller and daemon are on different replicas wherever the branch allows it.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startCluster, stopCluster } from '../fleet/cluster.mjs';
import { call, closeSockets, connect, daemon, failed, newUser, register, succeeded, unregister } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const METHOD_REQUIRED = failed('Invalid parameters: method is required');
const NOT_AVAILABLE = failed('RPC method not available');
const SAME_SOCKET = failed('Cannot call RPC on the same socket');
const DISCONNECTED = failed('RPC target disconnected');
const TIMED_OUT = failed('operation has timed out');

/** Methods that begin so have little time, the others more than any test takes. */
const CONFIG = '[[rpc.method]]\nmatch = "short:*"\ntimeout_ms = 300\n[[rpc.method]]\nmatch = "*"\ntimeout_ms = 300000\n';
const SETTINGS = { 'rpc.presence_poll_ms': 50 };

afterEach(closeSockets);

/** A daemon on the far replica that answers when the test says so: `answers` holds a function for each request. */
async function slow(far, user, methods) {
  const answers = [];
  const socket = await daemon(far, { user, methods, handler: () => new Promise((resolve) => answers.push(resolve)) });
  return { socket, answers, asked: (times = 1) => until(() => answers.length >= times, undefined, `request ${times}`) };
}

describe('with time to wait', () => {
  let fleet;
  let near;
  let far;
  before(async () => {
    fleet = await startCluster(2, { graceMs: 60_000, settings: SETTINGS, config: CONFIG });
    [near, far] = fleet.replicas;
  });
  after(() => stopCluster(fleet));

  test('input: a method that is none is refused', async () => {
    const caller = await connect(near, { user: newUser() });
    for (const payload of [null, {}, { method: 7 }, { method: '' }, { params: 1 }, []]) {
      assert.deepEqual(await within(caller.emitWithAck('rpc-call', payload)), METHOD_REQUIRED, JSON.stringify(payload));
    }
  });

  test('resolve: a target on the other replica gets the request', async () => {
    const user = newUser();
    await daemon(far, { user, methods: ['m'], handler: ({ method, params }) => ({ method, params }) });
    assert.deepEqual(await call(await connect(near, { user }), 'm', [1]), succeeded({ method: 'm', params: [1] }));
  });

  test('resolve: a target on the own replica gets the request', async () => {
    const user = newUser();
    await daemon(near, { user, methods: ['m'], handler: () => 'here' });
    assert.deepEqual(await call(await connect(near, { user }), 'm'), succeeded('here'));
  });

  test("grace: a method that is registered meanwhile on the other replica, first ever or again, gets the request", async () => {
    const user = newUser();
    const caller = await connect(near, { user });
    for (const answer of ['first', 'again']) {
      const pending = call(caller, 'm');
      // The call is there once an event after it is answered.
      assert.deepEqual(await within(caller.emitWithAck('ping')), {});
      const one = await daemon(far, { user, methods: ['m'], handler: () => answer });
      assert.deepEqual(await pending, succeeded(answer));
      await unregister(one, 'm');
      await gone(user, one);
    }
  });

  test('grace: what the waiting socket registers itself is the same socket', async () => {
    const caller = await connect(near, { user: newUser() });
    const pending = call(caller, 'm');
    caller.emit('rpc-register', { method: 'm' });
    assert.deepEqual(await pending, SAME_SOCKET);
  });

  test('sanity: of several sockets the first is used, and a warning logged', async () => {
    const user = newUser();
    await daemon(far, { user, methods: ['m'], handler: () => 'first' });
    const caller = await connect(near, { user });
    assert.deepEqual(await call(caller, 'm'), succeeded('first'));
    await daemon(near, { user, methods: ['m'], handler: () => 'second' });
    assert.deepEqual(await call(caller, 'm'), succeeded('first'));
    const isWarning = (line) => line.includes('several sockets registered one method') && line.includes(user);
    await until(() => near.log.some(isWarning), undefined, 'the warning');
    assert.deepEqual(await call(caller, 'm'), succeeded('first'));
    assert.equal(near.log.filter(isWarning).length, 1, 'not for every call');
  });

  test('sanity: a socket that is its own target is told so', async () => {
    const socket = await daemon(near, { user: newUser(), methods: ['m'], handler: () => 1 });
    assert.deepEqual(await call(socket, 'm'), SAME_SOCKET);
  });

  test('emit: an acknowledgement is the result, whatever it is', async () => {
    const user = newUser();
    await daemon(far, { user, methods: ['m'], handler: ({ params }) => params });
    const caller = await connect(near, { user });
    for (const value of [null, 0, 'text', [Buffer.from('binary')], { ok: false, error: 'of the daemon' }]) {
      assert.deepEqual(await call(caller, 'm', value), succeeded(value));
    }
  });

  test('emit: without an acknowledgement in time the call times out', async () => {
    const user = newUser();
    const { answers, asked } = await slow(far, user, ['short:m']);
    const caller = await connect(near, { user });
    const pending = call(caller, 'short:m');
    await asked();
    assert.deepEqual(await pending, TIMED_OUT);
    answers[0]('late');
    assert.deepEqual(await within(caller.emitWithAck('ping')), {});
  });

  test('emit: an acknowledgement that cannot be passed on is an error', async () => {
    const user = newUser();
    const attachments = Array.from({ length: 11 }, () => Buffer.from('x'));
    await daemon(far, { user, methods: ['m'], handler: () => attachments });
    assert.deepEqual(await call(await connect(near, { user }), 'm'), failed('Internal error'));
  });

  test('presence: a call is kept for as long as its target is there', async () => {
    const user = newUser();
    const { answers, asked } = await slow(far, user, ['m']);
    const other = await slow(far, user, ['short:m', 'leaves']);
    const caller = await connect(near, { user });
    const pending = call(caller, 'm');
    await asked();
    // Longer than several looks, and others' ends do not touch it.
    for (let looks = 0; looks < 2; looks += 1) assert.deepEqual(await call(caller, 'short:m'), TIMED_OUT);
    const leaving = call(caller, 'leaves');
    await other.asked(3);
    other.socket.disconnect();
    assert.deepEqual(await leaving, DISCONNECTED);
    answers[0]('at last');
    assert.deepEqual(await pending, succeeded('at last'));
  });

  const departures = {
    'closes its socket': ({ socket }) => socket.disconnect(),
    'loses its connection': ({ door }) => door.cut(),
    'takes its method back': ({ socket }) => socket.emit('rpc-unregister', { method: 'm' }),
  };
  for (const [departure, leave] of Object.entries(departures)) {
    test(`presence: a target that ${departure} ends its calls, and only those`, async () => {
      const user = newUser();
      const door = await fleet.door(1);
      const { socket, asked } = await slow(door, user, ['m']);
      const other = await slow(far, user, ['other']);
      const caller = await connect(near, { user });
      const pending = [call(caller, 'm'), call(caller, 'm'), call(caller, 'other')];
      await asked(2);
      await other.asked();
      leave({ socket, door });
      assert.deepEqual(await Promise.all(pending.slice(0, 2)), [DISCONNECTED, DISCONNECTED]);
      other.answers[0]('unharmed');
      assert.deepEqual(await pending[2], succeeded('unharmed'));
    });
  }

  test('finally: nothing follows an answer, whatever the daemon does then', async () => {
    const user = newUser();
    const acks = [];
    const caller = await connect(near, { user });
    caller.io.on('packet', ({ type, id }) => type === 3 && acks.push(id));
    const { socket, answers, asked } = await slow(far, user, ['m']);
    const pending = [call(caller, 'm'), call(caller, 'm')];
    await asked(2);
    answers[0]('one');
    assert.deepEqual(await pending[0], succeeded('one'));
    socket.disconnect();
    assert.deepEqual(await pending[1], DISCONNECTED);
    const back = await daemon(far, { user, methods: ['m'], handler: () => 'back' });
    assert.deepEqual(await call(caller, 'm'), succeeded('back'));
    await unregister(back, 'm');
    assert.deepEqual(await within(caller.emitWithAck('ping')), {});
    assert.deepEqual(acks, [0, 1, 2, 3]);
  });

  test('finally: a caller without an acknowledgement gets none, and the daemon its request', async () => {
    const user = newUser();
    const seen = [];
    await daemon(far, { user, methods: ['m'], handler: ({ params }) => (seen.push(params), true) });
    const caller = await connect(near, { user });
    caller.emit('rpc-call', { method: 'm', params: 1 });
    caller.emit('rpc-call', null);
    assert.deepEqual(await call(caller, 'm', 2), succeeded(true));
    await until(() => seen.length === 2);
    assert.deepEqual(seen, [1, 2]);
  });

  // The last of these: the far replica is another process afterwards.
  test('presence: a target whose replica is killed ends its calls', async () => {
    const user = newUser();
    const { asked } = await slow(far, user, ['m']);
    const caller = await connect(near, { user });
    const pending = call(caller, 'm');
    await asked();
    await far.kill();
    assert.deepEqual(await pending, DISCONNECTED);
    await far.start();
  });

  /** Waits until the near replica knows that a method was taken back: it says so to nobody, but a call of its own socket would be. */
  async function gone(user, socket) {
    const probe = await connect(near, { user });
    await register(probe, 'm');
    await until(async () => (await call(probe, 'm')).error === SAME_SOCKET.error, undefined, `the end of ${socket.id}`);
    await unregister(probe, 'm');
  }
});

describe('with little time to wait', () => {
  let fleet;
  let near;
  let far;
  before(async () => {
    fleet = await startCluster(2, { graceMs: 300, settings: SETTINGS, config: CONFIG });
    [near, far] = fleet.replicas;
  });
  after(() => stopCluster(fleet));

  test('grace: nobody to the end is not available', async () => {
    const user = newUser();
    const caller = await connect(near, { user });
    assert.deepEqual(await call(caller, 'never'), NOT_AVAILABLE);
    const one = await daemon(far, { user, methods: ['m'], handler: () => 'there' });
    assert.deepEqual(await call(caller, 'm'), succeeded('there'));
    one.disconnect();
    const isGone = async () => (await call(caller, 'm')).error === NOT_AVAILABLE.error;
    await until(isGone, undefined, 'the end of the daemon');
  });

  test('resolve: a replica that does not answer is nobody, and holds up nobody', async () => {
    const user = newUser();
    const caller = await connect(near, { user });
    await daemon(near, { user, methods: ['here'], handler: () => 'here' });
    far.stop();
    try {
      assert.deepEqual(await call(caller, 'never'), NOT_AVAILABLE);
      assert.deepEqual(await call(caller, 'here'), succeeded('here'));
    } finally {
      far.cont();
    }
    await daemon(far, { user, methods: ['there'], handler: () => 'there' });
    assert.deepEqual(await call(caller, 'there'), succeeded('there'));
  });
});
