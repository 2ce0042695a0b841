// Events of one socket are handled in the order sent, from the very first one on.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import { call, closeSockets, collect, connect, connected, daemon, failed, newUser, open, succeeded, TRANSPORTS } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const NOT_AVAILABLE = failed('RPC method not available');
const SAME_SOCKET = failed('Cannot call RPC on the same socket');

/** A small generator, so that a failure can be run again: mulberry32. */
function generator(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

let host;
before(async () => (host = await startHost({ settings: { 'rpc.grace_ms': 0 }, configs: { grace: { grace_ms: 0 } } })));
after(() => host.stop());
afterEach(closeSockets);

for (const transport of TRANSPORTS) {
  describe(`a burst of 1,000 events on one socket over ${transport}`, () => {
    for (const seed of [1, 2, 3]) {
      test(`ends in the state that its order says (seed ${seed})`, async () => {
        const user = newUser();
        const socket = await connect(host, { user, transport });
        socket.on('rpc-request', (request, answer) => answer(request.method));
        const told = collect(socket, 'rpc-registered');
        const untold = collect(socket, 'rpc-unregistered');
        const draw = generator(seed);
        const registered = new Set();
        const model = { registered: [], unregistered: [] };
        const answers = [];
        const expected = [];

        for (let i = 0; i < 1_000; i += 1) {
          const method = `m${draw(5)}`;
          switch (draw(3)) {
            case 0:
              socket.emit('rpc-register', { method });
              registered.add(method);
              model.registered.push(method);
              break;
            case 1:
              socket.emit('rpc-unregister', { method });
              registered.delete(method);
              model.unregistered.push(method);
              break;
            default:
              answers.push(socket.emitWithAck('rpc-call', { method, params: i }));
              expected.push(registered.has(method) ? SAME_SOCKET : NOT_AVAILABLE);
          }
        }
        assert.deepEqual(await within(Promise.all(answers)), expected);
        await within(socket.emitWithAck('ping'));
        await until(() => told.length + untold.length === model.registered.length + model.unregistered.length);
        assert.deepEqual(told.map(([{ method }]) => method), model.registered);
        assert.deepEqual(untold.map(([{ method }]) => method), model.unregistered);

        const caller = await connect(host, { user, transport });
        for (let m = 0; m < 5; m += 1) {
          const method = `m${m}`;
          const expected = registered.has(method) ? succeeded(method) : NOT_AVAILABLE;
          assert.deepEqual(await call(caller, method, 0), expected, method);
        }
      });
    }
  });
}

describe('what a client sends in the tick of its connect', () => {
  for (const [transport, clients, batch] of [
    ['websocket', 1_000, 100],
    ['polling', 100, 25],
  ]) {
    test(`is never lost: ${clients} clients over ${transport}, under load`, async () => {
      const busy = newUser('busy');
      await daemon(host, { user: busy, methods: ['m'], handler: ({ params }) => params });
      let loading = true;
      const load = Array.from({ length: 16 }, async (_, who) => {
        const caller = await connect(host, { user: busy });
        for (let i = 0; loading; i += 1) assert.deepEqual(await call(caller, 'm', [who, i]), succeeded([who, i]));
      });

      const users = Array.from({ length: 20 }, () => newUser());
      const userOf = (index) => users[index % users.length];
      for (let first = 0; first < clients; first += batch) {
        const sockets = Array.from({ length: batch }, (_, i) => {
          const index = first + i;
          const socket = open(host, { user: userOf(index), transport });
          socket.on('rpc-request', (request, answer) => answer(index));
          socket.on('connect', () => socket.emit('rpc-register', { method: `m${index}` }));
          return socket;
        });
        await Promise.all(sockets.map(connected));
      }

      const callers = await Promise.all(users.map((user) => connect(host, { user })));
      for (let index = 0; index < clients; index += 1) {
        const caller = callers[index % users.length];
        // Registered in the tick of the connect, which may reach the host after this call: one that is lost is never there.
        const answered = async () => {
          const answer = await call(caller, `m${index}`, 0);
          assert.ok(answer.ok || answer.error === NOT_AVAILABLE.error, JSON.stringify(answer));
          return answer.ok && answer;
        };
        assert.deepEqual(await until(answered, 5_000, `client ${index}`), succeeded(index));
      }
      loading = false;
      await Promise.all(load);
    });
  }
});
