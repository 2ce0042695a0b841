// The host ends in order: it is unready at once, calls end, clients come back by themselves elsewhere, and its exit code is 0.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect as tcp, createServer } from 'node:net';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { summaryOf } from '../fleet/supervisor.mjs';
import { startCluster, stopCluster } from '../fleet/cluster.mjs';
import { startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, newUser, next, register, succeeded, TRANSPORTS } from '../support/sockets.mjs';
import { hs256 } from '../support/tokens.mjs';
import { until, within } from '../support/waiting.mjs';

const HOUR_MS = 3_600_000;

afterEach(closeSockets);

/** The reason why each was disconnected, once all are. */
const reasons = (sockets) => Promise.all(sockets.map(async (socket) => (await next(socket, 'disconnect'))[0]));

/** A client that is told by a packet to disconnect does not come back; one whose connection ends does. */
const comesBack = (reason) => reason !== 'io server disconnect' && reason !== 'io client disconnect';

/** `{status, body}` of a probe, on either listener. */
async function probe(place, path) {
  const response = await fetch(place + path, { signal: AbortSignal.timeout(5_000) });
  return { status: response.status, body: await response.json() };
}

const isDraining = async (place) => {
  const { status, body } = await probe(place, '/health/ready');
  return status === 503 && body.ready === false && body.reason === 'draining';
};

/** A daemon that keeps what it is asked: `{socket, requests}`, each `{params, answer}`. */
async function keeper(place, user, options) {
  const requests = [];
  const socket = await daemon(place, { user, methods: ['m'], handler: () => undefined, ...options });
  socket.on('rpc-request', ({ params }, answer) => requests.push({ params, answer }));
  return { socket, requests };
}

for (const [signal, transports] of Object.entries({ SIGTERM: TRANSPORTS, SIGINT: ['websocket'], SIGHUP: ['polling'] })) {
  for (const transport of transports) {
    test(`${signal} with clients over ${transport}, one of them in a call`, async () => {
      const host = await startHost();
      try {
        const user = newUser();
        const { socket: silent, requests } = await keeper(host, user, { transport });
        const others = await Promise.all(Array.from({ length: 10 }, () => connect(host, { user: newUser(), transport })));
        const elsewhere = await Promise.all(['/device', '/dashboard'].map((namespace) => connect(host, { user, transport, namespace })));
        const caller = await connect(host, { user, transport });
        const answers = [];
        caller.emit('rpc-call', { method: 'm', params: 1 }, (answer) => answers.push(answer));
        await until(() => requests.length > 0, 20_000, 'the request');
        const left = reasons([silent, caller, ...others, ...elsewhere]);
        assert.equal(await host.end(signal), 0);
        assert.ok((await left).every(comesBack), JSON.stringify(await left));
        // Told why, or cut off; told twice, or that it went well, it must not be.
        assert.ok(answers.length <= 1 && answers.every(({ ok }) => ok === false), JSON.stringify(answers));
        const summary = summaryOf(host.log.map((line) => JSON.stringify(line)));
        const { sockets_closed: sockets, calls_finished: finished, calls_broken_off: broken } = summary;
        assert.deepEqual({ signal: summary.signal, sockets, finished, broken }, { signal, sockets: 14, finished: 0, broken: 1 });
      } finally {
        await host.stop();
      }
    });
  }
}

test('a host that is alone does not settle, and a call in flight ends', async () => {
  const settings = { 'drain.settle_ms': HOUR_MS, 'drain.deadline_ms': HOUR_MS, 'drain.close_ms': HOUR_MS };
  const host = await startHost({ settings });
  try {
    const user = newUser();
    const { requests } = await keeper(host, user);
    const caller = await connect(host, { user });
    const answer = call(caller, 'm', 1);
    await until(() => requests.length > 0, 20_000, 'the request');
    const ended = host.end();
    await until(() => isDraining(host.url), 20_000, 'the host to be draining');
    // Nobody comes back here: not a daemon, and not to a method that waits for one.
    await until(async () => (await fetch(`${host.url}${host.path}/?EIO=4&transport=polling`)).status === 503, 20_000, 'the door to be shut');
    requests[0].answer('done');
    assert.deepEqual(await answer, succeeded('done'));
    assert.equal(await ended, 0);
    const { calls_finished: finished, calls_broken_off: broken } = summaryOf(host.log.map((line) => JSON.stringify(line)));
    assert.deepEqual({ finished, broken }, { finished: 1, broken: 0 });
  } finally {
    await host.stop();
  }
});

