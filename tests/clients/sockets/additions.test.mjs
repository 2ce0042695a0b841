// What clients/js adds to a socket, against a server that says whatever the test wants.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { after, afterEach, before, describe, test } from 'node:test';
import { call, offsets, resume, waiting } from '../../../clients/js/index.mjs';
import { closeSockets, collect, connected, next, open } from '../support/sockets.mjs';
import { until } from '../support/waiting.mjs';

const { Server } = createRequire(new URL('../../peers/node/package.json', import.meta.url))('socket.io');

const UNREACHABLE = { ok: false, error: 'RPC target unreachable' };
const UNKNOWN = { ok: false, error: 'Unknown call' };

let http;
let io;
let place;
before(async () => {
  http = createServer().listen(0, '127.0.0.1');
  await once(http, 'listening');
  io = new Server(http);
  place = { url: `http://127.0.0.1:${http.address().port}`, path: '/socket.io' };
});
after(() => io.close());
afterEach(() => {
  closeSockets();
  io.removeAllListeners('connection');
});

/** A socket that has not connected yet, and comes back by itself at once. */
const socketOf = (auth) => open(place, { auth, reconnection: true, reconnectionDelay: 1, reconnectionDelayMax: 10 });

/** The server's side of the socket, connected once more. */
const accepted = () => once(io, 'connection').then(([socket]) => socket);

/** Connects it and gives both sides. */
async function both(socket) {
  const [server] = await Promise.all([accepted(), connected(socket)]);
  return server;
}

/** Cuts the connection and waits for the next one; `meanwhile` is done while there is none. */
async function again(socket, server, meanwhile = () => {}) {
  const [gone, back, backHere] = [next(socket, 'disconnect'), accepted(), next(socket, 'connect')];
  server.conn.close();
  await gone;
  await meanwhile();
  const [serverAgain] = await Promise.all([back, backHere]);
  return serverAgain;
}

/** Waits until what was sent before has been handled on the other side. */
async function settled(server) {
  await server.timeout(10_000).emitWithAck('fence');
}

describe('the handshake', () => {
  const everything = (socket) => {
    resume(socket, () => {});
    offsets(socket, { onGap: () => {}, from: '7-0' });
    waiting(socket);
  };
  const capabilities = ['rpc-resume', 'offsets', 'rpc-waiting'];

  test('an object keeps what it says', async () => {
    const socket = socketOf({ token: 't', capabilities: ['own', 'offsets'] });
    everything(socket);
    const { handshake } = await both(socket);
    const { capabilities: said, ...rest } = handshake.auth;
    assert.deepEqual(rest, { token: 't', lastOffset: '7-0' });
    assert.deepEqual(said.toSorted(), ['own', ...capabilities].toSorted());
  });

  test('a socket without one gets one', async () => {
    const socket = socketOf(undefined);
    everything(socket);
    assert.deepEqual((await both(socket)).handshake.auth, { capabilities, lastOffset: '7-0' });
  });

  test('a function is asked each time, and may answer late', async () => {
    let times = 0;
    const socket = socketOf();
    socket.auth = (send) => setImmediate(() => send({ times: (times += 1) }));
    everything(socket);
    const server = await both(socket);
    assert.deepEqual(server.handshake.auth, { times: 1, capabilities, lastOffset: '7-0' });
    assert.deepEqual((await again(socket, server)).handshake.auth, { times: 2, capabilities, lastOffset: '7-0' });
  });

  test('a token that is refreshed and an auth that is replaced are said', async () => {
    const socket = socketOf({ token: 'old' });
    everything(socket);
    const server = await both(socket);
    const second = await again(socket, server, () => (socket.auth.token = 'new'));
    assert.deepEqual(second.handshake.auth, { token: 'new', capabilities, lastOffset: '7-0' });
    const third = await again(socket, second, () => (socket.auth = { other: true }));
    assert.deepEqual(third.handshake.auth, { other: true, capabilities, lastOffset: '7-0' });
    const fourth = await again(socket, third, () => (socket.auth = (send) => send({ late: true })));
    assert.deepEqual(fourth.handshake.auth, { late: true, capabilities, lastOffset: '7-0' });
  });

  test('sockets that are given the same object say their own', async () => {
    const auth = { token: 't' };
    const [one, other] = [socketOf(auth), socketOf(auth)];
    one.auth = auth;
    other.auth = auth;
    everything(one);
    assert.deepEqual(other.auth, { token: 't' });
    await both(one);
  });

  test('a connected socket cannot be added to', async () => {
    const socket = socketOf();
    await both(socket);
    assert.throws(() => waiting(socket), /is connected/);
    assert.throws(() => resume(socket, () => {}), /is connected/);
    assert.throws(() => offsets(socket, { onGap: () => {} }), /is connected/);
  });
});

