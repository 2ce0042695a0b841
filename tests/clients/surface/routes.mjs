// The HTTP routes of both listeners, each method of each, and what they answer.
import { readFile } from 'node:fs/promises';
import { policyFile } from '../support/host.mjs';
import { hs256 } from '../support/tokens.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';
import { Requests, send } from './http.mjs';

/** Routes of the admin listener, of things that are not there. */
const ADMIN = [
  '/',
  '/health',
  '/health/live',
  '/health/ready',
  '/metrics',
  '/v1/emit',
  '/v1/policies',
  '/v1/policies/records',
  '/v1/policies/target/undo',
  '/v1/policies/target/retry',
  '/v1/policies/target/push',
  '/v1/policies/target/module',
  '/v1/policies/nope/undo',
  '/v1/policies/nope/retry',
  '/v1/policies/nope/push',
  '/v1/policies/nope/module',
  '/v1/experiments',
  '/v1/experiments/modules',
  '/v1/experiments/nope',
  ...['report', 'weights', 'pause', 'resume', 'promote', 'abort', 'nope'].map((what) => `/v1/experiments/nope/${what}`),
  '/v1/devices',
  '/v1/devices/pair',
  '/v1/devices/nope',
  ...['disconnect', 'block', 'unblock', 'nope'].map((what) => `/v1/devices/nope/${what}`),
  '/v1',
  '/v2/policies',
  '/socket.io/',
];

const CLIENTS = ['/', '/health', '/health/live', '/health/ready', '/metrics', '/v1/policies', '/socket.io', '/socket.io/', '/socket.io/nope', '/nope'];

/** Each method on each path, POST also with bodies that are wrong. */
async function matrix(requests, paths) {
  for (const path of paths) {
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']) await requests.send({ method, path });
    for (const value of [{}, [], { no_such_field: 1 }]) await requests.post(path, value);
    await requests.send({ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: '{' });
    await requests.send({ method: 'POST', path, headers: { 'content-type': 'text/plain' }, body: 'text' });
  }
}

/** Every route and method of the admin listener of a fresh host that is alone, and who may use it. */
export async function adminMatrix(host, token) {
  const requests = new Requests(host.admin);
  requests.title('admin listener: each path with each method');
  await matrix(requests, ADMIN);
  requests.title('admin listener: who may use it');
  const who = [
    { authorization: `Bearer ${token}` },
    { authorization: 'Bearer wrong' },
    { host: 'evil.example' },
    { host: 'evil.example', authorization: `Bearer ${token}` },
    { origin: 'https://evil.example' },
    { 'x-forwarded-for': '203.0.113.7' },
  ];
  for (const headers of who) {
    for (const path of ['/v1/emit', '/health', '/nope']) await requests.get(path, headers);
  }
  return requests.lines;
}

