// Decision records of a host that serves: what it keeps, what it writes and where, and that what was recorded can be replayed.
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { startCluster, stopCluster } from '../fleet/cluster.mjs';
import { DeviceSocket, registration } from '../devices/devices.mjs';
import { DEFAULT_POLICIES, pointwork, policyFile, startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, newUser, register, succeeded } from '../support/sockets.mjs';
import { until } from '../support/waiting.mjs';

/** Only answers count here, and the machine may be busy: no decision is to be the native rule's. */
const DEADLINES = Object.fromEntries(Object.keys(DEFAULT_POLICIES).map((slot) => [`policy.${slot}.deadline_ms`, 1_000]));
const MIB = 1 << 20;

afterEach(closeSockets);

/** Calls, one of them before its daemon is there, one whose daemon leaves; and a device with a second socket: all slots are asked. */
async function everySlot(host) {
  const user = newUser();
  const caller = await connect(host, { user });
  const early = call(caller, 'early', { secret: 'sesame-in' });
  const socket = await daemon(host, { user, methods: ['work'], handler: ({ method }) => (method === 'late' ? undefined : 'sesame-out') });
  await register(socket, 'early');
  assert.deepEqual(await early, succeeded('sesame-out'));
  for (let i = 0; i < 20; i += 1) assert.deepEqual(await call(caller, 'work', { secret: 'sesame-in', i }), succeeded('sesame-out'));
  await register(socket, 'late');
  const late = call(caller, 'late');
  await until(async () => (await host.policy('target')).calls >= 22, undefined, 'the late call to be sent');
  socket.disconnect();
  assert.equal((await late).ok, false);
  const device = newUser('device');
  const words = registration(host, device, { user });
  const first = DeviceSocket.register(host, words);
  await first.registered();
  await DeviceSocket.register(host, words).throttled();
  return { user, device, words };
}

const linesOf = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
const fetched = async (host, query = '') => (await fetch(`${host.admin}/v1/policies/records${query}`)).text();

/** `policy replay` of a file: the JSON that it prints. */
async function replayed(policy, records) {
  const { code, stdout, stderr } = await pointwork(
    'policy', 'replay', '--policy', policyFile(policy), '--records', records, '--deadline-ms', 1_000, '--json');
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

describe('in memory', () => {
  let host;
  before(async () => (host = await startHost({ settings: DEADLINES })));
  after(() => host?.stop());

  test('every decision is there, and nothing that a client sent', async () => {
    const { user, device, words } = await everySlot(host);
    const text = await fetched(host);
    const records = linesOf(text);
    for (const slot of Object.keys(DEFAULT_POLICIES)) {
      const { calls, digest } = await host.policy(slot);
      const own = records.filter((record) => record.slot === slot);
      assert.ok(calls > 0 && own.length === calls, `${slot}: ${own.length} of ${calls}`);
      assert.ok(own.every((record) => record.by === 'wasm' && record.failure === null && record.digest === digest));
    }
    const ids = records.map(({ id }) => Number(id.split('/')[1]));
    assert.deepEqual(ids, [...ids].sort((a, b) => a - b), 'the newest is the last');
    for (const told of ['sesame', user, device, words.device_token, words.fingerprint, host.secret]) {
      assert.ok(!text.includes(told), told);
    }
  });

  test('a part is asked for by slot and number', async () => {
    const all = linesOf(await fetched(host));
    const targets = all.filter(({ slot }) => slot === 'target');
    assert.deepEqual(linesOf(await fetched(host, '?slot=target')), targets);
    assert.deepEqual(linesOf(await fetched(host, '?slot=target&limit=3')), targets.slice(-3));
    assert.deepEqual(linesOf(await fetched(host, '?limit=2')), all.slice(-2));
    assert.equal(await fetched(host, '?limit=0'), '');
    for (const wrong of ['?slot=sale', '?limit=-1', '?limit=x', '?more=1']) {
      const response = await fetch(`${host.admin}/v1/policies/records${wrong}`);
      assert.equal(response.status, 400, wrong);
      assert.equal(typeof (await response.json()).error, 'string');
    }
  });

  test('policy record writes them, policy replay agrees in all with the same module', async () => {
    const out = join(host.folder, 'records.jsonl');
    const { code, stdout, stderr } = await pointwork('policy', 'record', '--out', out, '--admin-url', host.admin);
    assert.equal(code, 0, stderr);
    const records = linesOf(await readFile(out, 'utf8'));
    assert.match(stdout, new RegExp(`^${records.length} records \\(grace \\d+, presence \\d+, settle \\d+, target \\d+\\) in `));
    for (const [slot, policy] of Object.entries(DEFAULT_POLICIES)) {
      const found = await replayed(policy, out);
      const number = records.filter((record) => record.slot === slot).length;
      assert.deepEqual([found.read, found.of_slot, found.agreed], [records.length, number, number], JSON.stringify(found));
      assert.equal(found.agreed_of_this_generation, number);
    }
    const newest = await replayed('settle-newest', out);
    assert.deepEqual(newest.cells.map(({ recorded, here }) => [recorded, here]), [['refuse', 'accept']]);
  });

  test('a line that was edited is refused with its number', async () => {
    const out = join(host.folder, 'edited.jsonl');
    const lines = (await fetched(host)).split('\n');
    lines[2] = lines[2].replace('"now-ms":', '"now-ms":"soon","was":');
    await writeFile(out, lines.join('\n'));
    const { code, stdout, stderr } = await pointwork('policy', 'replay', '--policy', policyFile('settle-hold'), '--records', out);
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /edited\.jsonl: line 3: /);
  });

  test('nobody there, and a slot that is none, are said', async () => {
    const nobody = await pointwork('policy', 'record', '--out', join(host.folder, 'x'), '--admin-url', 'http://127.0.0.1:1');
    assert.equal(nobody.code, 1);
    assert.match(nobody.stderr, /no answer from http:\/\/127\.0\.0\.1:1/);
    assert.equal((await pointwork('policy', 'record', '--out', 'x', '--slot', 'sale')).code, 2);
  });
});

