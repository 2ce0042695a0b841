// TLS on both listeners: clients over wss, operators by token or certificate, certificates that are renewed while it serves.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { connect as tcp } from 'node:net';
import { after, afterEach, before, test } from 'node:test';
import { connect as tls } from 'node:tls';
import { Authority } from '../support/certificates.mjs';
import { pointwork, startHost } from '../support/host.mjs';
import { TRANSPORTS, call, closeSockets, connect, daemon, newUser, refusal, succeeded } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const TOKEN = 'a token of sixteen characters or more';

let authority, stranger, server, operator, host;
before(async () => {
  [authority, stranger] = await Promise.all([new Authority().open(), new Authority().open()]);
  [server, operator] = await Promise.all([authority.issue('server'), authority.issue('operator')]);
  host = await startHost({
    policies: {},
    settings: {
      'listen.tls.cert': server.cert,
      'listen.tls.key': server.key,
      'listen.tls.reload_ms': 50,
      'admin.tls.cert': server.cert,
      'admin.tls.key': server.key,
      'admin.tls.client_ca': authority.ca,
      'admin.token': TOKEN,
    },
  });
});
after(async () => {
  await host?.stop();
  await Promise.all([authority.close(), stranger.close()]);
});
afterEach(closeSockets);

/** Asks the admin listener; by another name than loopback's unless `headers` say otherwise. */
async function ask(path, { headers = {}, client = {} } = {}) {
  const { hostname, port } = new URL(host.admin);
  const options = { hostname, port, path, headers: { host: 'pointwork.example', ...headers }, servername: 'localhost', ...client, agent: false };
  const asked = request(options).end();
  const [response] = await within(once(asked, 'response'));
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return { status: response.statusCode, text };
}

const status = async (path, options) => (await ask(path, options)).status;

/** A counter's value. */
async function counted(sample) {
  const { text } = await ask('/metrics', { client: await authority.client(operator) });
  return Number(text.split('\n').find((line) => line.startsWith(sample))?.split(' ').at(-1) ?? 0);
}

test('both listeners say that they are https', () => {
  assert.match(host.url, /^https:/);
  assert.match(host.admin, /^https:/);
});

for (const transport of TRANSPORTS) {
  test(`calls over ${transport}`, async () => {
    const user = newUser();
    const trust = await authority.client();
    const large = 'x'.repeat(300_000);
    await daemon(host, { user, transport, methods: ['m'], handler: ({ params }) => params, ...trust });
    const caller = await connect(host, { user, transport, ...trust });
    for (const params of ['small', large]) assert.deepEqual(await call(caller, 'm', params), succeeded(params));
  });
}

test('a client that does not believe the authority does not connect', async () => {
  assert.match(await refusal(host, { user: newUser(), ...(await stranger.client()) }), /websocket error/);
});

test('only HTTP/1.1 is spoken, and TLS 1.1 is not', async () => {
  const { port } = new URL(host.url);
  const begun = async (options) => {
    const socket = tls({ port: Number(port), host: '127.0.0.1', ...options });
    const failure = once(socket, 'error').then(([error]) => error);
    const open = once(socket, 'secureConnect').then(() => socket.alpnProtocol);
    failure.catch(() => {});
    open.catch(() => {});
    return within(Promise.race([open, failure])).finally(() => socket.destroy());
  };
  const trust = await authority.client();
  assert.equal(await begun({ ...trust, ALPNProtocols: ['h2', 'http/1.1'] }), 'http/1.1');
  assert.ok((await begun({ ...trust, ALPNProtocols: ['h2'] })) instanceof Error);
  assert.ok((await begun({ ...trust, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })) instanceof Error);
});

test('what is no TLS is closed and counted, and nobody else notices', async () => {
  const sample = 'pointwork_tls_handshakes_failed_total{listener="clients"}';
  const before = await counted(sample);
  const { port } = new URL(host.url);
  const plain = tcp(Number(port), '127.0.0.1');
  plain.on('error', () => {});
  plain.resume();
  plain.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await within(once(plain, 'close'));
  await until(async () => (await counted(sample)) > before);
  await connect(host, { user: newUser(), ...(await authority.client()) });
});

