// Starts a replica again whenever its process ends, as systemd and Kubernetes do.
import { until } from '../support/waiting.mjs';

/** Until the last line of a process's log was read. */
const LINE_MS = 5_000;

export class Supervisor {
  /** `{code, summary}` of each process that ended: its exit code, and what it said in its last line, if that was a summary. */
  exits = [];
  /** How often it was started again, and was ready. */
  restarts = 0;
  /** Why it could not be started again. */
  error;
  #replica;
  #isOver = false;

  constructor(replica) {
    this.#replica = replica;
    this.#watch().catch((error) => (this.error = error));
  }

  /** From here on an end is an end. */
  stop() {
    this.#isOver = true;
  }

  async #watch() {
    for (;;) {
      const code = await this.#replica.ended();
      if (this.#isOver) return;
      const { kind, log } = this.#replica;
      const summary = kind === 'pointwork' ? await until(() => summaryOf(this.#replica.log), LINE_MS).catch(() => log.at(-1)) : undefined;
      this.exits.push({ code, summary });
      await this.#replica.start();
      this.restarts += 1;
    }
  }
}

/** What a host says when it has left in order: `{signal, sockets_closed, calls_finished, calls_broken_off, took_ms}`. */
export function summaryOf(log) {
  const line = log.findLast((text) => text.includes('"message":"closed"'));
  return line && JSON.parse(line);
}