describe('in files', () => {
  test('they are passed on, hold whole lines, and go on after a restart', async (t) => {
    const settings = { ...DEADLINES, 'policy.records.ring': 0, 'policy.records.file_mib': 1, 'policy.records.files': 2 };
    const folder = await mkdtemp(join(tmpdir(), 'pointwork-records-'));
    t.after(() => rm(folder, { recursive: true }));
    const file = join(folder, 'kept.jsonl');
    const lines = async (path) => linesOf(await readFile(path, 'utf8'));
    const host = await startHost({ settings: { ...settings, 'policy.records.file': file } });
    try {
      // A record of such a method is a little longer than it: more than two files of them.
      const method = 'm'.repeat(4_000);
      const user = newUser();
      await daemon(host, { user, methods: [method], handler: () => 1 });
      const caller = await connect(host, { user });
      const calls = Math.ceil((2.5 * MIB) / method.length);
      for (let made = 0; made < calls; made += 100) {
        await Promise.all(Array.from({ length: 100 }, () => call(caller, method)));
      }
      assert.equal(await fetched(host), '', 'none in memory');
    } finally {
      await host.stop();
    }
    assert.deepEqual((await readdir(folder)).sort(), ['kept.jsonl', 'kept.jsonl.1']);
    for (const name of await readdir(folder)) assert.ok((await stat(join(folder, name))).size <= MIB, name);
    const [before, now] = [await lines(`${file}.1`), await lines(file)];
    const ids = [...before, ...now].map(({ id }) => Number(id.split('/')[1]));
    assert.deepEqual(ids, ids.map((_, i) => ids[0] + i), 'none is missing between them');
    assert.ok(ids[0] > 1, 'the first file is gone');
    assert.equal((await replayed('target-first', `${file}.1`)).agreed, before.length);

    await appendFile(file, '{"v":1,"id"');
    const again = await startHost({ settings: { ...settings, 'policy.records.file': file } });
    await again.stop();
    assert.deepEqual(await lines(file), now, 'the line that was cut off is taken away');
  });

  test('a file that cannot be written stops the start and is named', async () => {
    const start = startHost({ settings: { 'policy.records.file': '/no/such/folder/r.jsonl' } });
    await assert.rejects(start, /policy\.records\.file: \/no\/such\/folder\/r\.jsonl/);
    await assert.rejects(startHost({ settings: { 'policy.records.stream': true } }), /policy\.records\.stream: there is no redis\.url/);
    await assert.rejects(startHost({ settings: { 'policy.records.sample': 1.5 } }), /must be a share from 0 to 1/);
  });
});

describe('in a Redis stream', () => {
  const STREAM = 'socket.io#decisions';
  const KEPT = 100;
  let fleet;
  before(async () => {
    const settings = { ...DEADLINES, 'policy.records.stream': true, 'policy.records.stream_max': KEPT };
    fleet = await startCluster(2, { settings });
  });
  after(() => fleet && stopCluster(fleet));

  test('it is bounded, and what it holds can be replayed', async (t) => {
    const user = newUser();
    const [near, far] = fleet.replicas;
    await daemon(far, { user, methods: ['work'], handler: () => 1 });
    const callers = await Promise.all([near, far].map((place) => connect(place, { user })));
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => call(callers[i % 2], 'work')));
    }
    const records = async () => {
      const entries = await fleet.redis.command('XRANGE', STREAM, '-', '+');
      return entries.map(([, [field, record]]) => {
        assert.equal(field, 'record');
        return record;
      });
    };
    const written = async () => {
      const texts = await Promise.all([near, far].map(async (replica) => (await replica.request('/metrics')).text));
      const counts = texts.map((text) => Number(/^pointwork_records_written_total\{sink="stream"\} (\d+)$/m.exec(text)?.[1] ?? 0));
      return counts.reduce((sum, count) => sum + count, 0);
    };
    await until(async () => (await written()) >= 500, undefined, 'all records to be written');
    const kept = await records();
    // Redis trims whole nodes of at most 4 KiB.
    assert.ok(kept.length >= KEPT && kept.length <= KEPT + 20, `${kept.length} entries`);
    const replicas = new Set(kept.map((line) => JSON.parse(line).id.split('/')[0]));
    assert.equal(replicas.size, 2, 'of both replicas');
    const folder = await mkdtemp(join(tmpdir(), 'pointwork-records-'));
    t.after(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'stream.jsonl'), kept.join('\n'));
    const found = await replayed('target-first', join(folder, 'stream.jsonl'));
    assert.deepEqual([found.of_slot, found.agreed], [kept.length, kept.length]);
  });
});
