// `/metrics` of replicas that did what replicas do: every line is what Prometheus reads, there are not more series than somebody can
// pay for, and the dashboard and the alerts in deploy/ ask for nothing that is not there.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Redis } from '../fleet/redis.mjs';
import { DeviceSocket, registration } from '../devices/devices.mjs';
import { parsed, selected } from '../support/exposition.mjs';
import { startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, next, succeeded } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const METHODS = 500;
const USERS = 300;
const AT_ONCE = 25;
/** Of a replica. */
const SERIES_MAX = 2_000;
/** `metrics.methods_max`, and `other`. */
const LABELS = 51;
/** What Prometheus itself puts to every series, or makes of histograms. */
const GIVEN = ['job', 'instance', 'le'];

const deployed = (path) => fileURLToPath(new URL(`../../../deploy/${path}`, import.meta.url));

let redis;
let hosts;
/** Of each replica: what it gives when all is done. */
let scrapes;

before(async () => {
  redis = await Redis.start();
  const settings = { 'redis.url': `redis://127.0.0.1:${redis.port}` };
  const first = await startHost({ settings });
  hosts = [first, await startHost({ settings, secret: first.secret })];
  const isReady = (host) => fetch(`${host.admin}/health/ready`).then(({ ok }) => ok);
  await until(async () => (await Promise.all(hosts.map(isReady))).every(Boolean), undefined, 'both replicas');
  await work(...hosts);
  scrapes = await Promise.all(hosts.map(scrape));
});
after(async () => {
  closeSockets();
  for (const host of hosts ?? []) await host.stop();
  await redis?.close();
});

async function scrape(host) {
  const response = await fetch(`${host.admin}/metrics`);
  assert.equal(response.status, 200);
  return parsed(await response.text());
}

/** Calls across the two and at one, a device, a swap, a broadcast, and what is refused. */
async function work(near, far) {
  await manyMethods(near, far);
  await manyUsers(near, far);
  const device = DeviceSocket.register(far, registration(far, 'device'));
  await device.registered();
  await near.swap('target', 'target-least-loaded');
  const app = await connect(near, { user: 'app' });
  const told = next(app, 'update');
  await far.emit({ rooms: ['user:app'], event: 'update', args: [{ any: 'thing' }] });
  await told;
  // Before a call, whose answer tells that it was heard.
  app.emit('no such event');
  assert.equal((await call(app, '', 1)).ok, false);
  const remain = async (host) => sum(await scrape(host), 'websocket_connections_total') === 2;
  await until(async () => (await Promise.all([near, far].map(remain))).every(Boolean), undefined, 'those who left to be gone');
}

/** One user with more methods than have labels, called from the other replica. */
async function manyMethods(near, far) {
  const user = 'many-methods';
  const methods = Array.from({ length: METHODS }, (_, index) => `machine-1:method-${index}`);
  const worker = await daemon(far, { user, handler: ({ params }) => params });
  let registered = 0;
  const all = new Promise((resolve) => worker.on('rpc-registered', () => (registered += 1) === METHODS && resolve()));
  for (const method of methods) worker.emit('rpc-register', { method });
  await within(all, undefined, () => `${METHODS} methods; there are ${registered}`);
  const caller = await connect(near, { user });
  for (let at = 0; at < METHODS; at += AT_ONCE) {
    const answers = await Promise.all(methods.slice(at, at + AT_ONCE).map((method, index) => call(caller, method, at + index)));
    assert.deepEqual(answers, Array.from(answers, (_, index) => succeeded(at + index)));
  }
}

