// The end of a session is final for all signs of life before it, on every replica; and what is said of a machine that leaves.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { startCluster, stopCluster } from '../fleet/cluster.mjs';
import { closeSockets, collect, connect, newUser } from '../support/sockets.mjs';
import { until } from '../support/waiting.mjs';

let fleet;
let replicas;
before(async () => {
  fleet = await startCluster(2);
  ({ replicas } = fleet);
});
after(() => stopCluster(fleet));
afterEach(closeSockets);

const session = (place, user, sessionId) => connect(place, { user, auth: { clientType: 'session-scoped', sessionId } });
const machine = (place, user, machineId) => connect(place, { user, auth: { clientType: 'machine-scoped', machineId } });

describe('session-end', () => {
  const DEPARTED_MS = 60_000;

  /** A user with an app and a sender on each replica. */
  async function user() {
    const user = newUser();
    const apps = await Promise.all(replicas.map((replica) => connect(replica, { user })));
    const senders = await Promise.all(replicas.map((replica) => session(replica, user, 's')));
    return { user, senders, told: apps.map((app) => collect(app, 'ephemeral')) };
  }

  /** Ends the session and waits until every app knows. */
  async function end({ told }, sender, sid, time) {
    const isEnd = ([{ id, active, activeAt }]) => id === sid && !active && activeAt === time;
    sender.emit('session-end', { sid, time });
    await until(() => told.every((list) => list.some(isEnd)), undefined, 'the end of the session');
  }

  /** What the apps are told of a session from now on, up to a sign of life of another that each of these senders sends last. */
  async function toldOf({ told, senders }, sid, act) {
    const from = told.map((list) => list.length);
    act();
    const fence = `fence-${(fences += 1)}`;
    senders.forEach((sender, i) => sender.emit('session-alive', { sid: `${fence}-${i}`, time: Date.now(), mode: 'local' }));
    const all = (list) => senders.every((_, i) => list.some(([{ id }]) => id === `${fence}-${i}`));
    await until(() => told.every(all), undefined, 'the fence');
    return told.map((list, i) => list.slice(from[i]).flatMap(([{ id, active, activeAt }]) => (id === sid ? [{ active, activeAt }] : [])));
  }
  let fences = 0;

  test('an older sign of life, or one of the same time, is ignored on every replica', async () => {
    const people = await user();
    const time = Date.now() - DEPARTED_MS;
    await end(people, people.senders[0], 's', time);
    const told = await toldOf(people, 's', () => {
      for (const sender of people.senders) {
        for (const before of [0, 1, 1_000]) sender.emit('session-alive', { sid: 's', time: time - before, mode: 'local' });
      }
    });
    assert.deepEqual(told, [[], []]);
  });

  test('a newer one is told, and the next end fences it', async () => {
    const people = await user();
    const time = Date.now() - DEPARTED_MS;
    await end(people, people.senders[0], 's', time);
    const alive = (at) => () => people.senders[1].emit('session-alive', { sid: 's', time: at, mode: 'local' });
    const newer = [{ active: true, activeAt: time + 1 }];
    assert.deepEqual(await toldOf(people, 's', alive(time + 1)), [newer, newer]);
    await end(people, people.senders[1], 's', time + 10);
    assert.deepEqual(await toldOf(people, 's', alive(time + 5)), [[], []]);
    // An end of before the last one takes nothing back.
    await end(people, people.senders[0], 's', time + 2);
    assert.deepEqual(await toldOf(people, 's', alive(time + 5)), [[], []]);
    const latest = [{ active: true, activeAt: time + 11 }];
    assert.deepEqual(await toldOf(people, 's', alive(time + 11)), [latest, latest]);
  });

  test('other sessions, and other users’ of the same name, are untouched', async () => {
    const [people, others] = [await user(), await user()];
    const time = Date.now() - DEPARTED_MS;
    await end(people, people.senders[0], 's', time);
    const alive = [{ active: true, activeAt: time - 1 }];
    const sent = (sender, sid) => () => sender.emit('session-alive', { sid, time: time - 1, mode: 'local' });
    assert.deepEqual(await toldOf(people, 's:2', sent(people.senders[1], 's:2')), [alive, alive]);
    assert.deepEqual(await toldOf(others, 's', sent(others.senders[1], 's')), [alive, alive]);
  });

  test('an end that is too old to be told fences nothing', async () => {
    const people = await user();
    const alive = (time) => () => people.senders[1].emit('session-alive', { sid: 's', time, mode: 'local' });
    people.senders[1].emit('session-end', { sid: 's', time: 0 });
    people.senders[1].emit('session-end', { sid: 's', time: 'tomorrow' });
    const time = Date.now() - DEPARTED_MS;
    const told = [{ active: true, activeAt: time }];
    assert.deepEqual(await toldOf(people, 's', alive(time)), [told, told]);
  });

  // The last of these: from here on there are three replicas.
  test('a replica that starts afterwards knows of the end', async () => {
    const people = await user();
    const time = Date.now() - DEPARTED_MS;
    await end(people, people.senders[0], 's', time);
    const sender = await session(await fleet.add('pointwork'), people.user, 's');
    people.senders.push(sender);
    const alive = (at) => () => sender.emit('session-alive', { sid: 's', time: at, mode: 'local' });
    assert.deepEqual(await toldOf(people, 's', alive(time)), [[], []]);
    const newer = [{ active: true, activeAt: time + 1 }];
    assert.deepEqual(await toldOf(people, 's', alive(time + 1)), [newer, newer]);
  });
});

