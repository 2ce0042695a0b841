// Who may use the admin API: whoever is on this machine, and whoever has the token.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { startHost } from '../support/host.mjs';

const TOKEN = 'a token of sixteen characters or more';

let host;
before(async () => (host = await startHost({ settings: { 'admin.token': TOKEN } })));
after(async () => await host.stop());

/** The status of a request with exactly these headers. */
async function status(path, headers, from = {}) {
  const { hostname, port } = new URL(host.admin);
  const asked = request({ hostname, port, path, headers: { host: `${hostname}:${port}`, ...headers }, ...from }).end();
  const [response] = await once(asked, 'response');
  response.resume();
  return response.statusCode;
}

test('a request made on this machine needs no token', async () => {
  for (const name of ['127.0.0.1', 'localhost', '[::1]', '127.0.0.1:9090', 'localhost:9090', '[::1]:9090']) {
    assert.equal(await status('/v1/policies', { host: name }), 200, name);
  }
});

test('one that comes by another name, from a page, or through a proxy needs it', async () => {
  const foreign = [
    { host: 'evil.example:9090' },
    { host: 'evil.example' },
    { origin: 'https://evil.example' },
    { 'x-forwarded-for': '203.0.113.7' },
    { forwarded: 'for=203.0.113.7' },
  ];
  for (const headers of foreign) {
    assert.equal(await status('/v1/policies', headers), 401, JSON.stringify(headers));
    assert.equal(await status('/v1/policies', { ...headers, authorization: `Bearer ${TOKEN}` }), 200, JSON.stringify(headers));
  }
});

test('one that a sidecar passes on from its own loopback address needs it', async () => {
  const sidecar = { localAddress: '127.0.0.6' };
  assert.equal(await status('/v1/policies', {}, sidecar), 401);
  assert.equal(await status('/v1/policies', { authorization: `Bearer ${TOKEN}` }, sidecar), 200);
});

test('a wrong token is refused, wherever it comes from', async () => {
  for (const authorization of ['Bearer wrong', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, '']) {
    assert.equal(await status('/v1/policies', { authorization }), 401, authorization);
  }
});

test('a probe needs none', async () => {
  assert.equal(await status('/health', { host: 'evil.example', authorization: 'Bearer wrong' }), 200);
});
