// The policy directory: what lies in it is what serves, and what cannot be loaded changes nothing.
import assert from 'node:assert/strict';
import { copyFile, mkdir, open as openFile, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { DEFAULT_POLICIES, policyFile, startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, failed, newUser } from '../support/sockets.mjs';
import { until } from '../support/waiting.mjs';

const NOT_AVAILABLE = failed('RPC method not available');

let host;
afterEach(closeSockets);

/** Two daemons on one method, and a way to see who answers a burst: the first alone, or both. */
async function rivals() {
  const user = newUser();
  for (const name of ['first', 'second']) await daemon(host, { user, methods: ['m'], handler: () => name });
  const caller = await connect(host, { user });
  return async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => call(caller, 'm', 0)));
    for (const answer of answers) assert.equal(answer.ok, true, JSON.stringify(answer));
    return [...new Set(answers.map(({ result }) => result))].sort();
  };
}

const file = (slot) => join(host.policies, `${slot}.wasm`);
const config = (slot) => join(host.policies, `${slot}.json`);
const otherThan = ({ generation }) => (policy) => policy.generation !== generation;

describe('a folder of files', () => {
  before(async () => (host = await startHost()));
  after(() => host.stop());

  test('each slot is told with what serves it', async () => {
    const { status, body } = await host.request('/v1/policies');
    assert.equal(status, 200);
    assert.deepEqual(body.policies.map(({ slot }) => slot), Object.keys(DEFAULT_POLICIES));
    for (const policy of body.policies) {
      assert.equal(policy.source, 'wasm');
      assert.equal(policy.name, DEFAULT_POLICIES[policy.slot]);
      assert.match(policy.version, /^\d+\.\d+\.\d+/);
      assert.match(policy.digest, /^[0-9a-f]{16,64}$/);
      assert.equal(typeof policy.calls, 'number');
      assert.equal(policy.last_load_error, null);
      assert.equal(policy.generation, 1);
      assert.ok(policy.since_ms <= Date.now() && policy.since_ms > Date.now() - 600_000);
      assert.deepEqual(policy.failures, {});
    }
  });

  test('decisions are counted', async () => {
    const answerers = await rivals();
    const { calls } = await host.policy('target');
    await answerers();
    assert.equal((await host.policy('target')).calls, calls + 20);
  });

  test('an atomic rename swaps, and back', async () => {
    const answerers = await rivals();
    const first = await host.policy('target');
    assert.deepEqual(await answerers(), ['first']);
    const second = await host.swap('target', 'target-least-loaded');
    assert.notEqual(second.digest, first.digest);
    assert.notEqual(second.generation, first.generation);
    assert.deepEqual(await answerers(), ['first', 'second']);
    const third = await host.swap('target', 'target-first');
    assert.equal(third.digest, first.digest);
    assert.deepEqual(await answerers(), ['first']);
  });

  test('a rewrite in place swaps', async () => {
    const answerers = await rivals();
    for (const [policy, expected] of [['target-least-loaded', ['first', 'second']], ['target-first', ['first']]]) {
      await writeFile(file('target'), await readFile(policyFile(policy)));
      await host.serving('target', ({ name }) => name === policy, policy);
      assert.deepEqual(await answerers(), expected);
    }
  });

  test('a file that is taken away leaves the native rule, one that comes back serves', async () => {
    const answerers = await rivals();
    await host.swap('target', 'target-least-loaded');
    const loaded = await host.policy('target');
    await rm(file('target'));
    const native = await host.serving('target', ({ source }) => source === 'native', 'the native rule');
    assert.notEqual(native.generation, loaded.generation);
    assert.equal(native.name, undefined);
    assert.deepEqual(await answerers(), ['first']);
    await host.swap('target', 'target-first');
  });

  test('a file that is half written is not loaded, however long it stays so', async () => {
    const before = await host.policy('target');
    const bytes = await readFile(policyFile('target-least-loaded'));
    const half = Math.floor(bytes.length / 2);
    const writer = await openFile(file('target'), 'w');
    try {
      await writer.write(bytes, 0, half, 0);
      // Another slot that changes after it is loaded: the half would have been by then.
      for (const policy of ['presence-tolerant', 'presence-seed']) await host.swap('presence', policy);
      const during = await host.policy('target');
      assert.equal(during.generation, before.generation);
      assert.equal(during.last_load_error, null);
      await writer.write(bytes, half, bytes.length - half, half);
    } finally {
      await writer.close();
    }
    await host.serving('target', ({ name }) => name === 'target-least-loaded', 'the whole file');
    assert.equal((await host.policy('target')).last_load_error, null);
    await host.swap('target', 'target-first');
  });

  test('a bad file leaves the old one serving and says why', async () => {
    const answerers = await rivals();
    const good = await readFile(policyFile('target-first'));
    const bad = {
      empty: Buffer.alloc(0),
      malformed: good.subarray(0, good.length - 100),
      'core-module': Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]),
      'wrong-world': await readFile(policyFile('grace-fixed')),
    };
    await host.swap('target', 'target-least-loaded');
    const serving = await host.policy('target');
    for (const [kind, bytes] of Object.entries(bad)) {
      await writeFile(`${file('target')}.new`, bytes);
      await rename(`${file('target')}.new`, file('target'));
      const told = ({ last_load_error: error }) => error?.kind === kind;
      const after = await host.serving('target', told, `the refusal as ${kind}`);
      assert.equal(after.generation, serving.generation, kind);
      assert.equal(after.digest, serving.digest, kind);
      assert.notEqual(after.last_load_error.message, '');
      assert.deepEqual(await answerers(), ['first', 'second'], kind);
      const logged = () => host.log.some(({ level, ...line }) => level === 'WARN' && JSON.stringify(line).includes('target'));
      assert.ok(await until(logged, 5_000, 'a word in the log'));
    }
    const mended = await host.swap('target', 'target-first');
    assert.equal(mended.last_load_error, null);
  });

  test('a configuration beside the file is a new generation, a wrong one is refused', async () => {
    const plain = await host.swap('target', 'target-least-loaded');
    await writeFile(config('target'), '{"stuck_unanswered": 7}');
    const configured = await host.serving('target', otherThan(plain), 'the configured generation');
    assert.equal(configured.name, plain.name);
    for (const wrong of ['{"stuck_unanswered": 0}', '{"no_such_setting": 1}', '{"stuck', '[]']) {
      const before = (await host.policy('target')).last_load_error;
      await writeFile(config('target'), wrong);
      const told = ({ last_load_error: error }) => error && error.message !== before?.message;
      const refused = await host.serving('target', told, `the reason against ${wrong}`);
      assert.equal(refused.generation, configured.generation, wrong);
    }
    await rm(config('target'));
    const back = await host.serving('target', otherThan(configured), 'the plain generation');
    assert.equal(back.last_load_error, null);
    assert.equal(back.digest, plain.digest);
    await host.swap('target', 'target-first');
  });

  test('a configuration is what the policy goes by', async () => {
    const caller = await connect(host, { user: newUser() });
    const before = await host.policy('grace');
    await writeFile(config('grace'), '{"grace_ms": 0}');
    await host.serving('grace', otherThan(before), 'the configured generation');
    // The policy's own default is 10 s.
    assert.deepEqual(await call(caller, 'nobody', 0, 8_000), NOT_AVAILABLE);
    await rm(config('grace'));
    await host.serving('grace', ({ digest }) => digest === before.digest, 'the plain generation');
  });
});

