// POST /v1/emit: the application's backend reaches exactly the rooms that it names.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import { closeSockets, collect, connect, newUser, TRANSPORTS } from '../support/sockets.mjs';
import { until } from '../support/waiting.mjs';

let host;
before(async () => (host = await startHost()));
after(() => host.stop());
afterEach(closeSockets);

for (const transport of TRANSPORTS) {
  describe(`broadcasts over ${transport}`, () => {
    /** A user with a socket of each kind, and somebody else. */
    async function crowd() {
      const user = newUser();
      const as = (who, auth) => connect(host, { user: who, transport, auth });
      const sockets = {
        app: await as(user),
        session: await as(user, { clientType: 'session-scoped', sessionId: 's' }),
        otherSession: await as(user, { clientType: 'session-scoped', sessionId: 's:2' }),
        machine: await as(user, { clientType: 'machine-scoped', machineId: 'm' }),
        stranger: await as(newUser('stranger')),
        // Would share the user's rooms if ids could forge names.
        forger: await as(`${user}:user-scoped`),
      };
      return { user, sockets, names: Object.keys(sockets) };
    }

    /** Emits, and gives the names of those whom it reached: a second event, to everybody, ends the wait. */
    async function reached({ user, sockets, names }, request) {
      const updates = names.map((name) => collect(sockets[name], 'update'));
      const fences = names.map((name) => collect(sockets[name], 'fence'));
      await host.emit({ event: 'update', args: [{ id: 1 }], ...request });
      const stranger = sockets.stranger.auth.token.split('.')[1];
      const { sub } = JSON.parse(Buffer.from(stranger, 'base64url'));
      await host.emit({ rooms: [`user:${user}`, `user:${sub}`, `user:${user}%3Auser-scoped`], event: 'fence' });
      await until(() => fences.every((fence) => fence.length === 1), 20_000, 'the fence everywhere');
      for (const list of updates) assert.ok(list.length <= 1, 'nobody gets it twice');
      return names.filter((_, i) => updates[i].length === 1);
    }

    const cases = [
      ['all of a user', (u) => [`user:${u}`], ['app', 'session', 'otherSession', 'machine']],
      ['the apps', (u) => [`user:${u}:user-scoped`], ['app']],
      ['a session', (u) => [`user:${u}:session:s`], ['session']],
      ['a session whose id has a colon', (u) => [`user:${u}:session:s:2`], ['otherSession']],
      ['all interested in a session', (u) => [`user:${u}:session:s`, `user:${u}:user-scoped`], ['app', 'session']],
      ['a machine and the apps', (u) => [`user:${u}:machine:m`, `user:${u}:user-scoped`], ['app', 'machine']],
      ['a room and a part of it', (u) => [`user:${u}`, `user:${u}:machine:m`], ['app', 'session', 'otherSession', 'machine']],
      ['an empty room', (u) => [`user:${u}:session:none`], []],
    ];
    for (const [what, rooms, expected] of cases) {
      test(`${what}`, async () => {
        const people = await crowd();
        assert.deepEqual(await reached(people, { rooms: rooms(people.user) }), expected);
      });
    }

    test('all of a user, except some', async () => {
      const people = await crowd();
      const request = { rooms: [`user:${people.user}`], except: [`user:${people.user}:user-scoped`, `user:${people.user}:machine:m`] };
      assert.deepEqual(await reached(people, request), ['session', 'otherSession']);
    });

    test('the arguments arrive as they were sent, and several in order', async () => {
      const user = newUser();
      const socket = await connect(host, { user, transport });
      const updates = collect(socket, 'update');
      const args = [{ id: 'x', seq: 7, body: { t: 'new-message', list: [1.5, null, true, 'ü'] }, createdAt: 1 }, 'second', null];
      for (let i = 0; i < 50; i += 1) await host.emit({ namespace: '/', rooms: [`user:${user}`], event: 'update', args: [i, ...args] });
      await until(() => updates.length === 50, 20_000, 'all updates');
      updates.forEach((update, i) => assert.deepEqual(update, [i, ...args]));
    });
  });
}

describe('a request that cannot be carried out', () => {
  const good = { rooms: ['user:x'], event: 'update', args: [] };
  const bad = {
    'no JSON': '{',
    'no object': '[]',
    'no rooms': { event: 'update' },
    'an empty list of rooms': { ...good, rooms: [] },
    'rooms that are no list': { ...good, rooms: 'user:x' },
    'a room that is no text': { ...good, rooms: [7] },
    'no event': { rooms: ['user:x'] },
    'an event that is no text': { ...good, event: 7 },
    'an event that is kept for the protocol': { ...good, event: 'disconnect' },
    'arguments that are no list': { ...good, args: {} },
    'a field that does not exist': { ...good, room: 'user:x' },
  };
  for (const [what, request] of Object.entries(bad)) {
    test(`${what} is told with a 400`, async () => {
      const { status, body } = await host.request('/v1/emit', request);
      assert.equal(status, 400, JSON.stringify(body));
      assert.equal(typeof body.error, 'string');
      assert.notEqual(body.error, '');
    });
  }

  test('a namespace that does not exist is told', async () => {
    const { status, body } = await host.request('/v1/emit', { ...good, namespace: '/nowhere' });
    assert.ok(status === 400 || status === 404, `${status}`);
    assert.match(body.error, /\/nowhere/);
  });

  test('a good one is taken', async () => {
    await host.emit(good);
  });
});