describe('calls', () => {
  test('a result, an error, and no answer at all', async () => {
    const socket = socketOf();
    const server = await both(socket);
    server.on('rpc-call', ({ method, params, ...rest }, answer) => {
      if (method === 'add') answer({ ok: true, result: params + Object.keys(rest).length });
      if (method === 'none') answer({ ok: false, error: 'RPC method not available' });
      if (method === 'odd') answer();
    });
    assert.equal(await call(socket, 'add', 1), 1);
    assert.equal(await call(socket, 'add', 1, { timeoutMs: 5 }), 2);
    await assert.rejects(call(socket, 'none'), { message: 'RPC method not available' });
    await assert.rejects(call(socket, 'odd'), { message: 'the answer is none' });
    const cut = call(socket, 'silent');
    const gone = assert.rejects(cut, { message: 'socket has been disconnected' });
    await again(socket, server);
    await gone;
  });

  test('word of a call that is held goes to the listener, and to the calls of its method', async () => {
    const socket = socketOf();
    const [all, own] = [[], []];
    waiting(socket, (news) => all.push(news));
    const server = await both(socket);
    const held = { method: 'm', sinceMs: 5, deadlineMs: 100 };
    const other = { ...held, method: 'other' };
    server.on('rpc-call', (_, answer) => {
      for (const news of [held, other]) server.emit('rpc-waiting', news);
      answer({ ok: true, result: 1 });
    });
    assert.equal(await call(socket, 'm', null, { onWaiting: (news) => own.push(news) }), 1);
    server.emit('rpc-waiting', held);
    await until(() => all.length === 3);
    assert.deepEqual(own, [held]);
    assert.deepEqual(all, [held, other, held]);
  });
});

describe('offsets', () => {
  /** What the next handshake says after the server sent this. */
  const saidAfter = async (...events) => {
    const socket = socketOf();
    const gaps = [];
    const place = offsets(socket, { onGap: (reason) => gaps.push(reason) });
    socket.on('fence', (answer) => answer());
    const server = await both(socket);
    for (const event of events) server.emit(...event);
    await settled(server);
    const { auth } = (await again(socket, server)).handshake;
    assert.equal(place.last, auth.lastOffset);
    return { said: auth.lastOffset, gaps };
  };

  test('nothing before there is a place', async () => {
    assert.deepEqual(await saidAfter(), { said: undefined, gaps: [] });
    assert.deepEqual(await saidAfter(['update', 1], ['update', '2026-11'], ['update', '1717-0', 1]), { said: undefined, gaps: [] });
  });

  test('the last of what is told', async () => {
    assert.deepEqual(await saidAfter(['offset', { at: '1-0' }]), { said: '1-0', gaps: [] });
    assert.deepEqual(await saidAfter(['offset', { at: '1-0' }], ['update', { a: 1 }, '1717000000002-3']), { said: '1717000000002-3', gaps: [] });
    assert.deepEqual(await saidAfter(['offset', { at: '1-0' }], ['fence-like', '1717000000009-1'], ['none', 7]), { said: '1717000000009-1', gaps: [] });
    assert.deepEqual(await saidAfter(['recovered', { from: '1-0', to: '4-0' }]), { said: '4-0', gaps: [] });
  });

  test('a gap is told, and moves on if there is a place to go on from', async () => {
    const gap = (reason, to) => ['gap', { reason, to }];
    assert.deepEqual(await saidAfter(['update', '1717000000002-3'], gap('trimmed', '8-0')), { said: '8-0', gaps: ['trimmed'] });
    assert.deepEqual(await saidAfter(['update', '1717000000002-3'], gap('unreachable', null)), { said: '1717000000002-3', gaps: ['unreachable'] });
  });

  test('without onGap it is refused', () => {
    assert.throws(() => offsets(socketOf(), {}), TypeError);
  });
});

