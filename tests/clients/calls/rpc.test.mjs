// rpc-register, rpc-unregister and rpc-call, every branch and every error.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import {
  call,
  closeSockets,
  collect,
  connect,
  connected,
  daemon,
  failed,
  newUser,
  next,
  register,
  succeeded,
  TRANSPORTS,
  unregister,
} from '../support/sockets.mjs';
import { PATIENCE_MS, until, within } from '../support/waiting.mjs';

const NOT_AVAILABLE = failed('RPC method not available');
const SAME_SOCKET = failed('Cannot call RPC on the same socket');
const METHOD_REQUIRED = failed('Invalid parameters: method is required');
const DISCONNECTED = failed('RPC target disconnected');
const TIMED_OUT = failed('operation has timed out');

/** Far less than the 30 s of a call, far more than anything prompt takes on a busy machine. */
const PROMPT_MS = 10_000;

afterEach(closeSockets);

for (const transport of TRANSPORTS) {
  describe(`calls over ${transport}, with no grace`, () => {
    let host;
    before(async () => (host = await startHost({ settings: { 'rpc.grace_ms': 0 }, configs: { grace: { grace_ms: 0 } } })));
    after(() => host.stop());

    test('a call is answered by the daemon that registered its method', async () => {
      const user = newUser();
      await daemon(host, { user, transport, methods: ['m:add'], handler: ({ method, params }) => ({ method, sum: params.a + params.b }) });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm:add', { a: 2, b: 3 }), succeeded({ method: 'm:add', sum: 5 }));
    });

    test('registering and taking back are confirmed with the method', async () => {
      const socket = await connect(host, { user: newUser(), transport });
      for (const event of ['register', 'unregister']) {
        const confirmed = next(socket, `rpc-${event}ed`);
        socket.emit(`rpc-${event}`, { method: 'm' });
        assert.deepEqual(await confirmed, [{ method: 'm' }]);
      }
    });

    test('what is no method is refused', async () => {
      const socket = await connect(host, { user: newUser(), transport });
      for (const type of ['register', 'unregister']) {
        for (const payload of [null, 7, 'm', [], ['m'], {}, { method: null }, { method: 7 }, { method: {} }, { method: '' }]) {
          const refused = next(socket, 'rpc-error');
          socket.emit(`rpc-${type}`, payload);
          assert.deepEqual(await refused, [{ type, error: 'Invalid method name' }], JSON.stringify(payload));
        }
        const refused = next(socket, 'rpc-error');
        socket.emit(`rpc-${type}`);
        assert.deepEqual(await refused, [{ type, error: 'Invalid method name' }], 'no payload');
      }
    });

    test('a call without a method is refused', async () => {
      const caller = await connect(host, { user: newUser(), transport });
      for (const payload of [null, 7, 'm', [], ['m'], {}, { method: null }, { method: 7 }, { method: [] }, { method: '' }, { params: 1 }]) {
        const answer = await within(caller.emitWithAck('rpc-call', payload));
        assert.deepEqual(answer, METHOD_REQUIRED, JSON.stringify(payload));
      }
      assert.deepEqual(await within(caller.emitWithAck('rpc-call')), METHOD_REQUIRED);
    });

    test('a method that nobody has, that was taken back, or whose daemon left is not available', async () => {
      const user = newUser();
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'nobody', 1), NOT_AVAILABLE);
      const one = await daemon(host, { user, transport, methods: ['m', 'n'], handler: () => 'one' });
      assert.deepEqual(await call(caller, 'm', 1), succeeded('one'));
      await unregister(one, 'm');
      assert.deepEqual(await call(caller, 'm', 1), NOT_AVAILABLE);
      assert.deepEqual(await call(caller, 'n', 1), succeeded('one'));
      one.disconnect();
      const gone = async () => (await call(caller, 'n', 1)).ok === false;
      await until(gone, PROMPT_MS, 'the end of the daemon');
      assert.deepEqual(await call(caller, 'n', 1), NOT_AVAILABLE);
    });

    test('a socket cannot call itself', async () => {
      const socket = await daemon(host, { user: newUser(), transport, methods: ['m'], handler: () => 1 });
      assert.deepEqual(await call(socket, 'm', 1), SAME_SOCKET);
    });

    test('a caller without an ack gets no answer, the daemon its request', async () => {
      const user = newUser();
      const seen = [];
      await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => (seen.push(params), true) });
      const caller = await connect(host, { user, transport });
      caller.emit('rpc-call', { method: 'm', params: 1 });
      caller.emit('rpc-call', { method: 'nobody', params: 2 });
      caller.emit('rpc-call', null);
      caller.emit('rpc-call');
      assert.deepEqual(await call(caller, 'm', 3), succeeded(true));
      await until(() => seen.length === 2, PATIENCE_MS, () => `both requests; there are ${JSON.stringify(seen)}`);
      assert.deepEqual(seen, [1, 3]);
    });

    test('a daemon that answers twice is heard once', async () => {
      const user = newUser();
      const twice = await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => params });
      // The library answers once at most: below it, a packet of type ACK is sent for each answer.
      const send = (id, data) => twice.packet({ type: 3, id, data: [data] });
      twice.ack = (id) => (data) => [data, 'again'].forEach((answer) => send(id, answer));
      const caller = await connect(host, { user, transport });
      for (let i = 0; i < 20; i += 1) assert.deepEqual(await call(caller, 'm', i), succeeded(i));
    });

    test('a daemon that acknowledges nothing at all, or what was never asked, harms nobody', async () => {
      const user = newUser();
      const odd = await daemon(host, { user, transport, methods: ['m'], handler: () => true });
      for (const id of [0, 999_999, 2 ** 40]) odd.packet({ type: 3, id, data: ['unasked'] });
      odd.ack = (id) => () => odd.packet({ type: 3, id, data: [] });
      const caller = await connect(host, { user, transport });
      const answer = await call(caller, 'm', 1);
      assert.equal(answer.ok, true);
      assert.equal(answer.result ?? null, null);
    });

    test('a daemon that disconnects in flight fails the call promptly', async () => {
      const user = newUser();
      for (const leave of [(socket) => socket.disconnect(), (socket) => socket.io.engine.close()]) {
        const leaving = await daemon(host, { user, transport, methods: ['m'], handler: () => void leave(leaving) });
        const caller = await connect(host, { user, transport });
        assert.deepEqual(await call(caller, 'm', 1, PROMPT_MS), DISCONNECTED);
      }
    });

    test('a daemon that takes its method back in flight may still answer, and is asked nothing more', async () => {
      const user = newUser();
      let answer;
      const one = await daemon(host, { user, transport, methods: ['m'], handler: () => new Promise((resolve) => (answer = resolve)) });
      const caller = await connect(host, { user, transport });
      const pending = call(caller, 'm', 1);
      await until(() => answer, PATIENCE_MS, 'the request');
      await unregister(one, 'm');
      answer('late');
      const outcome = await pending;
      // The policy of the presence slot says whether the call is kept; what it never does is hang.
      assert.ok(outcome.ok ? outcome.result === 'late' : outcome.error === DISCONNECTED.error, JSON.stringify(outcome));
      assert.deepEqual(await call(caller, 'm', 1), NOT_AVAILABLE);
    });

    test('callers that leave in flight take nothing with them', async () => {
      const user = newUser();
      const pending = [];
      await daemon(host, {
        user,
        transport,
        methods: ['slow', 'quick'],
        handler: ({ method }) => (method === 'quick' ? 'quick' : new Promise((resolve) => pending.push(resolve))),
      });
      const leaving = await Promise.all(Array.from({ length: 5 }, () => connect(host, { user, transport })));
      for (const socket of leaving) socket.emit('rpc-call', { method: 'slow', params: 1 }, () => {});
      await until(() => pending.length === leaving.length, PATIENCE_MS, 'the requests');
      for (const socket of leaving) socket.disconnect();
      for (const resolve of pending) resolve('nobody is there any more');
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'quick', 1), succeeded('quick'));
    });

    test('several sockets on one method: the first that registered answers', async () => {
      const user = newUser();
      const first = await daemon(host, { user, transport, methods: ['m'], handler: () => 'first' });
      await daemon(host, { user, transport, methods: ['m'], handler: () => 'second' });
      const caller = await connect(host, { user, transport });
      for (let i = 0; i < 5; i += 1) assert.deepEqual(await call(caller, 'm', i), succeeded('first'));
      await unregister(first, 'm');
      assert.deepEqual(await call(caller, 'm', 1), succeeded('second'));
      await register(first, 'm');
      assert.deepEqual(await call(caller, 'm', 1), succeeded('second'), 'it has to queue again');
    });

    test('registering twice is registering once', async () => {
      const user = newUser();
      const one = await daemon(host, { user, transport, methods: ['m', 'm'], handler: () => 'one' });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm', 1), succeeded('one'));
      await unregister(one, 'm');
      assert.deepEqual(await call(caller, 'm', 1), NOT_AVAILABLE);
    });

    test('a method of 1 KB and parameters and a result of 90 KB', async () => {
      const user = newUser();
      const method = 'ü'.repeat(512);
      const params = { text: 'x'.repeat(90 * 1024), list: [1, 'two', null, { three: 3.5 }] };
      await daemon(host, { user, transport, methods: [method], handler: (request) => request });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, method, params), succeeded({ method, params }));
    });

    test('binary goes through both ways, wherever it is nested', async () => {
      const user = newUser();
      await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => ({ echoed: params, own: Buffer.from([0, 255]) }) });
      const caller = await connect(host, { user, transport });
      const large = randomBytes(90 * 1024);
      for (const params of [Buffer.from('plain'), Buffer.alloc(0), { a: [Buffer.from('x'), { b: large }], c: 1, d: null }, [[large, large.subarray(7)]]]) {
        const { ok, result } = await call(caller, 'm', params);
        assert.equal(ok, true);
        assert.deepEqual(result, { echoed: params, own: Buffer.from([0, 255]) });
      }
    });

    test('more attachments than a client takes are refused, whichever way they go', async () => {
      const user = newUser();
      const buffers = (count) => Array.from({ length: count }, () => Buffer.from('x'));
      await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => buffers(params.length ?? params) });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm', buffers(10)), succeeded(buffers(10)));
      assert.deepEqual(await call(caller, 'm', buffers(11)), failed('Invalid parameters: more than 10 binary attachments'));
      assert.deepEqual(await call(caller, 'm', 11), failed('Internal error'));
      assert.deepEqual(await call(caller, 'm', 1), succeeded(buffers(1)));
    });

    test('any JSON goes through unchanged', async () => {
      const user = newUser();
      await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => [params] });
      const caller = await connect(host, { user, transport });
      for (const params of [0, -1, 1.5, 1e300, 2 ** 53 - 1, -(2 ** 53) + 1, true, false, null, '', '\u0000\u2028😀', [], {}, { '': { ':': [] } }]) {
        assert.deepEqual(await call(caller, 'm', params), succeeded([params]), JSON.stringify(params));
      }
    });

    test('a request without parameters has none', async () => {
      const user = newUser();
      await daemon(host, { user, transport, methods: ['m'], handler: (request) => Object.keys(request) });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await within(caller.emitWithAck('rpc-call', { method: 'm' })), succeeded(['method']));
    });

    test('users whose ids and methods would run together are apart', async () => {
      const user = newUser('a');
      const pairs = [
        [user, 'b:c'],
        [`${user}:b`, 'c'],
        [`${user}%3Ab`, 'c'],
        [`${user}:b:c`, ':'],
      ];
      for (const [owner, method] of pairs) {
        await daemon(host, { user: owner, transport, methods: [method], handler: () => owner });
      }
      for (const [owner, method] of pairs) {
        const caller = await connect(host, { user: owner, transport });
        for (const [, other] of pairs) {
          const mine = pairs.some(([who, what]) => who === owner && what === other);
          const expected = mine ? succeeded(owner) : NOT_AVAILABLE;
          assert.deepEqual(await call(caller, other, 1), expected, `${owner} calls ${other}, has ${method}`);
        }
      }
    });

    test('payloads that nest without measure, and forged attachments, harm nobody', async () => {
      const user = newUser();
      await daemon(host, { user, transport, methods: ['m'], handler: () => 'alive' });
      let nested = [];
      for (let depth = 0; depth < 2_000; depth += 1) nested = [nested];
      const payloads = [
        { method: 'm', params: nested },
        { method: nested },
        nested,
        { method: 'm', params: { _placeholder: true, num: 99 } },
        { method: 'm', params: [Buffer.from('real'), { _placeholder: true, num: 99 }] },
        { method: 'm', params: { _placeholder: true, num: -1 } },
      ];
      for (const payload of payloads) {
        const caller = await connect(host, { user, transport });
        // Refused, passed on, or the connection closed: anything but silence.
        const answered = caller.emitWithAck('rpc-call', payload).then((answer) => typeof answer.ok === 'boolean');
        answered.catch(() => {});
        const closed = next(caller, 'disconnect').then(() => true);
        closed.catch(() => {});
        assert.equal(await within(Promise.race([answered, closed])), true);
      }
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm', 1), succeeded('alive'));
    });

    test('events that mean nothing here are ignored', async () => {
      const caller = await connect(host, { user: newUser(), transport });
      caller.emit('no-such-event', { a: 1 }, Buffer.from('x'));
      caller.emit('');
      caller.emit('session-alive', null);
      caller.emit('machine-alive', 7);
      caller.emit('session-end');
      assert.deepEqual(await within(caller.emitWithAck('ping')), {});
    });
  });

  describe(`a daemon that is away, over ${transport}`, () => {
    let host;
    const grace_ms = 5_000;
    before(async () => (host = await startHost({ settings: { 'rpc.grace_ms': grace_ms }, configs: { grace: { grace_ms } } })));
    after(() => host.stop());

    test('and comes back within the grace answers the call that waited', async () => {
      const user = newUser();
      const one = await daemon(host, { user, transport, methods: ['m'], handler: () => 'back' });
      const caller = await connect(host, { user, transport });
      one.disconnect();
      const pending = Array.from({ length: 10 }, () => call(caller, 'm', 1));
      // The calls are on their way once the events after them on the same socket are answered.
      assert.deepEqual(await within(caller.emitWithAck('ping')), {});
      one.connect();
      await connected(one);
      await register(one, 'm');
      for (const answer of await Promise.all(pending)) {
        // The daemon's leave may reach the host after a call did: that call had been sent to it.
        assert.ok(answer.ok || answer.error === DISCONNECTED.error, JSON.stringify(answer));
      }
      assert.deepEqual(await call(caller, 'm', 1), succeeded('back'));
    });

    test('a call waits for a method that is registered for the first time, too', async () => {
      const user = newUser();
      const caller = await connect(host, { user, transport });
      const pending = call(caller, 'm', 1);
      assert.deepEqual(await within(caller.emitWithAck('ping')), {});
      await daemon(host, { user, transport, methods: ['m'], handler: () => 'new' });
      assert.deepEqual(await pending, succeeded('new'));
    });

    test('the socket that waits cannot be its own answer', async () => {
      const caller = await connect(host, { user: newUser(), transport });
      const pending = call(caller, 'm', 1);
      caller.emit('rpc-register', { method: 'm' });
      assert.deepEqual(await pending, SAME_SOCKET);
    });
  });

  describe(`calls with short spans over ${transport}`, () => {
    let host;
    const settings = { 'rpc.grace_ms': 300, 'rpc.call_timeout_ms': 1_000, 'rpc.asked_timeout_max_ms': 1_500 };
    const config = '[[rpc.method]]\nmatch = "slow:*"\ntimeout_ms = 3600000\n';
    before(async () => (host = await startHost({ settings, config, configs: { grace: { grace_ms: 300 } } })));
    after(() => host.stop());

    test('a daemon that never answers runs into the timeout, and the next call does not', async () => {
      const user = newUser();
      await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => params ?? undefined });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm', null), TIMED_OUT);
      assert.deepEqual(await call(caller, 'm', 1), succeeded(1));
    });

    test('a method has a time of its own, and a caller may ask for another', async () => {
      const user = newUser();
      const requests = [];
      const handler = ({ method }) => new Promise((resolve) => requests.push(() => resolve(method)));
      await daemon(host, { user, transport, methods: ['slow:build', 'm'], handler });
      const caller = await connect(host, { user, transport });
      const ask = (request) => within(caller.emitWithAck('rpc-call', request), PATIENCE_MS, 'the answer');
      // In the order in which they end: each is cut to its own time, the patient one by nothing but its daemon.
      const ends = [];
      const patient = ask({ method: 'slow:build' }).then((answer) => (ends.push('patient'), answer));
      const others = { greedy: { method: 'm', timeoutMs: 1e300 }, plain: { method: 'm' }, hasty: { method: 'slow:x', timeoutMs: 0.5 } };
      await register(caller, 'slow:x');
      const hasty = connect(host, { user, transport }).then(async (other) => {
        const answer = await within(other.emitWithAck('rpc-call', others.hasty), PATIENCE_MS, 'the answer');
        assert.deepEqual(answer, TIMED_OUT);
      });
      await hasty;
      const timed = ['greedy', 'plain'].map(async (name) => {
        assert.deepEqual(await ask(others[name]), TIMED_OUT);
        ends.push(name);
      });
      await Promise.all(timed);
      requests.forEach((answer) => answer());
      assert.deepEqual(await patient, succeeded('slow:build'));
      assert.deepEqual(ends, ['plain', 'greedy', 'patient']);
    });

    test('a time that is none is refused', async () => {
      const caller = await connect(host, { user: newUser(), transport });
      for (const timeoutMs of [0, -1, '5', {}, true]) {
        const answer = await within(caller.emitWithAck('rpc-call', { method: 'm', timeoutMs }), PATIENCE_MS, 'the answer');
        assert.deepEqual(answer, failed('Invalid parameters: timeoutMs must be a positive number'));
      }
    });

    test('an answer after the timeout is nobody’s', async () => {
      const user = newUser();
      const answers = [];
      await daemon(host, {
        user,
        transport,
        methods: ['m'],
        handler: ({ params }) => (params === 'late' ? new Promise((resolve) => answers.push(resolve)) : params),
      });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm', 'late'), TIMED_OUT);
      answers.forEach((answer) => answer('too late'));
      assert.deepEqual(await call(caller, 'm', 'next'), succeeded('next'));
    });

    test('a daemon that stays away longer than the grace is not available', async () => {
      const user = newUser();
      const one = await daemon(host, { user, transport, methods: ['m'], handler: () => 'there' });
      const caller = await connect(host, { user, transport });
      assert.deepEqual(await call(caller, 'm', 1), succeeded('there'));
      one.disconnect();
      await until(async () => (await call(caller, 'm', 1)).ok === false, PROMPT_MS, 'the end of the daemon');
      assert.deepEqual(await call(caller, 'm', 1), NOT_AVAILABLE);
    });
  });
}

test('sockets of one user over both transports reach each other', async () => {
  const host = await startHost();
  try {
    const user = newUser();
    await daemon(host, { user, transport: 'polling', methods: ['p'], handler: () => 'polling' });
    await daemon(host, { user, transport: 'websocket', methods: ['w'], handler: () => 'websocket' });
    for (const transport of TRANSPORTS) {
      const caller = await connect(host, { user, transport });
      const unasked = collect(caller, 'rpc-request');
      assert.deepEqual(await call(caller, 'p', Buffer.from('x')), succeeded('polling'));
      assert.deepEqual(await call(caller, 'w', Buffer.from('x')), succeeded('websocket'));
      assert.deepEqual(unasked, []);
    }
    // The way most clients come: polling first, then the upgrade.
    const caller = await connect(host, { user, transports: ['polling', 'websocket'] });
    await until(() => caller.io.engine.transport.name === 'websocket', PATIENCE_MS, 'the upgrade');
    assert.deepEqual(await call(caller, 'p', 1), succeeded('polling'));
  } finally {
    closeSockets();
    await host.stop();
  }
});
