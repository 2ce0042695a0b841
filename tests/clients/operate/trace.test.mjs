// A call is one trace over the replicas that have a part in it; and neither the spans nor the log, at whatever level, hold what clients
// keep to themselves. Two replicas, one of Node's, and a collector.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Fleet } from '../fleet/fleet.mjs';
import { counted, stopCluster } from '../fleet/cluster.mjs';
import { Collector } from '../support/collector.mjs';
import { DeviceSocket, deviceToken, registration } from '../devices/devices.mjs';
import { call, connect, daemon, failed, newUser, next, refusal, succeeded } from '../support/sockets.mjs';
import { hs256 } from '../support/tokens.mjs';
import { until } from '../support/waiting.mjs';

const GRACE_MS = 300;
/** Put into whatever must not be told. */
const SECRET = 'sesame-7d1f';

let collector;
let fleet;
let near;
let far;
let node;
before(async () => {
  collector = await Collector.start();
  const settings = { 'trace.otlp_endpoint': collector.url, 'log.filter': 'trace', 'rpc.params_bytes_max': 100_000 };
  fleet = await Fleet.start(['pointwork', 'pointwork', 'node'], { graceMs: GRACE_MS, settings });
  [near, far, node] = fleet.replicas;
});
after(async () => {
  if (fleet) await stopCluster(fleet);
  await collector?.close();
});

/** The spans of the one call of a method, the call's own first. */
async function traced(method, spans) {
  const found = () => {
    const calls = collector.spans.filter(({ attributes }) => attributes['rpc.method'] === method);
    assert.ok(calls.length <= 1, `${calls.length} calls of ${method}`);
    return [...calls, ...collector.spans.filter((one) => one.traceId === calls[0]?.traceId && one !== calls[0])];
  };
  await until(() => found().length >= spans, undefined, () => `${spans} spans of ${method}; there are ${JSON.stringify(found().length)}`);
  return found();
}

const instance = ({ resource }) => resource['service.instance.id'];

test('a call to another replica is one trace with a span of each', async () => {
  const user = newUser();
  await daemon(far, { user, methods: ['across'], handler: ({ params }) => params });
  assert.deepEqual(await call(await connect(near, { user }), 'across', 1), succeeded(1));
  const spans = await traced('across', 2);
  assert.equal(spans.length, 2);
  const [parent, child] = spans;
  assert.deepEqual([parent.name, parent.parentId, child.name, child.parentId], ['rpc.call', '', 'rpc.request', parent.spanId]);
  assert.notEqual(instance(parent), instance(child));
  assert.match(parent.traceId, /^[0-9a-f]{32}$/);
  const { 'pointwork.wait_ms': waitMs, ...attributes } = parent.attributes;
  assert.ok(waitMs >= 0);
  const want = { 'rpc.method': 'across', 'pointwork.result': 'success', 'pointwork.target_replica': instance(child) };
  assert.deepEqual(attributes, want);
  assert.deepEqual(child.attributes, { 'pointwork.answered': true });
  assert.deepEqual([parent.isError, child.isError], [false, false]);
  assert.ok(parent.startNs <= parent.endNs && child.startNs <= child.endNs);
  for (const { resource } of spans) assert.equal(resource['service.name'], 'pointwork');
});

test('a call at one replica is one span, and one that fails says so', async () => {
  const user = newUser();
  await daemon(near, { user, methods: ['here'], handler: ({ params }) => params });
  const caller = await connect(near, { user });
  assert.deepEqual(await call(caller, 'here', 1), succeeded(1));
  assert.deepEqual(await call(caller, 'nowhere', 1), failed('RPC method not available'));
  const [here, ...noMore] = await traced('here', 1);
  assert.deepEqual([here.attributes['pointwork.target_replica'], here.isError, noMore], ['local', false, []]);
  const [nowhere] = await traced('nowhere', 1);
  assert.deepEqual([nowhere.attributes['pointwork.result'], nowhere.isError], ['not_available', true]);
  assert.ok(nowhere.attributes['pointwork.wait_ms'] >= GRACE_MS);
});

