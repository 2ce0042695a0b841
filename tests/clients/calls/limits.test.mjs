// Over a limit a call is refused at once with a clear error, counted, and nobody else notices.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { counted, startCluster, stopCluster } from '../fleet/cluster.mjs';
import { call, closeSockets, connect, daemon, failed, newUser, next, register, succeeded, unregister } from '../support/sockets.mjs';
import { until } from '../support/waiting.mjs';

const TOO_MANY_CALLS = failed('Too many calls in flight');
const TOO_MANY_WAITING = failed('Too many calls waiting');
const METHOD_REQUIRED = failed('Invalid parameters: method is required');
const TOO_LARGE = failed('Params too large');

const OF_USER = 4;
const OF_REPLICA = 6;
const WAITING = 2;
const METHODS = 3;
const PARAMS_BYTES = 10_000;
const METHOD_BYTES = 64;

let fleet;
let near;
let far;
before(async () => {
  const settings = {
    'rpc.calls_per_user_max': OF_USER,
    'rpc.calls_max': OF_REPLICA,
    'rpc.waiting_per_method_max': WAITING,
    'rpc.methods_per_socket_max': METHODS,
    'rpc.params_bytes_max': PARAMS_BYTES,
    'rpc.method_bytes_max': METHOD_BYTES,
  };
  fleet = await startCluster(2, { graceMs: 60_000, settings });
  [near, far] = fleet.replicas;
});
after(() => stopCluster(fleet));
afterEach(closeSockets);

/** Runs it and asserts that exactly so many more were refused for this reason. */
async function refused(reason, times, act) {
  const count = () => counted(near, 'rpc_refused_total', `reason="${reason}"`);
  const before = await count();
  await act();
  assert.equal((await count()) - before, times, `counted as ${reason}`);
}

/** A daemon on the far replica that keeps its requests; `answerAll` answers those that came. */
async function slow(user, methods) {
  const answers = [];
  await daemon(far, { user, methods, handler: ({ params }) => new Promise((resolve) => answers.push(() => resolve(params))) });
  const asked = (times) => until(() => answers.length === times, undefined, `${times} requests`);
  return { asked, answerAll: () => answers.splice(0).forEach((answer) => answer()) };
}

/** Calls until that many are in flight; gives the pending answers. */
async function fill(user, number, { asked }) {
  const caller = await connect(near, { user });
  const answers = Array.from({ length: number }, (_, i) => call(caller, 'm', i));
  await asked(number);
  return { caller, answers };
}

test('calls in flight of one user', async () => {
  const user = newUser();
  const one = await slow(user, ['m']);
  const { caller, answers } = await fill(user, OF_USER, one);
  const elsewhere = await connect(near, { user });
  await refused('in-flight', 2, async () => {
    assert.deepEqual(await call(caller, 'm'), TOO_MANY_CALLS);
    assert.deepEqual(await call(elsewhere, 'nobody'), TOO_MANY_CALLS, 'whatever the method, from whatever socket');
  });
  const other = newUser();
  await daemon(far, { user: other, methods: ['m'], handler: () => 'other' });
  assert.deepEqual(await call(await connect(near, { user: other }), 'm'), succeeded('other'), 'others are served');
  one.answerAll();
  assert.deepEqual(await Promise.all(answers), answers.map((_, i) => succeeded(i)));
  const again = call(caller, 'm', 'again');
  await one.asked(1);
  one.answerAll();
  assert.deepEqual(await again, succeeded('again'));
});

test('calls in flight on one replica', async () => {
  const users = [newUser(), newUser()];
  const daemons = await Promise.all(users.map((user) => slow(user, ['m'])));
  const filled = [await fill(users[0], OF_USER, daemons[0]), await fill(users[1], OF_REPLICA - OF_USER, daemons[1])];
  await refused('in-flight', 1, async () => assert.deepEqual(await call(filled[1].caller, 'm'), TOO_MANY_CALLS));
  daemons.forEach((one) => one.answerAll());
  for (const { answers } of filled) assert.deepEqual(await Promise.all(answers), answers.map((_, i) => succeeded(i)));
});

test('calls waiting for one method', async () => {
  const user = newUser();
  const caller = await connect(near, { user });
  const waiting = Array.from({ length: WAITING }, (_, i) => call(caller, 'm', i));
  await refused('waiting', 1, async () => assert.deepEqual(await call(caller, 'm'), TOO_MANY_WAITING));
  const other = call(caller, 'other', 'o');
  await daemon(far, { user, methods: ['m', 'other'], handler: ({ params }) => params });
  assert.deepEqual(await Promise.all(waiting), waiting.map((_, i) => succeeded(i)));
  assert.deepEqual(await other, succeeded('o'), 'another method has its own');
  assert.deepEqual(await call(caller, 'm', 'served'), succeeded('served'));
});

test('the size of the parameters', async () => {
  const user = newUser();
  const requests = [];
  await daemon(far, { user, methods: ['m'], handler: ({ params }) => requests.push(params) });
  const caller = await connect(near, { user });
  const bytes = (length) => Buffer.alloc(length);
  const list = Array.from({ length: PARAMS_BYTES }, () => 1);
  const large = ['x'.repeat(PARAMS_BYTES + 1), { list }, bytes(PARAMS_BYTES + 1), [bytes(PARAMS_BYTES), 'x'.repeat(1_000)]];
  await refused('params', large.length, async () => {
    for (const params of large) assert.deepEqual(await call(caller, 'm', params), TOO_LARGE);
  });
  assert.deepEqual(requests, [], 'no daemon is bothered');
  assert.deepEqual(await call(caller, 'm', 'x'.repeat(PARAMS_BYTES - 1_000)), succeeded(1));
  assert.deepEqual(await call(caller, 'm', bytes(PARAMS_BYTES - 1_000)), succeeded(2));
});

test('what is no method, or has too long a name', async () => {
  const user = newUser();
  const socket = await connect(near, { user });
  await refused('method', 3, async () => {
    for (const method of [undefined, 7, '']) assert.deepEqual(await call(socket, method), METHOD_REQUIRED);
  });
  const long = 'x'.repeat(METHOD_BYTES + 1);
  await refused('method', 1, async () => assert.equal((await call(socket, long)).ok, false));
  const error = next(socket, 'rpc-error');
  socket.emit('rpc-register', { method: long });
  assert.deepEqual(await error, [{ type: 'register', error: 'Invalid method name' }]);
  await register(socket, 'x'.repeat(METHOD_BYTES));
});

test('methods of one socket', async () => {
  const user = newUser();
  const socket = await connect(near, { user });
  for (let i = 0; i < METHODS; i += 1) await register(socket, `m${i}`);
  const count = () => counted(near, 'rpc_errors_total', 'type="register"');
  const before = await count();
  const error = next(socket, 'rpc-error');
  socket.emit('rpc-register', { method: 'one-more' });
  assert.deepEqual(await error, [{ type: 'register', error: 'Too many methods' }]);
  assert.equal((await count()) - before, 1);
  await register(socket, 'm0'); // it has that already
  await unregister(socket, 'm0');
  await register(socket, 'one-more');
});