describe('resume', () => {
  /** A daemon that keeps each request's `answer` by its parameters, and its server. */
  async function daemon(options) {
    const socket = socketOf();
    const answers = new Map();
    resume(socket, ({ params }, answer) => answers.set(params, answer), options);
    socket.on('fence', (answer) => answer());
    const server = await both(socket);
    return { socket, answers, server };
  }

  /** What is handed in from now on; `reply(n)` is what the nth is answered. */
  function handedIn(reply) {
    const results = [];
    io.on('connection', (server) => server.on('rpc-result', (body, answer) => answer(reply(results.push(body)))));
    return results;
  }

  /** Sends a request and waits until the daemon has it; gives the list of what is acknowledged. */
  async function begin(daemon, server, callId) {
    const acks = [];
    server.emit('rpc-request', { method: 'm', params: callId, callId }, (...args) => acks.push(args));
    await until(() => daemon.answers.has(callId));
    return acks;
  }

  test('an answer on a live connection is the acknowledgement', async () => {
    const results = handedIn(() => ({ ok: true }));
    const one = await daemon();
    const acks = await begin(one, one.server, 'c1');
    one.answers.get('c1')('done');
    one.answers.get('c1')('again');
    await until(() => acks.length > 0);
    assert.deepEqual(acks, [['done']]);
    await settled(one.server);
    assert.deepEqual(results, []);
  });

  test('without a call id there is only the acknowledgement', async () => {
    const one = await daemon();
    const acked = one.server.emitWithAck('rpc-request', { method: 'm', params: 'p' });
    await until(() => one.answers.has('p'));
    one.answers.get('p')('done');
    assert.equal(await acked, 'done');
  });

  test('what is finished while the socket is away is handed in once when it is back', async () => {
    const results = handedIn(() => ({ ok: true }));
    const one = await daemon();
    await begin(one, one.server, 'c1');
    await begin(one, one.server, 'c2');
    const second = await again(one.socket, one.server, () => {
      one.answers.get('c1')({ sum: 1 });
      one.answers.get('c2')();
    });
    await until(() => results.length === 2);
    assert.deepEqual(results, [{ callId: 'c1', result: { sum: 1 } }, { callId: 'c2', result: null }]);
    const third = await again(one.socket, second);
    await settled(third);
    assert.equal(results.length, 2);
  });

  test('what is finished on a later connection is handed in there', async () => {
    const results = handedIn(() => ({ ok: true }));
    const one = await daemon();
    const acks = await begin(one, one.server, 'c1');
    const second = await again(one.socket, one.server);
    one.answers.get('c1')(1);
    await until(() => results.length === 1);
    await settled(second);
    assert.deepEqual(results, [{ callId: 'c1', result: 1 }]);
    assert.deepEqual(acks, []);
  });

  test('an acknowledgement that was lost on its way is handed in', async () => {
    const results = handedIn(() => UNKNOWN);
    const one = await daemon();
    await begin(one, one.server, 'c1');
    one.answers.get('c1')(1);
    const second = await again(one.socket, one.server);
    await until(() => results.length === 1);
    assert.deepEqual(results, [{ callId: 'c1', result: 1 }]);
    // The server knew better, and that was the last word.
    const third = await again(one.socket, second);
    await settled(third);
    assert.equal(results.length, 1);
  });

  test('an acknowledgement that arrived is forgotten', async () => {
    const results = handedIn(() => UNKNOWN);
    const one = await daemon();
    const asked = [];
    one.server.on('ping', (answer) => (asked.push(1), answer({})));
    await begin(one, one.server, 'c1');
    one.answers.get('c1')(1);
    await until(() => asked.length === 1);
    await settled(one.server);
    const second = await again(one.socket, one.server);
    await settled(second);
    assert.deepEqual(results, []);
  });

  test('on the next connection it says first which requests it has, until it is heard', async () => {
    const said = [];
    const one = await daemon();
    const heard = (isHeard) => io.once('connection', (server) => {
      server.on('rpc-resumed', (body, answer) => (said.push(body), isHeard ? answer({ ok: true }) : server.conn.close()));
      server.on('rpc-result', (body, answer) => (said.push(body), answer({ ok: true })));
    });
    const first = one.socket.id;
    await begin(one, one.server, 'c1');
    await begin(one, one.server, 'c2');
    heard(false);
    const second = await again(one.socket, one.server, () => one.answers.get('c1')(1));
    const secondId = second.id;
    // At once: the next connection may come as soon as this one is closed.
    heard(true);
    const back = accepted();
    const third = await back;
    assert.ok(said.length > 0);
    await settled(third);
    const callIds = ['c2', 'c1'];
    const resumed = said.filter((body) => body.callIds).map(({ socket, ...body }) => ({ socket, ...body }));
    assert.deepEqual(resumed, [
      { socket: first, callIds },
      { socket: first, callIds },
      { socket: secondId, callIds },
    ]);
    assert.equal(said.at(-1).callId, 'c1', 'results come after it');
    heard(true);
    const fourth = await again(one.socket, third);
    await settled(fourth);
    assert.deepEqual(said.filter((body) => body.callIds).slice(3), [{ socket: third.id, callIds: ['c2'] }]);
  });

  test('a server that cannot be reached is asked again', async () => {
    const results = handedIn((n) => (n < 3 ? UNREACHABLE : { ok: true }));
    const one = await daemon({ retryMs: 1 });
    await begin(one, one.server, 'c1');
    const second = await again(one.socket, one.server, () => one.answers.get('c1')(1));
    await until(() => results.length === 3);
    await settled(second);
    assert.deepEqual(results, Array.from({ length: 3 }, () => ({ callId: 'c1', result: 1 })));
  });

  test('a connection that ends before the word is followed by another try', async () => {
    const results = [];
    const one = await daemon();
    await begin(one, one.server, 'c1');
    io.on('connection', (server) => {
      server.on('rpc-result', (body, answer) => (results.push(body), results.length === 1 ? server.conn.close() : answer({ ok: true })));
    });
    await again(one.socket, one.server, () => one.answers.get('c1')(1));
    await until(() => results.length === 2);
  });

  test('the oldest go first when there are too many, or when they are too old', async (t) => {
    const results = handedIn(() => ({ ok: true }));
    const few = await daemon({ keepMax: 2 });
    for (const id of ['c1', 'c2', 'c3']) await begin(few, few.server, id);
    await again(few.socket, few.server, () => ['c1', 'c2', 'c3'].forEach((id) => few.answers.get(id)(id)));
    await until(() => results.length === 2);
    assert.deepEqual(results.map(({ callId }) => callId), ['c2', 'c3']);

    const brief = await daemon({ keepMs: 1_000 });
    for (const id of ['c4', 'c5']) await begin(brief, brief.server, id);
    const second = await again(brief.socket, brief.server, () => {
      const realNow = Date.now();
      const now = t.mock.method(Date, 'now', () => realNow - 1_500);
      brief.answers.get('c4')(1);
      now.mock.restore();
      brief.answers.get('c5')(1);
    });
    await until(() => results.length === 3);
    await settled(second);
    assert.deepEqual(results.map(({ callId }) => callId), ['c2', 'c3', 'c5']);
  });
});
