// The policy directories of a fleet, one for each replica as where a deployment writes its policies into each pod's volume; they outlive the processes.
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_POLICIES, guestFile, policyFile } from '../../clients/support/host.mjs';
import { slotAt } from '../../clients/support/operator.mjs';
import { until } from '../../clients/support/waiting.mjs';

/** What may serve each slot. */
export const CHOICES = {
  target: ['target-first', 'target-least-loaded'],
  grace: ['grace-fixed', 'grace-adaptive'],
  presence: ['presence-seed', 'presence-tolerant'],
  settle: ['settle-hold', 'settle-newest', 'settle-adaptive'],
};

/** Files that must not come to serve. */
export const BROKEN = {
  'no wasm': async () => Buffer.from('a page of an error, saved in place of the module'),
  empty: async () => Buffer.alloc(0),
  cut: async (slot) => (await readFile(policyFile(DEFAULT_POLICIES[slot]))).subarray(0, 20_000),
  "another slot's": async (slot) => readFile(policyFile(slot === 'settle' ? 'grace-fixed' : 'settle-hold')),
};

const HOSTILE = 'pointwork-guest-hostile';

/** A cluster's replicas compile at once, on a machine that is busy. */
const SERVES_MS = 60_000;

export class Directories {
  /** Slot to the policy that is to serve it. */
  wanted = { ...DEFAULT_POLICIES };
  #folder;
  #replicas = 0;

  /** Filled with the default policies. */
  static async make(replicas) {
    const one = new Directories();
    one.#folder = await mkdtemp(join(tmpdir(), 'pointwork-soak-'));
    one.#replicas = replicas;
    for (let index = 0; index < replicas; index += 1) {
      for (const part of ['policies', 'state']) await mkdir(one.#path(index, part), { recursive: true });
    }
    for (const [slot, name] of Object.entries(one.wanted)) await one.#write(slot, await readFile(policyFile(name)));
    return one;
  }

  /** What a replica is told of them. */
  settings(index) {
    return { 'policy.dir': this.#path(index, 'policies'), 'policy.state_dir': this.#path(index, 'state') };
  }

  /** Waits until what they were filled with serves. */
  async begin(replicas) {
    await Promise.all(replicas.map((replica) => this.serves(replica)));
  }

  /** Puts policies, slot to name, into all directories, and waits until they serve. */
  async swap(replicas, names) {
    Object.assign(this.wanted, names);
    await Promise.all(Object.entries(names).map(async ([slot, name]) => this.#write(slot, await readFile(policyFile(name)))));
    await Promise.all(replicas.map((replica) => this.serves(replica, Object.keys(names))));
  }

  /** Puts something that is no policy into a slot of all directories, and waits until each replica has refused it and serves on. */
  async break(replicas, slot, how) {
    await this.#write(slot, await BROKEN[how](slot));
    const refused = ({ name, last_load_error: error }) => name === this.wanted[slot] && error !== null;
    await Promise.all(replicas.map((replica) => serving(replica, slot, refused, `a refused ${how} file`)));
  }

  /** Puts the guest into `target` that traps for some users, and waits until it serves, or did; `untrap` and a swap take it out. */
  async trap(replicas) {
    const trips = await Promise.all(replicas.map(async (replica) => (await slotAt(replica, 'target')).trips));
    for (let index = 0; index < this.#replicas; index += 1) {
      await writeFile(this.#path(index, 'policies', 'target.json'), '{"mode": "trap-rarely"}');
    }
    await this.#write('target', await readFile(guestFile('hostile')));
    await Promise.all(replicas.map(async (replica, index) => {
      const isQuarantined = ({ last_load_error: error }) => error?.kind === 'quarantined';
      // Those for whom it traps may have had it given up already.
      const isKnown = (policy) => policy.name === HOSTILE || policy.trips > trips[index] || isQuarantined(policy);
      const policy = await serving(replica, 'target', isKnown, 'the guest that traps');
      // It was here before: an operator lets it out, or it would be refused.
      if (isQuarantined(policy) && policy.trips === trips[index]) await retry(replica, policy.last_load_error.digest);
    }));
  }

  /** Waits until each replica has given it up. */
  async givenUp(replicas) {
    const isGivenUp = ({ name, quarantined }) => name !== HOSTILE && quarantined.length > 0;
    await Promise.all(replicas.map((replica) => serving(replica, 'target', isGivenUp, 'the breaker to trip')));
  }

  async untrap() {
    for (let index = 0; index < this.#replicas; index += 1) await rm(this.#path(index, 'policies', 'target.json'), { force: true });
  }

  /** Waits until a replica serves what is wanted in these slots, and nothing it read last was refused. */
  async serves(replica, slots = Object.keys(this.wanted)) {
    for (const slot of slots) {
      const isIt = ({ name, last_load_error: error }) => name === this.wanted[slot] && error === null;
      await serving(replica, slot, isIt, this.wanted[slot]);
    }
  }

  remove() {
    return rm(this.#folder, { recursive: true, force: true });
  }

  #path(index, ...parts) {
    return join(this.#folder, `${index}`, ...parts);
  }

  async #write(slot, bytes) {
    const temporary = join(this.#folder, `${slot}.new`);
    await writeFile(temporary, bytes);
    for (let index = 0; index < this.#replicas; index += 1) {
      const file = this.#path(index, 'policies', `${slot}.wasm`);
      await copyFile(temporary, `${file}.new`);
      await rename(`${file}.new`, file);
    }
  }
}

async function serving(replica, slot, expected, what) {
  let last;
  const seen = async () => {
    last = await slotAt(replica, slot);
    return expected(last) && last;
  };
  return until(seen, SERVES_MS, () => `${what} in slot ${slot} of replica ${replica.options.index}; it is ${JSON.stringify(last)}`);
}

async function retry(replica, digest) {
  const { status, text } = await replica.request('/v1/policies/target/retry', { digest });
  if (status !== 200) throw new Error(`a retry at replica ${replica.options.index}: ${status} ${text}`);
}
