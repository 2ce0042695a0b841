// Starts again whatever ends, as an orchestrator does.
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive } from '../../clients/fleet/processes.mjs';

const LOOK_EVERY_MS = 20;

export class Supervisor {
  /** `{index, signal, code}` of each end; without a signal of ours nobody asked for it. */
  ends = [];
  /** Why a replica could not be started again. */
  failures = [];
  #replicas;
  /** Replica to the signal that it was sent and how long it is to stay away. */
  #expected = new Map();
  #isStarting = new Set();
  #timer;

  constructor(replicas) {
    this.#replicas = replicas;
    this.#timer = setInterval(() => replicas.forEach((replica) => this.#look(replica)), LOOK_EVERY_MS);
  }

  /** Sends a replica a signal that ends it; it is started again so long after its end. */
  end(replica, signal, awayMs) {
    replica.isUp = false;
    this.#expected.set(replica, { signal, awayMs });
    process.kill(replica.pid, signal);
  }

  close() {
    clearInterval(this.#timer);
  }

  #look(replica) {
    if (this.#isStarting.has(replica) || isAlive(replica.pid)) return;
    this.#isStarting.add(replica);
    const index = this.#replicas.indexOf(replica);
    this.#again(replica, index)
      .catch((error) => this.failures.push(`replica ${index}: ${error.message}`))
      .finally(() => this.#isStarting.delete(replica));
  }

  async #again(replica, index) {
    const { signal, awayMs = 0 } = this.#expected.get(replica) ?? {};
    this.#expected.delete(replica);
    replica.isUp = false;
    // It has ended: this only fetches its code and clears up behind it.
    this.ends.push({ index, signal, code: await replica.end('SIGKILL') });
    await delay(awayMs);
    await replica.start();
  }
}
