// rpc-waiting: a caller that says that it wants to know is told when its call is held, and when it goes on.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { call as callOf, waiting } from '../../../clients/js/index.mjs';
import { counted, startCluster, stopCluster } from '../fleet/cluster.mjs';
import { call, closeSockets, collect, connect, connected, daemon, failed, newUser, next, open, register, succeeded } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const NOT_AVAILABLE = failed('RPC method not available');
const GRACE_MS = 60_000;

afterEach(closeSockets);

/** A caller that wants to know; `news` is what it was told, and `call` notes the answers among it. */
async function curious(place, options) {
  const socket = await connect(place, { ...options, auth: { capabilities: ['rpc-waiting'] } });
  const news = [];
  socket.on('rpc-waiting', (told) => news.push(told));
  const ask = async (method) => {
    const answer = await call(socket, method);
    news.push(answer);
    return answer;
  };
  return { socket, news, ask };
}

/** That a call is held, for at most so long. */
function assertHeld(told, method, maxMs = GRACE_MS) {
  const { sinceMs, deadlineMs, ...rest } = told;
  assert.deepEqual(rest, { method });
  assert.ok(Number.isInteger(sinceMs) && sinceMs >= 0, JSON.stringify(told));
  assert.ok(Number.isInteger(deadlineMs) && deadlineMs > 0 && deadlineMs <= maxMs, JSON.stringify(told));
}

/** That it goes on. */
function assertGoesOn(told, method) {
  const { sinceMs, ...rest } = told;
  assert.deepEqual(rest, { method, deadlineMs: 0 });
  assert.ok(Number.isInteger(sinceMs) && sinceMs >= 0, JSON.stringify(told));
}