test('the admin listener asks for a token or a certificate', async () => {
  const trust = await authority.client();
  const bearer = { authorization: `Bearer ${TOKEN}` };
  assert.equal(await status('/v1/policies', { client: trust }), 401, 'neither');
  assert.equal(await status('/v1/policies', { client: trust, headers: bearer }), 200, 'the token');
  assert.equal(await status('/v1/policies', { client: await authority.client(operator) }), 200, 'the certificate');
  const both = { client: await authority.client(operator), headers: { authorization: 'Bearer wrong' } };
  assert.equal(await status('/v1/policies', both), 401, 'a wrong token, whatever comes with it');
  assert.equal(await status('/health', { client: trust }), 200, 'a probe has neither');
});

test('a certificate that nobody vouches for is no certificate', async () => {
  const strange = await stranger.client(await stranger.issue('operator'));
  const client = { ...strange, ca: (await authority.client()).ca };
  await assert.rejects(ask('/v1/policies', { client }), /alert|ECONNRESET|hang up/i);
});

test("the operators' commands speak TLS, with a token or a certificate", async () => {
  const port = new URL(host.admin).port;
  const list = (...words) => pointwork('policy', 'list', '--admin-url', `https://localhost:${port}`, ...words);
  const shown = ['--set', `admin.client_cert=${operator.cert}`, '--set', `admin.client_key=${operator.key}`];
  for (const words of [shown, ['--set', `admin.token=${TOKEN}`]]) {
    const { code, stderr } = await list('--admin-ca', authority.ca, ...words);
    assert.equal(code, 0, stderr);
  }
  const wrong = await list('--admin-ca', authority.ca, '--set', 'admin.token=wrong');
  assert.match(wrong.stderr, /401/);
  const unbelieved = await list('--admin-ca', stranger.ca, ...shown);
  assert.equal(unbelieved.code, 1);
  assert.match(unbelieved.stderr, /no answer from https:.*(certificate|UnknownIssuer)/i);
  // On this machine neither is needed; that a certificate is shown is seen when it is a wrong one.
  const { cert, key } = await stranger.issue('stranger');
  const strange = await list('--admin-ca', authority.ca, '--set', `admin.client_cert=${cert}`, '--set', `admin.client_key=${key}`);
  assert.match(strange.stderr, /no answer from https:/);
  const unpaired = await list('--admin-ca', authority.ca, '--set', `admin.client_cert=${operator.cert}`, '--set', `admin.client_key=${server.key}`);
  assert.match(unpaired.stderr, /the certificate and its key cannot be used/);
});

test('a renewed certificate serves new connections, a broken one does not, and the old ones stay', async () => {
  const fingerprint = async () => {
    const socket = tls({ port: Number(new URL(host.url).port), host: '127.0.0.1', ...(await authority.client()) });
    await within(once(socket, 'secureConnect'));
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  const reloads = (result) => counted(`pointwork_tls_reloads_total{listener="clients",result="${result}"}`);
  const user = newUser();
  const trust = await authority.client();
  await daemon(host, { user, methods: ['m'], handler: () => 'served', ...trust });
  const caller = await connect(host, { user, ...trust });

  const first = await fingerprint();
  await authority.issue('server');
  await until(async () => (await fingerprint()) !== first, undefined, 'the renewed certificate');
  await until(async () => (await reloads('loaded')) === 1);

  const second = await fingerprint();
  await writeFile(server.cert, 'no certificate\n');
  await until(async () => (await reloads('refused')) >= 1, undefined, 'the refusal');
  assert.equal(await fingerprint(), second);
  const told = host.log.find((line) => line.level === 'WARN' && /goes on serving/.test(line.message) && line.listener === 'clients');
  assert.match(told.error, /holds no certificate/);

  await authority.issue('server');
  await until(async () => ![first, second].includes(await fingerprint()), undefined, 'the third certificate');
  assert.deepEqual(await call(caller, 'm'), succeeded('served'), 'on the sockets from before');
});
