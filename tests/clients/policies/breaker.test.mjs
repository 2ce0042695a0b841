// A policy that fails too often is given up while calls go on; the operator's ways back, and what a restart finds.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { DEFAULT_POLICIES, startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, newUser, succeeded } from '../support/sockets.mjs';
import { unlucky } from '../support/unlucky.mjs';
import { until } from '../support/waiting.mjs';

/** Beside the policies: traps for some users. */
const HOSTILE = '../guests/hostile';
const RARELY = { mode: 'trap-rarely' };
const FAILURES_MAX = 5;

let host;
let state;
afterEach(closeSockets);

/** A daemon and a caller; each call must be answered by the daemon. */
async function pair(user) {
  await daemon(host, { user, methods: ['m'], handler: () => 'done' });
  const caller = await connect(host, { user });
  return async (times) => {
    const answers = await Promise.all(Array.from({ length: times }, () => call(caller, 'm', 0)));
    for (const answer of answers) assert.deepEqual(answer, succeeded('done'));
  };
}

const act = (action, body = {}) => host.request(`/v1/policies/target/${action}`, body);
const givenUp = () => host.log.filter((line) => JSON.stringify(line).includes('policy given up'));

describe('a policy that traps on one input in a thousand', () => {
  let bad;

  before(async () => {
    state = await mkdtemp(join(tmpdir(), 'pointwork-state-'));
    host = await startHost({ settings: { 'policy.state_dir': state } });
    await host.swap('target', 'target-least-loaded');
    await host.swap('target', 'target-first');
    await writeFile(join(host.policies, 'target.json'), JSON.stringify(RARELY));
    await host.place('target', HOSTILE);
    bad = (await host.serving('target', ({ name }) => name === 'pointwork-guest-hostile', 'the hostile guest')).digest;
  });
  after(async () => {
    await host.stop();
    await rm(state, { recursive: true, force: true });
  });

  test('is given up for the last good one, and no call fails', async () => {
    const others = await Promise.all(Array.from({ length: 8 }, () => pair(newUser())));
    const calls = await pair(unlucky('user'));
    await Promise.all([...others.map((calls) => calls(50)), calls(FAILURES_MAX - 1)]);
    assert.equal((await host.policy('target')).name, 'pointwork-guest-hostile', 'one less than too many');
    await Promise.all([...others.map((calls) => calls(50)), calls(1)]);
    const policy = await host.policy('target');
    assert.equal(policy.name, 'target-first');
    assert.deepEqual([policy.last_good, policy.undone, policy.trips], [true, false, 1]);
    assert.deepEqual(policy.failures, { trap: FAILURES_MAX });
    assert.equal(policy.quarantined.length, 1);
    assert.equal(policy.quarantined[0].digest, bad);
    assert.match(policy.quarantined[0].why, /5 times .* trap/);
    assert.deepEqual(policy.kept.map(({ name, tripped }) => [name, tripped]), [['pointwork-guest-hostile', true], ['target-least-loaded', false]]);
    await calls(20);
    assert.deepEqual((await host.policy('target')).failures, { trap: FAILURES_MAX }, 'it is asked no more');
    assert.equal(givenUp().length, 1);
    const metrics = await (await fetch(`${host.admin}/metrics`)).text();
    assert.match(metrics, /^pointwork_policy_trips_total\{slot="target"\} 1$/m);
  });

  test('is not loaded again by itself', async () => {
    await utimes(join(host.policies, 'target.wasm'), new Date(), new Date());
    const told = ({ last_load_error: error }) => error?.kind === 'quarantined';
    assert.equal((await host.serving('target', told, 'the refusal')).name, 'target-first');
  });

  test('undo goes back further, to what never failed', async () => {
    const { status, body } = await act('undo');
    assert.equal(status, 200);
    assert.deepEqual([body.name, body.undone, body.last_good], ['target-least-loaded', true, false]);
    assert.equal((await act('undo')).status, 409);
    assert.equal((await host.policy('target')).name, 'target-least-loaded');
  });

  test('retry loads the file again', async () => {
    for (const [digest, status] of [['12', 400], ['no digest at all', 400], ['0'.repeat(12), 404], [7, 422]]) {
      assert.equal((await act('retry', { digest })).status, status, String(digest));
    }
    assert.equal((await host.request('/v1/policies/sale/undo', {})).status, 404);
    const { status, body } = await act('retry', { digest: bad.slice(0, 12) });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body.name, body.digest, body.quarantined, body.last_load_error], ['pointwork-guest-hostile', bad, [], null]);
    const calls = await pair(unlucky('user'));
    await calls(FAILURES_MAX);
    assert.equal((await host.policy('target')).name, 'target-least-loaded');
    assert.equal(givenUp().length, 2);
  });

  test('an undone file stays undone with a new stamp on it, and is loaded again after another one', async () => {
    const before = await host.policy('target');
    // The file before its configuration: it refuses the hostile guest's, and is loaded once that is gone.
    await host.place('target', 'target-first');
    await rm(join(host.policies, 'target.json'));
    await host.serving('target', ({ name }) => name === 'target-first', 'the file');
    const { body } = await act('undo');
    assert.deepEqual([body.digest, body.undone], [before.digest, true]);
    await utimes(join(host.policies, 'target.wasm'), new Date(), new Date());
    await looked();
    const { digest, undone } = await host.policy('target');
    assert.deepEqual([digest, undone], [before.digest, true]);
    await host.place('target', 'target-least-loaded');
    await looked();
    await host.place('target', 'target-first');
    const again = await host.serving('target', ({ name }) => name === 'target-first', 'the file');
    assert.equal(again.undone, false);
  });

  test('does not serve after a restart either', async () => {
    // What serves is written down after it serves.
    const { digest: serving } = await host.policy('target');
    const isWritten = ({ good, quarantined }) => good[0] === serving && quarantined.some(({ digest }) => digest === bad);
    await until(() => readState().then(isWritten), undefined, 'the quarantine and what serves in the state');
    const former = host;
    await former.end();
    const policies = { ...DEFAULT_POLICIES, target: HOSTILE };
    host = await startHost({ policies, configs: { target: RARELY }, settings: { 'policy.state_dir': state } });
    try {
      const policy = await host.policy('target');
      assert.deepEqual([policy.name, policy.last_good], ['target-first', true]);
      assert.equal(policy.last_load_error.kind, 'quarantined');
      assert.equal(policy.last_load_error.digest, bad);
    } finally {
      closeSockets();
      await host.stop();
      host = former;
    }
  });
});

/** The directory was looked at: a slot that changes later is loaded later. */
async function looked() {
  for (const policy of ['presence-tolerant', 'presence-seed']) await host.swap('presence', policy);
}

async function readState() {
  return JSON.parse(await readFile(join(state, 'target', 'state.json'), 'utf8'));
}
