// Every command of docs/from-a-rule-to-promoted.md, in its order, against a cluster and a lone host that serve devices.
//
// The page's `cargo` works on a copy of the workspace, with a target folder of its own: the policy that it writes is not left behind
// here. What both workspaces depend on is compiled once, in the build folder of this one.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startCluster, stopCluster } from '../fleet/cluster.mjs';
import { DeviceSocket, registration } from '../devices/devices.mjs';
import { BINARY, policyFile, startHost } from '../support/host.mjs';
import { closeSockets, newUser } from '../support/sockets.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
const page = join(root, 'docs/from-a-rule-to-promoted.md');
const target = resolve(dirname(policyFile('')), '..');
const copy = join(target, 'tmp/docs-page');

/** The first run compiles xtask and the SDK, but nothing that they depend on. */
const BLOCK_MS = 600_000;

/** `[{heading, script}]`: the fenced `sh` blocks in their order. */
async function blocks() {
  const found = [];
  let heading;
  let script;
  for (const line of (await readFile(page, 'utf8')).split('\n')) {
    if (script) {
      if (line === '```') [script] = [void found.push({ heading, script: script.join('\n') })];
      else script.push(line);
    } else if (line.startsWith('## ')) heading = line.slice(3);
    else if (line === '```sh') script = [];
    else assert.ok(!line.startsWith('```'), `a block that no test runs: ${line}`);
  }
  assert.equal(script, undefined, 'the last block ends');
  return found;
}

/** The workspace without what was built in it; in place of the copy of an earlier run, whose target folder stays. */
async function copyWorkspace() {
  await mkdir(copy, { recursive: true });
  for (const name of await readdir(copy)) if (name !== 'target') await rm(join(copy, name), { recursive: true });
  // A configuration that the page wrote there would be the next run's from the beginning.
  await rm(join(copy, 'target/policies'), { recursive: true, force: true });
  // By cargo's mark, not by the name: a template is called target, too.
  const isBuilt = (path) => ['node_modules', '.git'].includes(basename(path)) || existsSync(join(path, 'CACHEDIR.TAG'));
  for (const name of await readdir(root)) {
    // Not the root at once: a folder cannot be copied into itself, not even where all of it that matters is left out.
    if (isBuilt(join(root, name))) continue;
    await cp(join(root, name), join(copy, name), { recursive: true, filter: (path) => !isBuilt(path), preserveTimestamps: true });
  }
}

/** Runs a block as a reader would; gives what it printed. */
function run(script, environment) {
  // What cargo set for this test is about another workspace.
  const own = Object.entries(process.env).filter(([name]) => !/^(CARGO|POINTWORK)_/.test(name));
  const env = {
    ...Object.fromEntries(own),
    PATH: [dirname(BINARY), process.env.PATH].join(delimiter),
    CARGO_NET_OFFLINE: 'true',
    CARGO_BUILD_BUILD_DIR: target,
    ...environment,
  };
  return new Promise((resolve, reject) => {
    const options = { cwd: copy, env, timeout: BLOCK_MS, maxBuffer: 1 << 26 };
    // A shell whose standard input is a socket would take itself for a remote one's and read the user's settings.
    execFile('bash', ['--norc', '-euo', 'pipefail', '-c', script], options, (error, stdout, stderr) => {
      if (error) reject(new Error(`${script}\n${error.message}\n${stdout}\n${stderr}`));
      else resolve(stdout);
    });
  });
}

/** Devices that open a duplicate while their first socket is young and alive: the slot `settle` is asked for each. */
async function duplicates(places, devices) {
  const ended = Array.from({ length: devices }, async (_, i) => {
    const [device, place] = [newUser('calm'), places[i % places.length]];
    const words = registration(place, device);
    const one = DeviceSocket.register(place, words);
    await one.registered();
    const two = DeviceSocket.register(place, words);
    assert.equal((await two.throttled()).reason, 'session_settle');
    one.close();
  });
  await Promise.all(ended);
}

describe('from a rule to promoted', () => {
  let fleet;
  let host;
  let all;
  const served = async () => {
    const statuses = await Promise.all(fleet.replicas.map((replica) => replica.request('/v1/policies')));
    return statuses.map(({ text }) => JSON.parse(text).policies.find(({ slot }) => slot === 'settle'));
  };
  const servedAre = (expected, what) =>
    until(async () => (await served()).every(expected), PATIENCE_MS, () => `${what} on every replica`);
  const isCalm = ({ source, name }) => source === 'wasm' && name === 'settle-calm';
  const isNative = ({ source }) => source === 'native';

  /** What holds after each block of a heading, by what it printed. */
  const expected = {
    'Write it': [(out) => assert.match(out, /policies\/settle-calm/)],
    'Check it': [(out) => assert.match(out, /settle-calm 0\.1\.0 for slot settle[^]*\nvectors {5}(\d+) of \1 as they should be/)],
    // All that was recorded was refused for the host's window, and would have been for a longer one.
    'Ask it what was asked already': [(out) => assert.match(out, /refuse *-> refuse, other span +5\n/)],
    'Play it in simulated worlds': [(out) => assert.match(out, /\nflips/)],
    'A single host': [() => host.serving('settle', isCalm, 'settle-calm')],
    'In the shadow': [
      async (out) => {
        assert.match(out, /calm-shadow/);
        await duplicates(fleet.replicas, 40);
        assert.ok((await served()).every(isNative), 'a shadow never serves');
      },
      (out) => assert.match(out, /refuse/),
    ],
    '5 % of the devices': [
      async (out) => {
        assert.match(out, /too early/);
        await duplicates(fleet.replicas, 40);
      },
    ],
    'Read it, and raise it': [(out) => assert.match(out, /too early/)],
    'Promote it, or go back': [
      () => servedAre(isCalm, 'settle-calm'),
      () => servedAre(isNative, 'the native rule'),
      () => servedAre(isNative, 'the native rule'),
    ],
  };

  before(async () => {
    all = await blocks();
    await copyWorkspace();
    host = await startHost();
    fleet = await startCluster(2, { settings: { 'policy.source': 'cluster' } });
    await duplicates(fleet.replicas, 10);
  });
  after(async () => {
    closeSockets();
    await host?.stop();
    if (fleet) await stopCluster(fleet);
  });

  test('every command works, in the order of the page', async (t) => {
    const names = [...new Set(all.map(({ heading }) => heading))];
    assert.deepEqual(names, Object.keys(expected), 'each section of the page is looked at');
    for (const name of names) {
      await t.test(name, async () => {
        const scripts = all.filter(({ heading }) => heading === name);
        assert.equal(scripts.length, expected[name].length, 'each block is looked at');
        for (const [index, { script }] of scripts.entries()) {
          const environment = {
            POINTWORK_ADMIN_ADDRESS: new URL(fleet.replicas[0].admin).host,
            POINTWORK_POLICY_DIR: host.policies,
          };
          await expected[name][index](await run(script, environment));
        }
      });
    }
  });
});
