// A client that sends and does not read: it is cut off, and nobody else notices.
import assert from 'node:assert/strict';
import { connect as tcp } from 'node:net';
import { after, before, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import { call, closeSockets, connect, connected, daemon, failed, newUser, next, open, succeeded } from '../support/sockets.mjs';
import { hs256 } from '../support/tokens.mjs';
import { until, within } from '../support/waiting.mjs';

const ROUNDS_MAX = 200;
const CALLS_A_ROUND = 20;
const RESULT = 'x'.repeat(64 * 1024);

let host;
before(async () => {
  // Who does not read answers no ping either: it is to be the full buffer that cuts it off, however long that takes to fill.
  host = await startHost({ settings: { 'listen.max_buffer_packets': 64, 'rpc.calls_per_user_max': 32 } });
});
after(async () => {
  closeSockets();
  await host.stop();
});

/** A WebSocket text frame of a client, masked with zeros. */
function frame(text) {
  const payload = Buffer.from(text);
  const head = payload.length < 126 ? [0x81, 0x80 | payload.length] : [0x81, 0x80 | 126, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
}

/** A connected Socket.IO client on a bare TCP connection, which is not read from once it has sent `last` and is returned. */
async function mute(host, user, ...last) {
  const { hostname, port } = new URL(host.url);
  const wire = tcp(Number(port), hostname);
  wire.on('error', () => {}); // the host cuts it off
  let heard = '';
  wire.on('data', (bytes) => (heard += bytes.toString('latin1')));
  wire.write(
    `GET ${host.path}/?EIO=4&transport=websocket HTTP/1.1\r\nHost: ${hostname}\r\nUpgrade: websocket\r\n` +
      'Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  );
  await until(() => heard.includes('pingInterval'));
  wire.write(frame(`40${JSON.stringify({ token: hs256(host.secret, { sub: user }) })}`));
  await until(() => heard.includes('40{"sid"'));
  for (const text of last) wire.write(frame(text));
  wire.pause();
  return wire;
}

const metric = async (name, labels = '') => {
  const text = await (await fetch(`${host.admin}/metrics`)).text();
  const samples = text.matchAll(new RegExp(`^${name}(?:\\{([^}]*)\\})? (\\d+)$`, 'gm'));
  return [...samples].filter(([, found = '']) => found.includes(labels)).reduce((sum, [, , value]) => sum + Number(value), 0);
};
const answers = () => metric('rpc_calls_total', 'result="success"');
const sockets = async (host) => (await (await fetch(`${host.admin}/health`)).json()).sockets;

/** Calls and leaves the answers unread until the host has had enough: it had cut off `before` clients. */
async function leaveUnread(before, callOnce) {
  const shed = async () => (await metric('pointwork_slow_consumers_total')) > before;
  // A few at a time: it is the answers that nobody reads, not a flood of calls. The kernel takes some megabytes of them.
  for (let round = 0; round < ROUNDS_MAX && !(await shed()); round += 1) {
    const answered = await answers();
    for (let sent = 0; sent < CALLS_A_ROUND; sent += 1) callOnce();
    await until(async () => (await answers()) >= answered + CALLS_A_ROUND || (await shed()));
  }
  assert.ok(await shed());
}

test('a client that does not read its answers is disconnected, others are served on', async () => {
  const user = newUser();
  await daemon(host, { user, methods: ['m'], handler: () => RESULT });
  const other = await connect(host, { user });
  const slow = await mute(host, user);
  assert.equal(await sockets(host), 3);
  let id = 0;
  await leaveUnread(0, () => slow.write(frame(`42${(id += 1)}["rpc-call",{"method":"m"}]`)));
  assert.deepEqual(await within(call(other, 'm', 0)), succeeded(RESULT));
  await until(async () => (await sockets(host)) === 2);
  assert.deepEqual(await within(call(other, 'm', 0)), succeeded(RESULT));
  assert.equal(await metric('pointwork_slow_consumers_total'), 1, 'it is counted once');
  slow.destroy();
});

test('a daemon that stops reading in the midst of a packet is gone with its ping timeout', async () => {
  const impatient = await startHost({ settings: { 'listen.ping_interval_ms': 2000, 'listen.ping_timeout_ms': 2000 } });
  try {
    await stopReading(impatient);
  } finally {
    await impatient.stop();
  }
});

async function stopReading(host) {
  const user = newUser();
  const caller = await connect(host, { user });
  const before = await sockets(host);
  const daemon = await mute(host, user, '42["rpc-register",{"method":"m"}]');
  // Not enough packets to fill its buffer, and more bytes than the kernel takes.
  const packet = JSON.stringify({ rooms: [`user:${user}`], event: 'update', args: ['x'.repeat(512 * 1024)] });
  for (let sent = 0; sent < 40; sent += 1) {
    await fetch(`${host.admin}/v1/emit`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: packet });
  }
  const answer = call(caller, 'm', 0, 30_000);
  await until(async () => (await sockets(host)) === before);
  assert.deepEqual(await answer, failed('RPC target disconnected'));
  daemon.destroy();
}

for (const transports of [['websocket'], ['polling', 'websocket']]) {
  test(`a client that is cut off comes back by itself (${transports.join(', then ')})`, async () => {
    const user = newUser();
    await daemon(host, { user, methods: ['m'], handler: () => RESULT });
    const socket = open(host, { user, transports, reconnection: true, reconnectionDelay: 20 });
    await connected(socket);
    await until(() => socket.io.engine.transport.name === 'websocket');
    const before = await metric('pointwork_slow_consumers_total');
    const gone = next(socket, 'disconnect');
    const wire = socket.io.engine.transport.ws._socket;
    wire.pause();
    await leaveUnread(before, () => socket.emit('rpc-call', { method: 'm' }, () => {}));
    wire.resume();
    assert.match((await gone)[0], /^transport (close|error)$/);
    // A first attempt may fail: it can take up a kept-alive connection of the old session.
    await next(socket, 'connect');
    assert.deepEqual(await call(socket, 'm', 0), succeeded(RESULT));
  });
}
