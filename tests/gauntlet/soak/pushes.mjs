// The policies of a fleet whose replicas serve what is pushed to the cluster: as `Directories`, by another way.
import { readFile } from 'node:fs/promises';
import { DEFAULT_POLICIES, guestFile, policyFile } from '../../clients/support/host.mjs';
import { slotAt } from '../../clients/support/operator.mjs';
import { until } from '../../clients/support/waiting.mjs';
import { BROKEN } from './directories.mjs';

/** All replicas compile at once, on a machine that is busy. */
const SERVES_MS = 60_000;

export class Pushes {
  /** Slot to the policy that is to serve it. */
  wanted = { ...DEFAULT_POLICIES };
  #turn = 0;
  /** Of the guest that traps, once it was pushed. */
  #hostile;
  /** The version of what the cluster says of the slot, as it was pushed. */
  #pushedAs;

  settings() {
    return { 'policy.source': 'cluster' };
  }

  /** Has the default policies serve. */
  async begin(replicas) {
    await this.swap(replicas, this.wanted);
  }

  async swap(replicas, names) {
    Object.assign(this.wanted, names);
    await Promise.all(Object.entries(names).map(async ([slot, name]) => {
      await this.#pushed(replicas, slot, await readFile(policyFile(name)));
      await Promise.all(replicas.map((replica) => this.serves(replica, [slot])));
    }));
  }

  /** Pushes something that is no policy; it must be refused, at once or by those who were to prepare it. */
  async break(replicas, slot, how) {
    const { status } = await this.#push(replicas, slot, await BROKEN[how](slot));
    if (status === 202) await at(replicas[0], slot, ({ failed }) => failed, `the push of a ${how} file to fail`);
    else if (status < 400 || status > 499) throw new Error(`the push of a ${how} file: ${status}`);
    await Promise.all(replicas.map((replica) => this.serves(replica, [slot])));
  }

  async trap(replicas) {
    const isBarred = this.#isBarred((await slotAt(replicas[0], 'target')).pointer);
    // An operator lets it out, which pushes it, too, unless Redis has been emptied since and its module is gone.
    const retried = isBarred ? await this.#post(replicas, 'target', 'retry', JSON.stringify({ digest: this.#hostile })) : undefined;
    if (retried && retried.status !== 202) throw new Error(`a retry: ${retried.status} ${JSON.stringify(retried.body)}`);
    let pushed = retried?.body;
    if (!pushed || pushed.digest !== this.#hostile) {
      pushed = await this.#pushed(replicas, 'target', await readFile(guestFile('hostile')), { mode: 'trap-rarely' });
    }
    this.#hostile = pushed.digest;
    this.#pushedAs = pushed.version;
    // Those for whom it traps may have had it given up already; what a replica knows from before this push says nothing.
    const isIt = ({ digest, converged, pointer }) => (digest === this.#hostile && converged) || this.#isBarred(pointer);
    const isKnown = (policy) => policy.pointer.version >= this.#pushedAs && isIt(policy);
    await Promise.all(replicas.map((replica) => at(replica, 'target', isKnown, 'the guest that traps')));
  }

  async givenUp(replicas) {
    const isIt = ({ digest, converged, pointer }) => converged && digest !== this.#hostile && this.#isBarred(pointer);
    const isGivenUp = (policy) => policy.pointer.version > this.#pushedAs && isIt(policy);
    await Promise.all(replicas.map((replica) => at(replica, 'target', isGivenUp, 'the breaker to trip')));
  }

  async untrap() {}

  /** Waits until a replica serves what is wanted in these slots, and says that all do. */
  async serves(replica, slots = Object.keys(this.wanted)) {
    for (const slot of slots) {
      await at(replica, slot, ({ name, converged }) => converged && name === this.wanted[slot], this.wanted[slot]);
    }
  }

  async remove() {}

  async #pushed(replicas, slot, wasm, config = {}) {
    const { status, body } = await this.#push(replicas, slot, wasm, config);
    if (status !== 202) throw new Error(`a push into ${slot}: ${status} ${JSON.stringify(body)}`);
    return body;
  }

  #push(replicas, slot, wasm, config = {}) {
    return this.#post(replicas, slot, `push?${new URLSearchParams({ config: JSON.stringify(config) })}`, wasm);
  }

  #isBarred({ quarantined }) {
    return quarantined.some(({ digest }) => digest === this.#hostile);
  }

  /** At one replica after the other. */
  async #post(replicas, slot, path, body) {
    const { admin } = replicas[(this.#turn += 1) % replicas.length];
    const headers = typeof body === 'string' ? { 'content-type': 'application/json' } : {};
    const response = await fetch(`${admin}/v1/policies/${slot}/${path}`, { method: 'POST', headers, body });
    return { status: response.status, body: await response.json() };
  }
}

function at(replica, slot, expected, what) {
  let last;
  const seen = async () => expected((last = await slotAt(replica, slot)));
  return until(seen, SERVES_MS, () => `${what} in slot ${slot} of replica ${replica.options.index}; it is ${JSON.stringify(last)}`);
}