test('a Node server passes over the trace', async () => {
  const user = newUser();
  await daemon(node, { user, methods: ['foreign'], handler: (request) => request });
  const answer = await call(await connect(near, { user }), 'foreign', { a: 1 });
  assert.deepEqual(answer, succeeded({ method: 'foreign', params: { a: 1 } }), 'the daemon sees nothing of it');
  const [span, ...noMore] = await traced('foreign', 1);
  assert.deepEqual([span.attributes['pointwork.result'], noMore], ['success', []]);
  assert.match(span.attributes['pointwork.target_replica'], /^[0-9a-f]{16}$/);
});

test('what a collector takes the request of, and rejects, is counted as failed', async () => {
  const user = newUser();
  await daemon(near, { user, methods: ['rejected'], handler: () => 1 });
  const spans = (result) => counted(near, 'pointwork_trace_spans_total', `result="${result}"`);
  const [failures, exported] = await Promise.all([spans('failed'), spans('exported')]);
  collector.rejected = 1;
  assert.deepEqual(await call(await connect(near, { user }), 'rejected'), succeeded(1));
  await until(async () => (await spans('failed')) === failures + 1, undefined, 'a rejected span');
  collector.rejected = 0;
  assert.equal(await spans('exported'), exported);
  await until(() => near.log.some((line) => line.includes('the collector rejects spans')), undefined, 'a line about it');
});

test('what a collector does not take is counted, and no call waits for it', async () => {
  const [user, before] = [newUser(), await counted(near, 'pointwork_trace_spans_total', 'result="failed"')];
  await daemon(near, { user, methods: ['untold'], handler: () => 1 });
  collector.status = 503;
  assert.deepEqual(await call(await connect(near, { user }), 'untold'), succeeded(1));
  const failures = () => counted(near, 'pointwork_trace_spans_total', 'result="failed"');
  await until(async () => (await failures()) === before + 1, undefined, 'a failed span');
  collector.status = 200;
  assert.deepEqual(collector.spans.filter(({ attributes }) => attributes['rpc.method'] === 'untold'), []);
});

// The last: what all of them left behind is looked through.
test('no token, no parameters, no result and no content is in a span or in the log', async () => {
  const user = newUser();
  const content = { text: SECRET, deep: [{ bytes: Buffer.from(SECRET) }] };
  const worker = await daemon(far, { user, methods: ['secret'], handler: () => content });
  const caller = await connect(near, { user });
  const told = next(caller, 'update');
  await far.emit({ rooms: [`user:${user}`], event: 'update', args: [content] });
  await told;
  assert.equal((await call(caller, 'secret', content)).ok, true);
  // What goes wrong is what logs are written of.
  assert.equal((await call(caller, { not: SECRET }, content)).ok, false);
  assert.equal((await call(caller, 'secret', SECRET.repeat(10_000))).ok, false, 'too large');
  for (const event of ['rpc-register', 'rpc-result', 'rpc-resumed', 'session-alive', SECRET]) caller.emit(event, { method: { SECRET: content }, sid: content });
  await refusal(near, { auth: { token: `${SECRET}.${SECRET}.${SECRET}` } });
  await refusal(near, { auth: { token: hs256(SECRET, { sub: SECRET }) } });
  const device = DeviceSocket.register(near, { ...registration(near, 'told'), device_info: content });
  await device.registered();
  device.socket.emit('device:heartbeat', { device_id: content });
  await DeviceSocket.register(near, { ...registration(near, 'other'), device_token: SECRET }).answer();
  worker.disconnect();
  assert.equal((await call(caller, 'secret', content)).ok, false);

  await traced('across', 2);
  await until(() => collector.spans.filter(({ attributes }) => attributes['rpc.method'] === 'secret').length >= 2, undefined, 'the spans');
  const signatures = [near.secret, hs256(near.secret, { sub: user }), deviceToken(near, 'told')].map((text) => text.split('.').at(-1));
  const log = fleet.replicas.filter(({ kind }) => kind === 'pointwork').flatMap((replica) => replica.log).join('\n');
  assert.ok(log.includes('"level":"DEBUG"'), 'it is the whole log');
  for (const secret of [SECRET, Buffer.from(SECRET).toString('base64').slice(0, -2), ...signatures]) {
    assert.ok(!log.includes(secret), `the log holds ${secret}: ${log.split('\n').find((line) => line.includes(secret))}`);
    for (const body of collector.bodies) assert.ok(!body.includes(secret), `a span holds ${secret}`);
  }
});