describe('machine activity', () => {
  /** An app on the first replica, and what it is told of the machine. */
  async function watcher() {
    const user = newUser();
    const app = await connect(replicas[0], { user });
    const events = collect(app, 'ephemeral');
    const of = (id, active) => events.map(([event]) => event).filter((event) => event.id === id && event.active === active);
    return { user, told: async (id, active) => (await until(() => of(id, active).length > 0 && of(id, active), undefined, `${id} ${active}`))[0] };
  }

  /** It comes and goes; gives what was told of both. */
  async function cameAndWent(leave) {
    const { user, told } = await watcher();
    const before = Date.now();
    const door = await fleet.door(1);
    const socket = await machine(door, user, 'm');
    const came = await told('m', true);
    await leave({ socket, door });
    const went = await told('m', false);
    const { activeAt, ...rest } = came;
    assert.deepEqual(rest, { type: 'machine-activity', id: 'm', active: true });
    assert.ok(activeAt >= before && activeAt <= Date.now());
    const { lastSeenAt } = went;
    assert.ok(Number.isInteger(lastSeenAt) && lastSeenAt >= before && lastSeenAt <= Date.now(), JSON.stringify(went));
    assert.ok(Number.isInteger(went.activeAt) && went.activeAt >= before && went.activeAt <= Date.now(), JSON.stringify(went));
    return went;
  }

  const departures = {
    closed: ({ socket }) => socket.disconnect(),
    'transport-lost': ({ door }) => door.cut(),
  };
  for (const [reason, leave] of Object.entries(departures)) {
    test(`a machine that leaves is told as ${reason}, and when it was last seen`, async () => {
      const { activeAt, lastSeenAt, ...went } = await cameAndWent(leave);
      assert.deepEqual(went, { type: 'machine-activity', id: 'm', active: false, reason });
      assert.ok(lastSeenAt <= activeAt);
    });
  }

  test('what it sent is when it was last seen', async () => {
    const { user, told } = await watcher();
    const one = await machine(replicas[1], user, 'm');
    const came = await told('m', true);
    await until(() => Date.now() > came.activeAt);
    const before = Date.now();
    await one.emitWithAck('ping');
    one.disconnect();
    assert.ok((await told('m', false)).lastSeenAt >= before);
  });

  // The last: the second replica is another process afterwards.
  test('a machine whose replica shuts down is told as drained', async () => {
    const { reason } = await cameAndWent(async () => void replicas[1].restart());
    assert.equal(reason, 'drained');
    await until(() => replicas[1].isUp, undefined, 'the replica to be back');
  });
});