describe('a Kubernetes ConfigMap', () => {
  before(async () => (host = await startHost({ policies: {} })));
  after(() => host.stop());

  /** As the kubelet does it: a new folder, then `..data` is replaced by a rename. */
  async function project(version, policy, json) {
    const folder = `..2026_01_01_00_00_0${version}.1`;
    await mkdir(join(host.policies, folder));
    await copyFile(policyFile(policy), join(host.policies, folder, 'target.wasm'));
    if (json) await writeFile(join(host.policies, folder, 'target.json'), json);
    await symlink(folder, join(host.policies, '..data_tmp'));
    await rename(join(host.policies, '..data_tmp'), join(host.policies, '..data'));
  }

  test('is followed through the flip of its symlink', async () => {
    const answerers = await rivals();
    assert.deepEqual(await answerers(), ['first']);
    await project(1, 'target-least-loaded');
    for (const name of ['target.wasm', 'target.json']) await symlink(join('..data', name), join(host.policies, name));
    await host.serving('target', ({ name }) => name === 'target-least-loaded', 'the first projection');
    assert.deepEqual(await answerers(), ['first', 'second']);
    await project(2, 'target-first');
    await rm(join(host.policies, '..2026_01_01_00_00_01.1'), { recursive: true });
    await host.serving('target', ({ name }) => name === 'target-first', 'the second projection');
    assert.deepEqual(await answerers(), ['first']);
    await project(3, 'target-least-loaded');
    const plain = await host.serving('target', ({ name }) => name === 'target-least-loaded', 'the third projection');
    await project(4, 'target-least-loaded', '{"stuck_unanswered": 7}');
    await host.serving('target', otherThan(plain), 'the fourth projection, with a configuration');
    assert.deepEqual(await answerers(), ['first', 'second']);
  });
});

test('without a policy the native rules answer', async () => {
  host = await startHost({ policies: {}, settings: { 'rpc.grace_ms': 0 } });
  try {
    const answerers = await rivals();
    assert.deepEqual(await answerers(), ['first']);
    const caller = await connect(host, { user: newUser() });
    assert.deepEqual(await call(caller, 'nobody', 0), NOT_AVAILABLE);
    const { status, body } = await host.request('/health');
    assert.equal(status, 200);
    assert.equal(body.status, 'ok');
    for (const { source } of (await host.request('/v1/policies')).body.policies) assert.equal(source, 'native');
  } finally {
    closeSockets();
    await host.stop();
  }
});