/** The listener of clients, and the engine's handshake. */
export async function clientsMatrix(host) {
  const requests = new Requests(host.url);
  requests.title('listener of clients: each path with each method');
  await matrix(requests, CLIENTS);
  requests.title('listener of clients: the engine');
  const origin = { origin: 'https://app.example' };
  for (const query of ['?EIO=4&transport=polling&sid=nope', '?EIO=4', '?EIO=3&transport=polling', '?EIO=4&transport=nope', '?transport=polling', '?EIO=4&transport=websocket']) {
    await requests.get(`/socket.io/${query}`);
    await requests.send({ method: 'POST', path: `/socket.io/${query}`, body: '40' });
  }
  await requests.get('/socket.io/?EIO=4&transport=polling', origin);
  await requests.send({ method: 'OPTIONS', path: '/socket.io/?EIO=4&transport=polling', headers: { ...origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-own' } });
  const opened = await requests.get('/socket.io/?EIO=4&transport=polling');
  const { sid } = JSON.parse(opened.body.toString().slice(1));
  return [...requests.lines, ...(await polling(host, sid)).map((line) => line.replaceAll(sid, '<id>'))];
}

/** A client that polls: what it posts, and the packets that it gets, pings left out. */
async function polling(host, sid) {
  const session = new Requests(host.url);
  const path = `/socket.io/?EIO=4&transport=polling&sid=${sid}`;
  const packets = [`40${JSON.stringify({ token: hs256(host.secret, { sub: 'raw' }) })}`, '421["ping"]', '42["rpc-register",{"method":"m"}]'];
  for (const body of packets) {
    await session.send({ method: 'POST', path, headers: { 'content-type': 'text/plain;charset=UTF-8' }, body });
    const isMessage = (packet) => packet.startsWith('4');
    let got = [];
    while (!got.some(isMessage)) got = (await send(host.url, { path })).body.toString().split('\x1e');
    session.lines.push('GET', ...got.filter(isMessage).map((packet) => `    ${packet.replace(/"sid":"[^"]+"/, '"sid":"<id>"')}`));
  }
  return session.lines;
}

/** What operators do with a host that is alone, after clients and devices have been there. */
export async function operations(host) {
  const requests = new Requests(host.admin);
  const { get, post } = requests;
  requests.title('POST /v1/emit');
  const good = { rooms: ['user:nobody'], event: 'update' };
  for (const body of [
    good,
    { ...good, args: [1, { a: null }], except: ['user:other'], namespace: '/dashboard' },
    { ...good, namespace: '/nope' },
    { ...good, rooms: [] },
    { ...good, rooms: [''] },
    { ...good, event: '' },
    { ...good, event: 'disconnect' },
    { ...good, args: 'none' },
    { ...good, more: 1 },
    { event: 'update' },
  ]) await post('/v1/emit', body);

  requests.title('policies of a directory');
  await get('/v1/policies');
  for (const query of ['', '?slot=settle', '?slot=settle&limit=0', '?slot=nope', '?limit=nope', '?more=1']) await get(`/v1/policies/records${query}`);
  for (const digest of ['', 'nope', '0'.repeat(64)]) await post('/v1/policies/target/retry', { digest });
  await requests.send({ method: 'POST', path: '/v1/policies/target/push', body: 'no module' });
  await post('/v1/policies/presence/undo');

  requests.title('devices');
  for (const query of ['', '?limit=1', '?limit=0', '?after=device-9', '?limit=nope', '?more=1']) await get(`/v1/devices${query}`);
  await get('/v1/devices/device-1');
  for (const what of ['block', 'unblock', 'disconnect']) await post(`/v1/devices/device-1/${what}`);
  for (const body of [{ pairing_code: 'nope' }, { pairing_code: 7 }, { pairing_code: 'x', owner: 'nope' }, { pairing_code: 'x', owner: 'user:' }]) await post('/v1/devices/pair', body);
  await experiments(requests);
  return requests.lines;
}

/** The life of an experiment, and everything that is refused on the way. */
async function experiments(requests) {
  const { get, post } = requests;
  const module = await readFile(policyFile('settle-newest'));
  const put = (query, body, headers = {}) => requests.send({ method: 'POST', path: `/v1/experiments/modules${query}`, headers, body });
  requests.title('experiments: modules');
  await put('?slot=nope', module);
  await put('?slot=target', module);
  await put('?slot=settle', Buffer.from('no module'));
  await put('?slot=settle', module, { 'x-policy-config': '[]' });
  await put('?slot=settle', module, { 'x-policy-config': '{"no_such_setting":1}' });
  const { json: prepared } = await put('?slot=settle', module);
  requests.title('experiments: creation');
  const arms = [{ name: 'control', module: 'current' }, { name: 'treatment', module: prepared.digest }];
  const good = { name: 'trial', slot: 'settle', arms, weights: [5_000, 5_000], salt: 'salt' };
  for (const change of [
    { name: 'No Name' },
    { slot: 'nope' },
    { arms: arms.slice(1) },
    { arms: [arms[0], { name: 'treatment', module: 'nope' }] },
    { arms: [arms[0], { name: 'treatment', module: '0'.repeat(64) }] },
    { weights: [1, 1] },
    { salt: '' },
    { horizon_ms: 1 },
    { guardrails: { stranded: -1 } },
    { more: 1 },
  ]) await post('/v1/experiments', { ...good, ...change });
  requests.title('experiments: one that runs');
  await post('/v1/experiments', good);
  await post('/v1/experiments', good);
  await post('/v1/experiments', { ...good, name: 'second' });
  for (const path of ['', '/trial', '/trial/report']) await get(`/v1/experiments${path}`);
  for (const weights of [[2_500, 7_500], [1], 'nope']) await post('/v1/experiments/trial/weights', { weights });
  for (const what of ['resume', 'pause', 'pause', 'resume']) await post(`/v1/experiments/trial/${what}`, {});
  await post('/v1/experiments/trial/promote', { arm: 'nope' });
  await post('/v1/experiments/trial/abort', { reason: 'seen enough' });
  for (const what of ['abort', 'pause', 'resume', 'promote']) await post(`/v1/experiments/trial/${what}`, {});
  requests.title('experiments: one that is promoted');
  await post('/v1/experiments', { ...good, name: 'better', shadow_only: false, horizon_ms: 60_000, guardrails: { failures: 0.5 } });
  await post('/v1/experiments/better/promote', { arm: 'treatment' });
  await get('/v1/experiments');
  await get('/v1/policies');
}

/** Policies of a cluster at one of its replicas. */
export async function rollouts(replica) {
  const requests = new Requests(replica.admin);
  const { get, post } = requests;
  const slot = async () => (await (await fetch(`${replica.admin}/v1/policies`)).json()).policies.find((policy) => policy.slot === 'settle');
  const settled = (expected, what) => until(async () => {
    const policy = await slot();
    return policy.pending === null && policy.converged && expected(policy);
  }, 3 * PATIENCE_MS, what);
  const push = (query, body, headers = {}) => requests.send({ method: 'POST', path: `/v1/policies/settle/push${query}`, headers, body });
  requests.title('policies of a cluster: before the first push');
  await get('/v1/policies');
  await get('/v1/policies/settle/module');
  await post('/v1/policies/settle/undo');
  await post('/v1/policies/settle/retry', { digest: '0'.repeat(64) });
  await push('', Buffer.alloc(0));
  await push('?config=[]', Buffer.from('x'));
  await push('?more=1', Buffer.from('x'));
  requests.title('policies of a cluster: a push that fails');
  await push('', Buffer.from('no module'));
  await settled(({ failed }) => failed, 'the failed push');
  await get('/v1/policies');
  requests.title('policies of a cluster: a push that serves');
  const { json: pushed } = await push('?force=false', await readFile(policyFile('settle-newest')), { 'x-pointwork-config': '{}' });
  await settled(({ digest }) => digest === pushed.digest, 'the push');
  await get('/v1/policies');
  await get('/v1/policies/settle/module');
  await get(`/v1/policies/settle/module?digest=${'0'.repeat(64)}`);
  await get('/v1/policies/settle/module?more=1');
  requests.title('policies of a cluster: undone');
  await post('/v1/policies/settle/undo');
  await settled(({ digest }) => digest === null, 'the undo');
  await get('/v1/policies');
  requests.title('probes of a cluster');
  for (const path of ['/health', '/health/ready']) await get(path);
  return requests.lines;
}

/** What a replica says while Redis is away, or while it drains. */
export async function unready(replica, title) {
  const requests = new Requests(replica.admin);
  requests.title(title);
  for (const path of ['/health', '/health/live', '/health/ready', '/v1/devices', '/v1/devices/nope', '/v1/experiments']) await requests.get(path);
  await requests.send({ method: 'POST', path: '/v1/policies/settle/push', body: Buffer.from('x') });
  await requests.post('/v1/devices/nope/block');
  return requests.lines;
}
