// Signs of life of sessions and machines reach the user's apps, and nobody else.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import { closeSockets, collect, connect, newUser, TRANSPORTS } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const TEN_MINUTES_MS = 600_000;

let host;
before(async () => (host = await startHost()));
after(() => host.stop());
afterEach(closeSockets);

for (const transport of TRANSPORTS) {
  describe(`activity over ${transport}`, () => {
    const session = (user, sessionId) => connect(host, { user, transport, auth: { clientType: 'session-scoped', sessionId } });
    const machine = (user, machineId) => connect(host, { user, transport, auth: { clientType: 'machine-scoped', machineId } });
    const app = (user) => connect(host, { user, transport });

    /** What `watcher` was told, once the sign of life that `sender` sends last has come. */
    async function told(watcher, events, sender) {
      sender.emit('session-alive', { sid: 'fence', time: Date.now(), mode: 'local' });
      await until(() => events.some(([event]) => event.id === 'fence'), 20_000, () => `the fence in ${JSON.stringify(events)}`);
      return events.map(([event]) => event).filter((event) => event.id !== 'fence');
    }

    test('ping is acknowledged with an empty object', async () => {
      const socket = await app(newUser());
      assert.deepEqual(await within(socket.emitWithAck('ping')), {});
      socket.emit('ping'); // without an ack there is nobody to tell
      assert.deepEqual(await within(socket.emitWithAck('ping')), {});
    });

    test('session-alive, session-end and machine-alive become ephemerals', async () => {
      const user = newUser();
      const watcher = await app(user);
      const sender = await session(user, 's1');
      const events = collect(watcher, 'ephemeral');
      const time = Date.now();
      sender.emit('session-alive', { sid: 's1', time, thinking: true, mode: 'remote' });
      sender.emit('session-alive', { sid: 's1', time, mode: 'local' });
      sender.emit('session-end', { sid: 's1', time });
      sender.emit('machine-alive', { machineId: 'm1', time });
      assert.deepEqual(await told(watcher, events, sender), [
        { type: 'activity', id: 's1', active: true, activeAt: time, thinking: true },
        { type: 'activity', id: 's1', active: true, activeAt: time, thinking: false },
        { type: 'activity', id: 's1', active: false, activeAt: time, thinking: false },
        { type: 'machine-activity', id: 'm1', active: true, activeAt: time },
      ]);
    });

    test('alive and end of one session arrive in the order sent', async () => {
      const user = newUser();
      const watcher = await app(user);
      const sender = await session(user, 's1');
      const events = collect(watcher, 'ephemeral');
      const time = Date.now();
      const expected = [];
      for (let i = 0; i < 100; i += 1) {
        sender.emit(i % 2 ? 'session-end' : 'session-alive', { sid: `s${i}`, time, mode: 'local' });
        expected.push([`s${i}`, i % 2 === 0]);
      }
      const seen = await told(watcher, events, sender);
      assert.deepEqual(seen.map(({ id, active }) => [id, active]), expected);
    });

    test('only the apps of the same user are told', async () => {
      const [user, other] = [newUser(), newUser()];
      const watchers = [await app(user), await app(user)];
      const bystanders = [await app(other), await session(user, 's1'), await machine(user, 'm1'), await app(`${user}:user-scoped`)];
      const sender = await session(user, 's1');
      const events = watchers.map((socket) => collect(socket, 'ephemeral'));
      const unwanted = [...bystanders, sender].map((socket) => collect(socket, 'ephemeral'));
      sender.emit('session-alive', { sid: 's1', time: Date.now(), mode: 'local' });
      for (const [i, watcher] of watchers.entries()) {
        const alive = (await told(watcher, events[i], sender)).filter(({ type }) => type === 'activity');
        assert.deepEqual(alive.map(({ id }) => id), ['s1']);
      }
      // What comes to everybody, and last.
      const fences = [...bystanders, sender].map((socket) => collect(socket, 'fence'));
      await host.emit({ rooms: [`user:${user}`, `user:${other}`, `user:${user}%3Auser-scoped`], event: 'fence' });
      await until(() => fences.every((fence) => fence.length === 1), 20_000, 'the fence everywhere');
      assert.deepEqual(unwanted.map((list) => list.length), unwanted.map(() => 0));
    });

    test('a time ahead is cut to now, one older than ten minutes ignored', async () => {
      const user = newUser();
      const watcher = await app(user);
      const sender = await session(user, 's1');
      const events = collect(watcher, 'ephemeral');
      const before = Date.now();
      sender.emit('session-alive', { sid: 'ahead', time: before + TEN_MINUTES_MS, mode: 'local' });
      sender.emit('session-alive', { sid: 'old', time: before - TEN_MINUTES_MS - 1_000, mode: 'local' });
      sender.emit('session-end', { sid: 'old', time: 0 });
      sender.emit('machine-alive', { machineId: 'old', time: before - TEN_MINUTES_MS - 1_000 });
      sender.emit('session-alive', { sid: 'recent', time: before - TEN_MINUTES_MS + 60_000, mode: 'local' });
      const seen = await told(watcher, events, sender);
      assert.deepEqual(seen.map(({ id }) => id), ['ahead', 'recent']);
      assert.ok(seen[0].activeAt >= before && seen[0].activeAt <= Date.now(), JSON.stringify(seen[0]));
      assert.equal(seen[1].activeAt, before - TEN_MINUTES_MS + 60_000);
    });

    test('what makes no sense is ignored', async () => {
      const user = newUser();
      const watcher = await app(user);
      const sender = await session(user, 's1');
      const events = collect(watcher, 'ephemeral');
      const time = Date.now();
      for (const body of [null, 7, 's1', [], {}, { sid: 's1' }, { time }, { sid: 7, time }, { sid: 's1', time: 'now' }, { sid: '', time }]) {
        sender.emit('session-alive', body);
        sender.emit('session-end', body);
        sender.emit('machine-alive', body);
      }
      assert.deepEqual(await told(watcher, events, sender), []);
    });

    test('a machine that connects and disconnects is told', async () => {
      const user = newUser();
      const watcher = await app(user);
      const events = collect(watcher, 'ephemeral');
      const before = Date.now();
      const one = await machine(user, 'm1');
      await until(() => events.length === 1, 20_000, 'machine-activity true');
      one.disconnect();
      await until(() => events.length === 2, 20_000, 'machine-activity false');
      const [[came], [went]] = events;
      assert.deepEqual(came, { type: 'machine-activity', id: 'm1', active: true, activeAt: came.activeAt });
      const { activeAt, lastSeenAt } = went;
      assert.deepEqual(went, { type: 'machine-activity', id: 'm1', active: false, activeAt, lastSeenAt, reason: 'closed' });
      const moments = [before, came.activeAt, lastSeenAt, activeAt, Date.now()];
      assert.deepEqual(moments, moments.toSorted((one, other) => one - other), 'it was seen last between its coming and its going');
    });
  });
}
