// How many connections there may be, and how long one may take to say what it wants.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as tcp } from 'node:net';
import { after, afterEach, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startHost } from '../support/host.mjs';
import { TRANSPORTS, closeSockets, collect, connect, newUser, open } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

let host;
afterEach(async () => {
  closeSockets();
  await host?.stop();
  host = undefined;
});
after(() => closeSockets());

const start = async (listen) => {
  const settings = Object.fromEntries(Object.entries(listen).map(([key, value]) => [`listen.${key}`, value]));
  return (host = await startHost({ settings, policies: {} }));
};

async function sample(name) {
  const text = await (await fetch(`${host.admin}/metrics`)).text();
  return Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.split(' ').at(-1) ?? 0);
}

const refused = (reason) => sample(`pointwork_connections_refused_total{reason="${reason}"}`);
const clients = () => sample('pointwork_connections{listener="clients"}');

/** A bare connection: what it hears, and when it is closed. */
function bare(from = '127.0.0.1') {
  const { hostname, port } = new URL(host.url);
  const wire = tcp({ host: hostname, port: Number(port), localAddress: from });
  const heard = { text: '', isClosed: false, wire };
  wire.on('error', () => {});
  wire.on('data', (bytes) => (heard.text += bytes.toString('latin1')));
  heard.closed = once(wire, 'close').then(() => (heard.isClosed = true));
  return heard;
}

const upgrade = (headers = '') =>
  `GET ${host.path}/?EIO=4&transport=websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
  `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`;

test('one connection too many is closed with a word, and a place that is given back is given again', async () => {
  await start({ connections_max: 3 });
  const sockets = [];
  for (let i = 0; i < 3; i++) sockets.push(await connect(host, { user: newUser() }));
  const late = bare();
  await within(late.closed);
  assert.match(late.text, /^HTTP\/1.1 503 /);
  assert.equal(await refused('total'), 1);
  for (const socket of sockets) {
    socket.disconnect();
    await until(async () => (await clients()) === 2, undefined, 'a free place');
    await connect(host, { user: newUser() });
  }
  assert.equal(await clients(), 3);
  closeSockets();
  await until(async () => (await clients()) === 0, undefined, 'no connection');
});

test('an address has its own, and others are let in', async () => {
  await start({ connections_per_ip_max: 2 });
  await connect(host, { user: newUser() });
  const second = await connect(host, { user: newUser() });
  const third = bare();
  await within(third.closed);
  assert.equal(await refused('ip'), 1);
  const elsewhere = bare('127.0.0.2');
  elsewhere.wire.write(upgrade());
  await until(() => elsewhere.text.startsWith('HTTP/1.1 101 '), undefined, 'an upgrade');
  second.disconnect();
  await until(async () => (await clients()) === 2);
  await connect(host, { user: newUser() });
  elsewhere.wire.destroy();
});

test('behind a trusted proxy each of its clients has its own', async () => {
  await start({ connections_per_ip_max: 1, trusted_proxies: '127.0.0.0/30' });
  const by = (client) => {
    const connection = bare();
    connection.wire.write(upgrade(`X-Forwarded-For: 9.9.9.9, ${client}\r\n`));
    return connection;
  };
  const begins = (connection, status) => until(() => connection.text.startsWith(`HTTP/1.1 ${status} `), undefined, `${status}: ${connection.text}`);
  const first = by('203.0.113.1');
  await begins(first, 101);
  await begins(by('203.0.113.2'), 101);
  await begins(by('203.0.113.1'), 503);
  assert.equal(await refused('ip'), 1);
  first.wire.destroy();
  await until(async () => {
    const again = by('203.0.113.1');
    await until(() => again.text !== '');
    return again.text.startsWith('HTTP/1.1 101 ');
  });
});

test('a client whose upgrade failed has its place back, though the proxy keeps the connection', async () => {
  await start({ connections_per_ip_max: 1, trusted_proxies: '127.0.0.0/30' });
  const from = 'X-Forwarded-For: 203.0.113.1\r\n';
  const kept = bare();
  kept.wire.write(upgrade(from).replace('transport=websocket', 'transport=none'));
  await until(() => kept.text.startsWith('HTTP/1.1 400 '), undefined, () => `a refusal, not ${kept.text}`);
  const again = bare();
  again.wire.write(upgrade(from));
  await until(() => again.text !== '');
  assert.match(again.text, /^HTTP\/1.1 101 /);
  assert.equal(kept.isClosed, false);
});

for (const transport of TRANSPORTS) {
  test(`a user has so many sockets over ${transport}, and a further one comes back until there is room`, async () => {
    await start({ connections_per_user_max: 2 });
    const user = newUser();
    const first = await connect(host, { user, transport });
    const second = await connect(host, { user, transport });
    const errors = [];
    const waiting = () => {
      const socket = open(host, { user, transport, reconnection: true, reconnectionDelay: 20, reconnectionDelayMax: 20 });
      errors.push(collect(socket, 'connect_error'));
      return socket;
    };
    const third = waiting();
    await until(async () => (await refused('user')) >= 3, undefined, 'several attempts');
    assert.equal(third.connected, false);
    await connect(host, { user: newUser(), transport });
    first.disconnect();
    await until(() => third.connected, undefined, 'the third');
    // One that is refused by a packet stays away for good.
    const fourth = waiting();
    const before = await refused('user');
    await until(async () => (await refused('user')) > before, undefined, 'an attempt');
    second.io.engine.close();
    await until(() => fourth.connected, undefined, 'the fourth');
    assert.ok(third.connected);
    assert.deepEqual(errors.flat(2).filter(({ message }) => message === 'Too many connections'), []);
  });
}

test('who does not say what it wants in time is closed, be it a byte at a time', async () => {
  await start({ head_timeout_ms: 400 });
  const whole = await connect(host, { user: newUser() });
  const [silent, half, drop] = [bare(), bare(), bare()];
  half.wire.write('GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nhost: a\r\n');
  const dropping = (async () => {
    for (const letter of `GET /socket.io/ HTTP/1.1\r\nx: ${'y'.repeat(1_000)}`) {
      if (drop.isClosed) return;
      drop.wire.write(letter);
      await delay(50);
    }
  })();
  await Promise.all([silent, half, drop].map(({ closed }) => within(closed)));
  await dropping;
  assert.ok(whole.connected, 'a socket says nothing for as long as it likes');
  const long = bare();
  long.wire.write(`GET /socket.io/?EIO=4&transport=polling HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(100_000)}`);
  await within(long.closed);
  assert.match(long.text, /^HTTP\/1.1 431 /);
});

test('a body that does not come, or is too long, ends its request', async () => {
  await start({ ping_interval_ms: 300, ping_timeout_ms: 300, max_payload_bytes: 2_000 });
  const opened = await (await fetch(`${host.url}${host.path}/?EIO=4&transport=polling`)).text();
  const { sid } = JSON.parse(opened.slice(1));
  const post = (length) => `POST ${host.path}/?EIO=4&transport=polling&sid=${sid} HTTP/1.1\r\nhost: a\r\ncontent-length: ${length}\r\n\r\n`;
  const long = bare();
  long.wire.write(post(5_000) + 'x'.repeat(5_000));
  await until(() => /^HTTP\/1.1 4\d\d /.test(long.text), undefined, () => `a refusal, not ${long.text}`);
  const slow = bare();
  slow.wire.write(post(1_000));
  while (!slow.isClosed) {
    slow.wire.write('y');
    await delay(50);
  }
  await within(slow.closed);
  assert.equal(long.text.includes('200 OK'), false);
});