describe('with time to wait', () => {
  let fleet;
  let near;
  let far;
  before(async () => {
    const settings = { 'redis.heartbeat_ms': 200, 'redis.lost_after_ms': 800, 'rpc.presence_poll_ms': 50 };
    fleet = await startCluster(2, { graceMs: GRACE_MS, settings });
    [near, far] = fleet.replicas;
  });
  after(() => stopCluster(fleet));

  test('a call that nobody takes is held, and goes on with the registration, on whatever replica', async () => {
    for (const place of [near, far]) {
      const user = newUser();
      const { news, ask } = await curious(near, { user });
      const answer = ask('m');
      await until(() => news.length === 1);
      await daemon(place, { user, methods: ['m'], handler: () => 'here' });
      assert.deepEqual(await answer, succeeded('here'));
      assertHeld(news[0], 'm');
      assertGoesOn(news[1], 'm');
      assert.deepEqual(news[2], succeeded('here'));
      assert.equal(news.length, 3);
    }
  });

  test('each call is told of, and a call that finds its daemon is not', async () => {
    const user = newUser();
    const { news, ask } = await curious(near, { user });
    const answers = [ask('m'), ask('n'), ask('m')];
    await until(() => news.length === 3);
    assert.deepEqual(news.map(({ method }) => method), ['m', 'n', 'm']);
    await daemon(far, { user, methods: ['m', 'n'], handler: ({ method }) => method });
    assert.deepEqual(await Promise.all(answers), ['m', 'n', 'm'].map(succeeded));
    assert.equal(news.length, 9);
    assert.deepEqual(await ask('n'), succeeded('n'));
    assert.equal(news.length, 10);
  });

  test('who does not say the capability is told nothing', async () => {
    const user = newUser();
    const auths = [{}, { capabilities: [] }, { capabilities: ['rpc-resume', 'rpc-waiting ', 'RPC-WAITING', 7, null, ['rpc-waiting']] }];
    const odd = ['rpc-waiting', 7, null, { 0: 'rpc-waiting' }, true].map((capabilities) => ({ capabilities }));
    const callers = await Promise.all([...auths, ...odd].map((auth) => connect(near, { user, auth })));
    const told = callers.map((socket) => collect(socket, 'rpc-waiting'));
    const answers = callers.map((socket) => call(socket, 'm'));
    await Promise.all(callers.map((socket) => within(socket.emitWithAck('ping'))));
    await daemon(far, { user, methods: ['m'], handler: () => 1 });
    assert.deepEqual(await Promise.all(answers), callers.map(() => succeeded(1)));
    assert.deepEqual(told, callers.map(() => []));
  });

  test('unknown capabilities beside it are ignored', async () => {
    const user = newUser();
    const capabilities = [...Array.from({ length: 100 }, (_, i) => `later-${i}`), 'rpc-waiting', 'rpc-waiting', {}];
    const socket = await connect(near, { user, auth: { capabilities } });
    const told = next(socket, 'rpc-waiting');
    socket.emit('rpc-call', { method: 'm' }, () => {});
    assertHeld((await told)[0], 'm');
  });

  test('a call without an acknowledgement is told of, too', async () => {
    const user = newUser();
    const { socket, news } = await curious(near, { user });
    socket.emit('rpc-call', { method: 'm' });
    await until(() => news.length === 1);
    assertHeld(news[0], 'm');
    const one = await daemon(far, { user, methods: ['m'], handler: () => 1 });
    await until(() => news.length === 2);
    assertGoesOn(news[1], 'm');
    one.disconnect();
  });

  test('a daemon that can hand in is waited for: told once, and the answer ends it', async () => {
    const user = newUser();
    const door = await fleet.door(1);
    const requests = [];
    const auth = { capabilities: ['rpc-resume'] };
    const one = await connect(door, { user, auth });
    one.on('rpc-request', (request) => requests.push(request));
    await register(one, 'm');
    const { news, ask } = await curious(near, { user });
    const answer = ask('m');
    await until(() => requests.length === 1);
    assert.deepEqual(news, []);
    door.cut();
    await until(() => news.length === 1);
    const back = await connect(far, { user, auth });
    await register(back, 'm');
    assert.deepEqual(await within(back.emitWithAck('rpc-result', { callId: requests[0].callId, result: 'handed in' })), { ok: true });
    assert.deepEqual(await answer, succeeded('handed in'));
    assertHeld(news[0], 'm');
    assert.deepEqual(news.slice(1), [succeeded('handed in')]);
  });

  test('a daemon that cannot is not', async () => {
    const user = newUser();
    const one = await daemon(far, { user, methods: ['m'], handler: () => void one.disconnect() });
    const { news, ask } = await curious(near, { user });
    assert.deepEqual(await ask('m'), failed('RPC target disconnected'));
    assert.equal(news.length, 1);
  });

  test('a replica that falls silent is told of, and that it goes on', async () => {
    const user = newUser();
    const answers = [];
    await daemon(far, { user, methods: ['m'], handler: () => new Promise((resolve) => answers.push(resolve)) });
    const { news, ask } = await curious(near, { user });
    const answer = ask('m');
    await until(() => answers.length === 1);
    far.stop();
    try {
      await until(() => news.length === 1, undefined, 'word of the silence');
      await until(async () => (await counted(near, 'pointwork_cluster_peers')) === 0, undefined, 'it to be no peer that is heard from');
    } finally {
      far.cont();
    }
    await until(() => news.length === 2, undefined, 'word of its end');
    answers[0]('alive');
    assert.deepEqual(await answer, succeeded('alive'));
    assertHeld(news[0], 'm');
    assertGoesOn(news[1], 'm');
    assert.equal(news.length, 3);
  });

  test('clients/js: one line for all calls, and one call that is told of its own', async () => {
    const user = newUser();
    const socket = open(near, { user });
    const [all, own] = [[], []];
    waiting(socket, (told) => all.push(told));
    await connected(socket);
    const results = [callOf(socket, 'm', null, { onWaiting: (told) => own.push(told) }), callOf(socket, 'n')];
    await until(() => all.length === 2 && own.length === 1);
    await daemon(far, { user, methods: ['m', 'n'], handler: ({ method }) => method });
    assert.deepEqual(await within(Promise.all(results)), ['m', 'n']);
    assert.equal(all.length, 4);
    assert.equal(own.length, 2);
    assertHeld(own[0], 'm');
    assertGoesOn(own[1], 'm');
  });
});

describe('with little time to wait', () => {
  let fleet;
  before(async () => (fleet = await startCluster(1, { graceMs: 300 })));
  after(() => stopCluster(fleet));

  test('a call that waits in vain is told of once, and answered', async () => {
    const { news, ask } = await curious(fleet.replicas[0], { user: newUser() });
    assert.deepEqual(await ask('m'), NOT_AVAILABLE);
    assertHeld(news[0], 'm', 300);
    assert.deepEqual(news.slice(1), [NOT_AVAILABLE]);
  });

  test('clients/js: its error is the server’s', async () => {
    const socket = open(fleet.replicas[0], { user: newUser() });
    const told = [];
    waiting(socket);
    await connected(socket);
    const pending = callOf(socket, 'm', null, { onWaiting: (news) => told.push(news) });
    await assert.rejects(within(pending), { message: NOT_AVAILABLE.error });
    assert.equal(told.length, 1);
  });
});