/** Users with a method of the same name each, under the id of a machine of their own. */
async function manyUsers(near, far) {
  for (let at = 0; at < USERS; at += AT_ONCE) {
    const one = async (_, index) => {
      const [user, method] = [`user-${at + index}`, `machine-${at + index}:bash`];
      const worker = await daemon(near, { user, methods: [method], handler: ({ params }) => params });
      const caller = await connect(index % 2 === 0 ? near : far, { user });
      assert.deepEqual(await call(caller, method, index), succeeded(index));
      caller.disconnect();
      worker.disconnect();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  }
}

/** The values of a metric's series that have such labels. */
const values = ({ series }, name, labels = {}) =>
  [...series.values()].filter((one) => one.name === name && Object.entries(labels).every(([label, value]) => one.labels[label] === value)).map(({ value }) => value);
const sum = (...of) => values(...of).reduce((total, value) => total + value, 0);

test('500 methods and hundreds of users make fewer than 2,000 series', () => {
  for (const scraped of scrapes) {
    assert.ok(scraped.series.size < SERIES_MAX, `${scraped.series.size} series`);
    const methods = new Set([...scraped.series.values()].filter(({ name }) => name === 'rpc_calls_total').map(({ labels }) => labels.method));
    assert.ok(methods.size <= LABELS, `${methods.size} methods`);
    for (const text of scraped.series.keys()) assert.doesNotMatch(text, /user-\d|machine-\d|many-methods/);
  }
});

test('calls are counted by method and result', () => {
  const [near, far] = scrapes;
  assert.equal(sum(near, 'rpc_calls_total', { result: 'success' }), METHODS + USERS / 2 + (USERS / AT_ONCE) / 2);
  assert.equal(sum(near, 'rpc_calls_total', { result: 'success' }) + sum(far, 'rpc_calls_total', { result: 'success' }), METHODS + USERS);
  assert.equal(sum(near, 'rpc_calls_total', { method: 'bash' }) + sum(far, 'rpc_calls_total', { method: 'bash' }), USERS);
  assert.equal(sum(near, 'rpc_call_duration_seconds_count', { result: 'success' }), sum(near, 'rpc_calls_total', { result: 'success' }));
  assert.deepEqual(values(near, 'rpc_refused_total', { reason: 'method' }), [1]);
  assert.deepEqual(values(near, 'rpc_calls_open'), [0]);
  assert.equal(sum(near, 'rpc_calls_total', { method: 'other' }) >= METHODS - LABELS, true);
});

test('what is connected, and what came from it', () => {
  const [near, far] = scrapes;
  const count = (scraped, type) => values(scraped, 'websocket_connections_total', { type });
  assert.deepEqual([count(near, 'user-scoped'), count(far, 'machine-scoped'), count(far, 'device')], [[2], [1], [1]]);
  assert.deepEqual(values(near, 'websocket_events_total', { event_type: 'other' }), [1]);
  assert.deepEqual(values(far, 'websocket_events_total', { event_type: 'rpc-register' }), [METHODS]);
  assert.deepEqual([values(far, 'pointwork_device_holders'), values(near, 'pointwork_device_holders')], [[1], [0]]);
  assert.deepEqual(values(far, 'pointwork_emits_total'), [1]);
});

test('a swap leaves one policy a slot, and what it cost', () => {
  const [near] = scrapes;
  const infos = [...near.series.values()].filter(({ name }) => name === 'pointwork_policy_info').map(({ labels }) => labels);
  assert.deepEqual(infos.map(({ slot }) => slot).sort(), ['grace', 'presence', 'settle', 'target']);
  const target = infos.find(({ slot }) => slot === 'target');
  assert.deepEqual([target.name, target.source], ['target-least-loaded', 'wasm']);
  assert.match(target.digest, /^[0-9a-f]{8,}$/);
  const asked = sum(near, 'pointwork_policy_decisions_total', { slot: 'target', by: 'wasm' });
  assert.ok(asked > METHODS);
  assert.deepEqual(values(near, 'pointwork_policy_decision_seconds_count', { slot: 'target' }), [asked]);
});

test('the replicas know of each other, and of themselves', async () => {
  for (const [index, scraped] of scrapes.entries()) {
    for (const one of ['pointwork_ready', 'pointwork_cluster_linked', 'pointwork_cluster_complete', 'pointwork_cluster_peers']) {
      assert.deepEqual(values(scraped, one), [1], one);
    }
    for (const medium of ['stream', 'channel']) assert.ok(sum(scraped, 'adapter_published_total', { medium }) > 0, medium);
    assert.ok(values(scraped, 'redis_stream_lag_ms')[0] >= 0);
    const [memory] = values(scraped, 'process_resident_memory_bytes');
    const expected = (await hosts[index].residentKib()) * 1024;
    assert.ok(memory > expected / 2 && memory < expected * 2, `${memory} bytes, of ${expected}`);
    const [started] = values(scraped, 'process_start_time_seconds');
    assert.ok(started > Date.now() / 1000 - 600 && started <= Date.now() / 1000);
    for (const one of ['process_cpu_seconds_total', 'process_open_fds', 'process_max_fds']) assert.ok(values(scraped, one)[0] > 0, one);
  }
});

/** Fails naming what a query asks for that no replica has. */
function assertAsked(queries) {
  const known = new Map();
  for (const { name, labels } of scrapes.flatMap(({ series }) => [...series.values()])) {
    known.set(name, new Set([...(known.get(name) ?? GIVEN), ...Object.keys(labels)]));
  }
  known.set('up', new Set(GIVEN)); // Prometheus's own
  const missing = [];
  for (const { where, expr } of queries) {
    const names = selected(expr);
    assert.ok(names.length > 0, `${where} asks for nothing: ${expr}`);
    for (const { name, labels } of names) {
      if (!known.has(name)) missing.push(`${where}: ${name}`);
      else missing.push(...labels.filter((label) => !known.get(name).has(label)).map((label) => `${where}: ${name}{${label}}`));
    }
  }
  assert.deepEqual(missing, []);
}

test('the dashboard asks for what is there', async () => {
  const dashboard = JSON.parse(await readFile(deployed('grafana/pointwork.json'), 'utf8'));
  const graphs = dashboard.panels.filter(({ type }) => type !== 'row');
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
  assert.deepEqual(rows, ['Calls', 'Sockets', 'Devices', 'Policies', 'Cluster', 'Limits', 'Process']);
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
  const asked = graphs.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ where: title, expr })));
  const marks = dashboard.annotations.list.map(({ name, expr }) => ({ where: name, expr }));
  assert.ok(asked.length > graphs.length / 2 && marks.length > 0);
  assertAsked([...asked, ...marks]);
});