/** A way to the host on which what the host sends can be held up: `{host, hold(), release(), close()}`. */
async function slowLine(host) {
  const { hostname, port } = new URL(host.url);
  const pairs = [];
  let isHeld = false;
  const server = createServer((near) => {
    const far = tcp(Number(port), hostname);
    near.on('error', () => far.destroy());
    far.on('error', () => near.destroy());
    near.pipe(far);
    if (!isHeld) far.pipe(near);
    pairs.push({ near, far });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    host: { url: `http://127.0.0.1:${server.address().port}`, path: host.path, secret: host.secret },
    hold() {
      isHeld = true;
      for (const { near, far } of pairs) far.unpipe(near).pause();
    },
    release() {
      isHeld = false;
      for (const { near, far } of pairs) far.pipe(near);
    },
    close() {
      server.close();
      for (const { near, far } of pairs) [near, far].forEach((wire) => wire.destroy());
    },
  };
}

// More than all the buffers between the host and a client that does not read; and more than one answer to a poll.
for (const [transport, calls] of [['websocket', 20], ['polling', 3]]) {
  test(`a caller over ${transport} that reads slowly has its answers before it is closed`, async () => {
    const host = await startHost({ settings: { 'drain.deadline_ms': HOUR_MS } });
    const line = await slowLine(host);
    try {
      const user = newUser();
      const { socket, requests } = await keeper(host, user);
      const caller = await connect(line.host, { user, transport });
      const answers = Promise.all(Array.from({ length: calls }, () => call(caller, 'm', 1)));
      await until(() => requests.length === calls, 20_000, 'the requests');
      line.hold();
      const [gone, daemonGone] = [reasons([caller]), reasons([socket])];
      const ended = host.end();
      const result = 'x'.repeat(900_000);
      for (const { answer } of requests) answer(result);
      // It is closed when its calls are over, and so would be the caller.
      await daemonGone;
      await delay(500);
      line.release();
      for (const answer of await answers) assert.equal(answer.result?.length, result.length);
      assert.ok((await gone).every(comesBack), await gone);
      assert.equal(await ended, 0);
    } finally {
      line.close();
      await host.stop();
    }
  });
}

test('a connection that a client of a proxy has left to another one is not closed with it', async () => {
  const host = await startHost({ settings: { 'drain.deadline_ms': HOUR_MS } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const user = newUser();
    const endpoint = `${host.url}${host.path}/?EIO=4&transport=`;
    const [opened] = await once(get(`${endpoint}polling`, { agent }), 'response');
    const { sid } = JSON.parse((await opened.setEncoding('utf8').toArray()).join('').slice(1));
    const { requests } = await keeper(host, user);
    const other = await connect(host, { user, agent });
    const auth = JSON.stringify({ token: hs256(host.secret, { sub: user }) });
    const polling = `${endpoint}polling&sid=${sid}`;
    await fetch(polling, { method: 'POST', body: `40${auth}\u001e40/dashboard,${auth}` });
    let heard = '';
    while (!/40\{/.test(heard) || !/40\/dashboard,\{/.test(heard)) heard += await (await fetch(polling)).text();
    const upgraded = new WebSocket(`${endpoint.replace('http', 'ws')}websocket&sid=${sid}`);
    const closed = once(upgraded, 'close');
    await once(upgraded, 'open');
    const probed = once(upgraded, 'message');
    upgraded.send('2probe');
    assert.equal(String((await probed)[0]), '3probe');
    upgraded.send('5');
    const answer = call(other, 'm', 1);
    await until(() => requests.length > 0, 20_000, 'the request');
    const ended = host.end();
    await within(closed, 20_000, 'its end');
    requests[0].answer('done');
    assert.deepEqual(await answer, succeeded('done'));
    assert.equal(await ended, 0);
  } finally {
    agent.destroy();
    await host.stop();
  }
});

describe('one replica of two', () => {
  const settings = { 'drain.settle_ms': HOUR_MS, 'drain.deadline_ms': HOUR_MS, 'drain.close_ms': 200 };
  let fleet;
  before(async () => {
    // The first settles for ever, the second not at all.
    fleet = await startCluster(2, { settings, settingsOf: (index) => (index === 1 ? { 'drain.settle_ms': 0 } : {}) });
  });
  after(() => stopCluster(fleet));

  /** Asks a replica to stop; resolves with its exit code and its log once it has. */
  function stop(replica, signal = 'SIGTERM') {
    replica.isUp = false;
    const ended = replica.ended();
    process.kill(replica.pid, signal);
    return ended;
  }

  test('while it settles it is unready and alive, and everything goes on', async () => {
    const [first, second] = fleet.replicas;
    const ended = stop(first);
    for (const place of [first.url, first.admin]) {
      await until(() => isDraining(place), 20_000, 'the replica to be draining');
      assert.equal((await probe(place, '/health/live')).status, 200);
      const { status, body } = await probe(place, '/health');
      assert.deepEqual([status, body.status, body.service, body.redis], [200, 'ok', 'pointwork', 'ok']);
      assert.ok(Math.abs(Date.parse(body.timestamp) - Date.now()) < 60_000, body.timestamp);
    }
    assert.equal((await probe(second.url, '/health/ready')).status, 200);
    const user = newUser();
    const upgrades = await connect(first, { user, transports: ['polling', 'websocket'], transport: undefined });
    await daemon(first, { user, methods: ['m'], handler: ({ params }) => params });
    const caller = await connect(second, { user });
    for (const socket of [upgrades, caller]) assert.deepEqual(await call(socket, 'm', 1), succeeded(1));

    // A second signal ends it now: nothing of what it would have waited for has happened.
    process.kill(first.pid, 'SIGTERM');
    assert.equal(await within(ended, 20_000, 'its end'), 0);
    assert.ok(first.log.some((line) => line.includes('stopped at once')), first.shownLog());
    await first.start();
  });

  for (const transport of TRANSPORTS) {
    test(`calls in flight and those that wait end before clients over ${transport} are closed`, async () => {
      const [first, second] = fleet.replicas;
      const user = newUser();
      const leaving = await keeper(second, user, { transport });
      const [near, far] = await Promise.all([connect(second, { user, transport }), connect(first, { user, transport })]);
      const inFlight = [near, far].map((caller) => call(caller, 'm', 1));
      await until(() => leaving.requests.length === 2, 20_000, 'both requests');
      const waiting = call(near, 'comes later', 2);
      const idle = await connect(second, { user, transport });
      const left = { idle: reasons([idle]), others: reasons([leaving.socket, near]) };
      const ended = stop(second);
      assert.ok((await left.idle).every(comesBack));
      assert.ok([leaving.socket, near].every(({ connected }) => connected));
      // None of those that come now is for a daemon that leaves: they wait for it, and it is elsewhere in the end.
      const later = call(far, 'm', 3);
      const elsewhere = await daemon(first, { user, transport, methods: ['comes later'], handler: ({ params }) => params });
      assert.deepEqual(await waiting, succeeded(2));
      // One that comes late is a call as well.
      assert.deepEqual(await call(near, 'comes later', 4), succeeded(4));
      for (const { answer } of leaving.requests) answer('done');
      assert.deepEqual(await Promise.all(inFlight), [succeeded('done'), succeeded('done')]);
      assert.ok((await left.others).every(comesBack));
      await register(elsewhere, 'm');
      assert.deepEqual(await later, succeeded(3));
      assert.equal(leaving.requests.length, 2);
      assert.equal(await within(ended, 20_000, 'its end'), 0);
      const summary = await until(() => summaryOf(second.log), 5_000, 'the summary');
      const { sockets_closed: sockets, calls_finished: finished, calls_broken_off: broken } = summary;
      assert.deepEqual({ sockets, finished, broken }, { sockets: 3, finished: 4, broken: 0 });
      await second.start();
    });
  }

  test('a machine is told to be gone when its own socket is closed, and why', async () => {
    const [first, second] = fleet.replicas;
    const user = newUser();
    const watching = await connect(first, { user });
    const told = [];
    watching.on('ephemeral', ({ type, id, active, reason }) => type === 'machine-activity' && told.push({ id, active, reason }));
    const idle = await connect(second, { user, auth: { clientType: 'machine-scoped', machineId: 'idle' } });
    const { requests } = await keeper(second, user, { auth: { machineId: 'busy' } });
    const answer = call(watching, 'm', 1);
    await until(() => requests.length > 0, 20_000, 'the request');
    const ended = stop(second);
    const gone = (id) => told.find((one) => one.id === id && !one.active);
    await until(() => gone('idle'), 20_000, 'news of the idle machine');
    assert.equal(idle.connected, false);
    assert.equal(gone('busy'), undefined);
    requests[0].answer('done');
    assert.deepEqual(await answer, succeeded('done'));
    await until(() => gone('busy'), 20_000, 'news of the other machine');
    assert.deepEqual([gone('idle').reason, gone('busy').reason], ['drained', 'drained']);
    assert.equal(await within(ended, 20_000, 'its end'), 0);
    await second.start();
  });
});

describe('a host that cannot start', () => {
  test('says which setting is wrong', async () => {
    await assert.rejects(startHost({ settings: { 'rpc.no_such_setting': 1 } }), /no_such_setting/);
  });

  test('says that an address is taken', async () => {
    const host = await startHost();
    try {
      const { host: address } = new URL(host.url);
      await assert.rejects(startHost({ settings: { 'listen.address': address } }), new RegExp(address));
    } finally {
      await host.stop();
    }
  });
});
