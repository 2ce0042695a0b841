// A host of the test's own: free ports, a policy directory of its own, and nothing in its log that should not be there.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until, within } from './waiting.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const TARGET = process.env.POINTWORK_TARGET_DIR ?? join(here, '../../../target');
/** The host's program. */
export const BINARY = process.env.POINTWORK_BIN ?? join(TARGET, 'debug/pointwork');

/** Slot and policy: the rules that the host has compiled in, as wasm. */
export const DEFAULT_POLICIES = {
  target: 'target-first',
  grace: 'grace-fixed',
  presence: 'presence-seed',
  settle: 'settle-hold',
};

/** Nobody has a load balancer that has to notice, and a test that leaves calls open is not to wait for them. */
const HASTY_DRAIN = { 'drain.settle_ms': 0, 'drain.deadline_ms': 500, 'drain.close_ms': 200 };

/** A cold start compiles four policies, on a machine that may be busy. */
const READY_MS = 60_000;

/** The built component of a policy. */
export const policyFile = (name) => join(TARGET, 'policies', `${name}.wasm`);

/** The built component of a guest of the tests. */
export const guestFile = (name) => join(TARGET, 'guests', `${name}.wasm`);

/** Runs a command of the binary to its end: `{code, stdout, stderr}`. */
export async function pointwork(...words) {
  const { PATH, HOME } = process.env;
  const child = spawn(BINARY, words.map(String), { env: { PATH, HOME }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  const [stdout, stderr] = [child.stdout, child.stderr].map(async (stream) => {
    let text = '';
    for await (const chunk of stream.setEncoding('utf8')) text += chunk;
    return text;
  });
  const [code] = await within(ended, READY_MS, () => `the end of pointwork ${words.join(' ')}`);
  return { code, stdout: await stdout, stderr: await stderr };
}

class Host {
  /** Where clients connect: scheme, host and port. */
  url;
  /** The path of Socket.IO. */
  path;
  /** Where the admin listener is. */
  admin;
  /** The secret of HS256 tokens. */
  secret = randomBytes(32).toString('hex');
  /** A folder that is removed at the end. */
  folder;
  /** Lines of stderr, parsed; one that is no JSON (a panic) as it stands. */
  log = [];

  #child;
  #ended;

  async start({ settings = {}, policies = DEFAULT_POLICIES, configs = {}, hs256 = true, secret = this.secret, config = '' }) {
    this.secret = secret;
    this.folder = await mkdtemp(join(tmpdir(), 'pointwork-'));
    this.policies = join(this.folder, 'policies');
    await mkdir(this.policies);
    for (const [slot, config] of Object.entries(configs)) {
      await writeFile(join(this.policies, `${slot}.json`), JSON.stringify(config));
    }
    for (const [slot, policy] of Object.entries(policies)) {
      await copyFile(policyFile(policy), join(this.policies, `${slot}.wasm`));
    }
    const file = join(this.folder, 'pointwork.toml');
    await writeFile(file, config);
    const all = {
      'listen.address': '127.0.0.1:0',
      'admin.address': '127.0.0.1:0',
      'policy.dir': this.policies,
      'log.format': 'json',
      ...HASTY_DRAIN,
      ...settings,
    };
    const flags = Object.entries(all).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
    // The shell's own settings stay out of it; a proxy there may be, and none of the host's own connections goes through it.
    const { PATH, HOME } = process.env;
    const env = { PATH, HOME, ALL_PROXY: 'http://127.0.0.1:1', ...(hs256 && { POINTWORK_AUTH_HS256_SECRET: this.secret }) };
    this.#child = spawn(BINARY, ['serve', '--config', file, ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#ended = once(this.#child, 'exit');
    this.#ended.catch(() => {}); // told by the start below
    createInterface({ input: this.#child.stderr }).on('line', (line) => this.log.push(parsed(line)));
    await this.#listening();
    return this;
  }

  async #listening() {
    const lines = createInterface({ input: this.#child.stdout });
    const line = once(lines, 'line').then(([line]) => line);
    const ended = this.#ended.then(([code]) => {
      throw new Error(`the host ended with ${code} before it was ready:\n${this.shownLog()}`);
    });
    const ready = JSON.parse(await within(Promise.race([line, ended]), READY_MS, 'the ready line'));
    ended.catch(() => {}); // from here on an end is seen by `stop`
    const socketio = new URL(ready.listening.socketio);
    this.url = socketio.origin;
    this.path = socketio.pathname;
    this.admin = ready.listening.admin;
  }

  /** Process id. */
  get pid() {
    return this.#child.pid;
  }

  shownLog() {
    return this.log.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  }

  /** Resolves with its exit code when it ends, by whatever. */
  get ended() {
    return this.#ended.then(([code]) => code);
  }

  /** Ends it by a signal; gives its exit code. */
  async end(signal = 'SIGTERM') {
    this.#child.kill(signal);
    const [code] = await within(this.#ended, 20_000, `the host's end after ${signal}`);
    return code;
  }

  /** Ends it in order and fails the test for any error in its log. */
  async stop() {
    try {
      if (this.#child.exitCode === null && this.#child.signalCode === null) {
        assert.equal(await this.end(), 0, `exit code after SIGTERM\n${this.shownLog()}`);
      }
      const bad = this.log.filter((line) => typeof line === 'string' || line.level === 'ERROR');
      assert.deepEqual(bad, [], 'the log holds an error');
    } finally {
      this.#child.kill('SIGKILL');
      await rm(this.folder, { recursive: true, force: true });
    }
  }

  /** GET or POST of the admin API: `{status, body}`. */
  async request(path, body) {
    const options =
      body === undefined
        ? {}
        : {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: typeof body === 'string' ? body : JSON.stringify(body),
          };
    const response = await fetch(this.admin + path, options);
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  }

  /** POST /v1/emit, which must be taken. */
  async emit(request) {
    const { status, body } = await this.request('/v1/emit', request);
    assert.equal(status, 200, JSON.stringify(body));
  }

  /** What serves a slot, as the admin API tells it. */
  async policy(slot) {
    const { status, body } = await this.request('/v1/policies');
    assert.equal(status, 200);
    const found = body.policies.find((policy) => policy.slot === slot);
    assert.ok(found, `no slot ${slot} in ${JSON.stringify(body)}`);
    return found;
  }

  /** Puts a policy into a slot by an atomic rename. */
  async place(slot, name) {
    const file = join(this.policies, `${slot}.wasm`);
    await copyFile(policyFile(name), `${file}.new`);
    await rename(`${file}.new`, file);
  }

  /** As `place`, and waits until it serves; gives its status. */
  async swap(slot, name) {
    await this.place(slot, name);
    return this.serving(slot, (policy) => policy.name === name, name);
  }

  /** Waits until what serves a slot is as `expected` says. */
  async serving(slot, expected, what) {
    let last;
    const seen = async () => expected((last = await this.policy(slot))) && last;
    return until(seen, 20_000, () => `${what} in slot ${slot}; it is ${JSON.stringify(last)}`);
  }

  /** Resident memory in KiB. */
  async residentKib() {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]);
  }
}

/**
 * Starts a host and waits until it listens.
 * `settings`: further `section.key` settings; `policies`: slot to policy; `configs`: slot to a policy's configuration;
 * `hs256`: whether tokens of `secret` are good; `secret`: for hosts that share one, else each has its own.
 */
export async function startHost(options = {}) {
  const host = new Host();
  try {
    return await host.start(options);
  } catch (error) {
    await host.stop().catch(() => {}); // the first error is the one to see
    throw error;
  }
}

function parsed(line) {
  try {
    return JSON.parse(line);
  } catch {
    return line;
  }
}