test('the alerts ask for what is there, and each says what to do', async () => {
  const text = await readFile(deployed('prometheus/alerts.yaml'), 'utf8');
  const [, ...rules] = text.split('- alert: ');
  const alerts = rules.map((rule) => ({
    name: /^\w+/.exec(rule)[0],
    expr: /\n +expr: (?:\|\n)?([^]*?)\n +(?:for|labels):/.exec(rule)?.[1],
    summary: /\n +summary: "([^"]+)"/.exec(rule)?.[1],
    runbook: /\n +runbook: (\S+)/.exec(rule)?.[1],
  }));
  assert.ok(alerts.length >= 20);
  const manual = await readFile(fileURLToPath(new URL('../../../docs/operate.md', import.meta.url)), 'utf8');
  for (const { name, expr, summary, runbook } of alerts) {
    assert.ok(expr && summary, `${name} says nothing`);
    assert.equal(runbook, `docs/operate.md#${name.toLowerCase()}`);
    assert.match(manual, new RegExp(`^#+ ${name}$`, 'm'));
  }
  assertAsked(alerts.map(({ name, expr }) => ({ where: name, expr })));
});

test('a name that is not there is found out', () => {
  const expr = 'sum by (le) (rate(rpc_calls_total{result="success", nonsense="1"}[5m])) / on (x) no_such_metric{job="a"} > bool 3';
  assert.deepEqual(selected(expr).map(({ name }) => name), ['rpc_calls_total', 'no_such_metric']);
  assert.throws(() => assertAsked([{ where: 'here', expr }]), /nonsense[^]*no_such_metric/);
});
