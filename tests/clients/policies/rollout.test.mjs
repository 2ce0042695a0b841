// Policies of a cluster: pushed to one replica, prepared by all, served by all or by none, while clients call all the time.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, before, describe, test } from 'node:test';
import { Calls, bad, shownFailures } from '../support/calls.mjs';
import { counted, startCluster, stopCluster } from '../fleet/cluster.mjs';
import { DeviceSocket, registration } from '../devices/devices.mjs';
import { policyFile, startHost } from '../support/host.mjs';
import { converged, guestFile, pointwork, slotAt, uidOf } from '../support/operator.mjs';
import { connect, daemon, newUser } from '../support/sockets.mjs';
import { unlucky } from '../support/unlucky.mjs';
import { until } from '../support/waiting.mjs';

const FIRST = policyFile('target-first');
const LEAST = policyFile('target-least-loaded');
const HOSTILE = guestFile('hostile');
const STUBBORN = guestFile('stubborn');
/** How long a device's holder is held by the native rule. */
const WINDOW_MS = 100;
/** Each caller of the load calls so often. */
const CALL_EVERY_MS = 20;

describe('policies of a cluster', () => {
  let fleet;
  let folder;
  let calls;
  let load;
  const at = (index) => fleet.replicas[index].admin;
  const digestAt = async (index, slot = 'target') => (await slotAt(fleet.replicas[index], slot)).digest;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pointwork-rollout-'));
    fleet = await startCluster(3, {
      settings: { 'policy.source': 'cluster', 'policy.breaker_failures': 2, 'policy.rollout_timeout_ms': 20_000, 'device.settle_ms': WINDOW_MS },
      // Less than the guest wants that is pushed to fail there.
      settingsOf: (index) => (index === 2 ? { 'policy.target.memory_mib': 3 } : {}),
    });
    calls = new Calls();
    // The third replica is there to be killed.
    const user = newUser();
    const places = fleet.replicas.slice(0, 2);
    for (const place of places) await daemon(place, { user, methods: ['m'], handler: () => 'done' });
    const callers = await Promise.all(places.map((place) => connect(place, { user })));
    // Every daemon is known everywhere before the first call counts.
    for (const caller of callers) await calls.make(caller, 'm');
    load = callers.map((caller) => calls.load(caller, 'm', CALL_EVERY_MS));
    load.callers = callers;
  });

  after(async () => {
    calls.close();
    await stopCluster(fleet);
    await rm(folder, { recursive: true, force: true });
  });

  /** That calls were made meanwhile, and none failed. */
  async function noneFailed() {
    const from = calls.all.length;
    await until(() => calls.all.length > from + 10 && calls.all[from]?.outcome, 20_000, 'further calls');
    const ended = calls.all.filter(({ outcome }) => outcome);
    assert.equal(bad(ended).length, 0, shownFailures(ended));
  }

  test('before the first push the native rules serve, and status says who rules', async () => {
    const { said, code } = await pointwork(at(0), 'policy', 'list');
    assert.equal(code, 0);
    assert.match(said, /^policies come from the cluster\n/);
    assert.match(said, /^target +native rule .*converged$/m);
    await converged(fleet.replicas, 'settle', null);
  });

  test('a push is prepared by all and served by all, and undone everywhere', async () => {
    const first = await pointwork(at(0), 'policy', 'push', FIRST, '--slot', 'target');
    assert.equal(first.code, 0, first.told);
    assert.match(first.said, /^target: [0-9a-f]{64} serves on all 3 replicas\n$/);
    const digest = await digestAt(0);
    await converged(fleet.replicas, 'target', digest);
    // The slot is told by what the module exports; the configuration makes another generation.
    const second = await pointwork(at(1), 'policy', 'push', LEAST, '--config', '{"stuck_unanswered": 7}');
    assert.equal(second.code, 0, second.told);
    const least = await digestAt(0);
    assert.notEqual(least, digest);
    await converged(fleet.replicas, 'target', least);
    const again = await pointwork(at(2), 'policy', 'push', LEAST, '--config', '{"stuck_unanswered":7}');
    assert.equal(again.code, 0, 'the very same serves already');
    const undone = await pointwork(at(2), 'policy', 'undo', '--slot', 'target');
    assert.equal(undone.code, 0, undone.told);
    await converged(fleet.replicas, 'target', digest);
    await noneFailed();
  });

  test('a module can be pulled with its configuration', async () => {
    const pushed = await pointwork(at(0), 'policy', 'push', LEAST, '--config', '{"stuck_unanswered": 9}');
    assert.equal(pushed.code, 0, pushed.told);
    const out = join(folder, 'pulled.wasm');
    const pulled = await pointwork(at(1), 'policy', 'pull', '--slot', 'target', '--out', out);
    assert.equal(pulled.code, 0, pulled.told);
    assert.deepEqual(await readFile(out), await readFile(LEAST));
    assert.equal(await readFile(join(folder, 'pulled.json'), 'utf8'), '{"stuck_unanswered":9}\n');
    const served = (await slotAt(fleet.replicas[0], 'target')).pointer.history[0];
    const former = await pointwork(at(1), 'policy', 'pull', '--slot', 'target', '--digest', served.slice(0, 12), '--out', out);
    assert.equal(former.code, 0, former.told);
    assert.deepEqual(await readFile(out), await readFile(FIRST));
    const none = await pointwork(at(1), 'policy', 'pull', '--slot', 'grace', '--out', out);
    assert.equal(none.code, 1);
    assert.match(none.told, /the native rule serves this slot/);
  });

  test('a push that one replica cannot prepare switches nothing, and status says which and why', async () => {
    const uid = await uidOf(fleet.replicas[2]);
    const before = await Promise.all(fleet.replicas.map((replica) => slotAt(replica, 'target')));
    const push = ['policy', 'push', HOSTILE, '--slot', 'target', '--config', '{"mode": "configure-allocate"}'];
    const pushed = await pointwork(at(0), ...push);
    assert.equal(pushed.code, 1, pushed.said);
    assert.match(pushed.told, new RegExp(`failed at replica ${uid}: configure-failed: .*; what served before serves everywhere`, 's'));
    await converged(fleet.replicas, 'target', before[0].digest);
    for (const [index, replica] of fleet.replicas.entries()) {
      const { failed, pending, generation } = await slotAt(replica, 'target');
      assert.deepEqual([failed.replica, failed.kind, pending, generation], [uid, 'configure-failed', null, before[index].generation]);
    }
    const { said } = await pointwork(at(1), 'policy', 'status', '--slot', 'target');
    assert.match(said, new RegExp(`failed   the push of [0-9a-f]{64} failed at replica ${uid}: configure-failed: `));
    // By force those switch that can.
    const forced = await pointwork(at(0), ...push, '--force');
    assert.equal(forced.code, 0, forced.told);
    assert.match(forced.said, new RegExp(`serves, but not everywhere: replica ${uid}: ${before[2].digest} .*cannot prepare`));
    const digest = await digestAt(0);
    assert.deepEqual([await digestAt(1), await digestAt(2)], [digest, before[2].digest]);
    assert.equal((await slotAt(fleet.replicas[0], 'target')).converged, false);
    const cannot = () => Promise.all(fleet.replicas.map((replica) => counted(replica, 'pointwork_policy_load_failed', 'slot="target"')));
    assert.deepEqual(await cannot(), [0, 0, 1], 'an alert says so for as long as it holds');
    const undone = await pointwork(at(0), 'policy', 'undo', '--slot', 'target');
    assert.equal(undone.code, 0, undone.told);
    await converged(fleet.replicas, 'target', before[0].digest);
    await until(async () => !(await cannot()).some(Boolean), undefined, 'the gauge to fall');
    await noneFailed();
  });

  test('what is no policy, or too large, or of another slot, is refused', async () => {
    const text = join(folder, 'text.wasm');
    await writeFile(text, 'no wasm');
    const bad = await pointwork(at(0), 'policy', 'push', text, '--slot', 'target');
    assert.deepEqual([bad.code, bad.said], [1, '']);
    const misplaced = await pointwork(at(0), 'policy', 'push', FIRST, '--slot', 'grace');
    assert.match(misplaced.told, /wrong-world/);
    const wrong = await pointwork(at(0), 'policy', 'push', FIRST, '--config', '[]');
    assert.match(wrong.told, /configuration/);
    const refused = await pointwork(at(0), 'policy', 'push', LEAST, '--config', '{"no_such_setting": 1}');
    assert.match(refused.told, /configure-refused/);
    // As large as a policy may be: it goes to every replica, and each says what it is.
    const largest = join(folder, 'largest.wasm');
    await writeFile(largest, Buffer.alloc(16 << 20));
    const empty = await pointwork(at(0), 'policy', 'push', largest, '--slot', 'target');
    assert.match(empty.told, /: malformed: /);
    const body = Buffer.alloc((16 << 20) + 1);
    const large = await fetch(`${at(0)}/v1/policies/target/push`, { method: 'POST', body });
    assert.equal(large.status, 413);
    assert.match((await large.json()).error, /16777217 bytes, more than the 16777216/);
    const slotless = await fetch(`${at(0)}/v1/policies/sale/push`, { method: 'POST', body: 'x' });
    assert.equal(slotless.status, 404);
    await noneFailed();
  });

  test('of two operators at once one is served, and the other is told', async () => {
    const pushes = [8, 9, 10, 11].map((n) =>
      pointwork(at(n % 2), 'policy', 'push', LEAST, '--config', `{"stuck_unanswered": ${n + 20}}`),
    );
    const ends = await Promise.all(pushes);
    const good = ends.filter(({ code }) => code === 0);
    const told = ends.filter(({ code }) => code !== 0).map(({ told }) => told);
    assert.ok(good.length >= 1, told.join('\n'));
    for (const why of told) assert.match(why, /is under way|another change came after it/);
    const { digest, converged: isSo } = await until(async () => {
      const policy = await slotAt(fleet.replicas[0], 'target');
      return policy.converged && policy;
    }, 20_000, 'an end');
    assert.ok(isSo);
    await converged(fleet.replicas, 'target', digest);
    await noneFailed();
  });

  /** Those that live serve another policy than before; the third, which was killed, catches up before it is ready. */
  const othersSwitch = async (before, victim) => {
    await until(async () => (await digestAt(0)) !== before, 20_000, 'the switch of those that live');
    const digest = await digestAt(0);
    await converged(fleet.replicas.slice(0, 2), 'target', digest);
    await victim.start();
    assert.equal(await digestAt(2), digest, 'it is ready, and serves the same');
    await converged(fleet.replicas, 'target', digest);
    await noneFailed();
  };

  test('a replica that is killed between prepared and switch holds nobody up, and catches up before it is ready', async () => {
    const before = await digestAt(0);
    const victim = fleet.replicas[2];
    victim.stop();
    const asked = await pointwork(at(0), 'policy', 'push', FIRST, '--config', '{}', '--wait-ms', '0');
    assert.equal(asked.code, 0, asked.told);
    const isPrepared = async () => {
      const { replicas } = await slotAt(fleet.replicas[0], 'target');
      return Object.values(replicas).filter(({ prepared }) => prepared).length === 2 || (await digestAt(0)) !== before;
    };
    await until(isPrepared, 20_000, 'the other two to be prepared');
    await victim.kill();
    victim.isStopped = false;
    await othersSwitch(before, victim);
  });

  test('one that has prepared is killed before the switch: the others switch', async () => {
    const before = await digestAt(0);
    const [, late, victim] = fleet.replicas;
    // Without its word nobody may switch.
    late.stop();
    const asked = await pointwork(at(0), 'policy', 'push', LEAST, '--config', '{}', '--wait-ms', '0');
    assert.equal(asked.code, 0, asked.told);
    const uid = await uidOf(victim);
    await until(async () => (await slotAt(fleet.replicas[0], 'target')).replicas[uid]?.prepared, 20_000, 'the third to be prepared');
    await victim.kill();
    assert.equal(await digestAt(0), before, 'nobody has switched');
    late.cont();
    await othersSwitch(before, victim);
  });

  test('a policy that traps for one device in a thousand is taken back on every replica, and no device is refused for it', async () => {
    const pushed = await pointwork(at(0), 'policy', 'push', STUBBORN, '--config', '{"mode": "trap-rarely"}');
    assert.equal(pushed.code, 0, pushed.told);
    const digest = /[0-9a-f]{64}/.exec(pushed.said)[0];
    const [first, , third] = fleet.replicas;
    const open = (place, device) => DeviceSocket.register(place, registration(place, device));
    /** A device's next sockets, each after the window of the one before. */
    const moves = async (device, times) => {
      for (let i = 0; i < times; i += 1) {
        await open(i % 2 ? first : third, device).registered();
        await delay(2 * WINDOW_MS);
      }
    };
    await Promise.all(Array.from({ length: 20 }, () => moves(newUser('device'), 3)));
    assert.equal(await digestAt(0, 'settle'), digest, 'it serves');
    const device = unlucky('device');
    // The first is asked about by nobody, each further one meets the trap; two on one replica are one too many.
    await moves(device, 5);
    await converged(fleet.replicas, 'settle', null);
    const { pointer } = await slotAt(first, 'settle');
    assert.deepEqual(pointer.quarantined.map((bad) => bad.digest), [digest]);
    await moves(device, 2);
  });

  test('a policy that traps for one user in a thousand is taken back on every replica, and no call is refused for it', async () => {
    const good = await digestAt(0);
    const push = ['policy', 'push', HOSTILE, '--config', '{"mode": "trap-rarely"}'];
    const pushed = await pointwork(at(0), ...push);
    assert.equal(pushed.code, 0, pushed.told);
    const digest = /[0-9a-f]{64}/.exec(pushed.said)[0];
    const user = unlucky('user');
    await daemon(fleet.replicas[1], { user, methods: ['m'], handler: () => 'done' });
    const caller = await connect(fleet.replicas[1], { user });
    await calls.make(caller, 'm');
    assert.equal(await digestAt(1), digest, 'one failure is borne');
    await calls.make(caller, 'm');
    await converged(fleet.replicas, 'target', good);
    for (const replica of fleet.replicas) {
      const { pointer, quarantined } = await slotAt(replica, 'target');
      assert.deepEqual([pointer.quarantined[0].digest, pointer.quarantined[0].replica], [digest, await uidOf(fleet.replicas[1])]);
      assert.deepEqual(quarantined.map((bad) => bad.digest), [digest]);
    }
    for (let i = 0; i < 10; i += 1) await calls.make(caller, 'm');
    await noneFailed();
    const again = await pointwork(at(1), ...push);
    assert.match(again.told, /is in quarantine, by replica [0-9a-f]{16}: .*`retry` takes it out/);
    const retried = await pointwork(at(1), 'policy', 'retry', '--slot', 'target', digest.slice(0, 12));
    assert.equal(retried.code, 0, retried.told);
    await converged(fleet.replicas, 'target', digest);
    const undone = await pointwork(at(0), 'policy', 'undo', '--slot', 'target');
    assert.equal(undone.code, 0, undone.told);
    await converged(fleet.replicas, 'target', good);
  });

  test('an emptied Redis is filled again by what serves; one that is away takes no push', async () => {
    const digest = await digestAt(0);
    await noneFailed();
    await fleet.redis.command('FLUSHALL');
    await converged(fleet.replicas, 'target', digest);
    const stored = () => fleet.redis.command('EXISTS', `socket.io#policy:module:target:${digest}`);
    assert.equal(await until(stored, 20_000, 'the module'), 1);
    await Promise.all(load.map((one) => one.stop()));
    await fleet.redis.stop();
    const refused = await pointwork(at(0), 'policy', 'push', LEAST, '--config', '{}');
    assert.equal(refused.code, 1, refused.said);
    assert.match(refused.told, /Redis is away: .*what serves goes on serving/);
    assert.equal(await digestAt(0), digest);
    assert.match((await pointwork(at(0), 'policy', 'status')).said, /as it was seen last: Redis does not answer now/);
    await fleet.redis.startEmpty();
    await converged(fleet.replicas, 'target', digest);
    const pushed = await pointwork(at(0), 'policy', 'push', LEAST, '--config', '{}');
    assert.equal(pushed.code, 0, pushed.told);
    // Modules that nothing names any more are gone.
    const keys = await fleet.redis.command('KEYS', 'socket.io#policy:module:target:*');
    const { pointer } = await slotAt(fleet.replicas[0], 'target');
    const named = new Set([pointer.current, ...pointer.history, ...pointer.quarantined.map((bad) => bad.digest)]);
    for (const key of keys) assert.ok(named.has(key.split(':').at(-1)), `${key} is kept for nothing`);
  });
});

describe('where the policy directory rules', () => {
  test('a push is refused, and status says why', async () => {
    const host = await startHost();
    try {
      const pushed = await pointwork(host.admin, 'policy', 'push', FIRST);
      assert.equal(pushed.code, 1);
      assert.match(pushed.told, /policy\.source is `directory`/);
      const { said } = await pointwork(host.admin, 'policy', 'status');
      assert.match(said, /^policies come from the directory\n/);
    } finally {
      await host.stop();
    }
  });

  test('pointers in Redis need a Redis', async () => {
    const { code, told } = await pointwork(undefined, 'config', '--set', 'policy.source=cluster');
    assert.equal(code, 1);
    assert.match(told, /setting `policy\.source` is `cluster`, which needs `redis\.url`/);
  });
});
