// Clients that come, call once and go; and those that talk nonsense.
import { connect, newUser } from '../../../clients/support/sockets.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { Worker } from './callers.mjs';
import { Direct } from './doors.mjs';
import { Nonsense } from './nonsense.mjs';

const VISIT_EVERY_MS = 800;
const NONSENSE_EVERY_MS = 1_200;

/** Nonsense is bounded in count, whatever the run's length. */
const NONSENSE_MAX = 1_500;

export class Visitors {
  /** Visits that came to their end. */
  visits = 0;
  /** Visits that did not: `{from, to, why}`. */
  failed = [];
  /** What nonsense was met by. */
  nonsense = { sent: 0, answered: 0, wrong: [] };
  #fleet;
  #calls;
  #draw;
  #talker;
  #timers = [];
  #running = new Set();

  constructor(fleet, calls, draw) {
    this.#fleet = fleet;
    this.#calls = calls;
    this.#draw = draw;
    this.#talker = new Nonsense(fleet, draw);
  }

  start() {
    const every = (ms, act) => this.#timers.push(setInterval(() => this.#run(act), ms));
    every(VISIT_EVERY_MS, () => this.#visit());
    every(NONSENSE_EVERY_MS, () => this.#talkNonsense());
  }

  async stop() {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running);
  }

  #run(act) {
    const one = act();
    this.#running.add(one);
    one.finally(() => this.#running.delete(one));
  }

  #place() {
    const up = this.#fleet.replicas.filter(({ isUp }) => isUp);
    return up.length > 0 ? new Direct(this.#fleet, this.#draw.of(up).options.index) : undefined;
  }

  async #visit() {
    const [from, to, transport] = [this.#place(), this.#place(), this.#draw.of(['websocket', 'websocket', 'polling'])];
    if (!from || !to) return;
    const startedAt = performance.now();
    const user = newUser('visitor');
    // As in the field, each daemon's method has its id in front: the metrics must not grow by it.
    const method = `${user}:once`;
    const worker = new Worker(this.#calls, to, { user, methods: [method], transport });
    let caller;
    try {
      caller = await connect(from, { user, transport });
      await until(() => worker.isWhole, 20_000, 'a visiting daemon');
      const record = await this.#calls.make(caller, method);
      Object.assign(record, { path: new Set([from.at, to.at]), isVisit: true });
      this.visits += 1;
    } catch (error) {
      this.failed.push({ from: startedAt, to: performance.now(), why: error.message });
    } finally {
      caller?.disconnect();
      worker.socket.disconnect();
    }
  }

  async #talkNonsense() {
    const place = this.#place();
    if (!place || this.nonsense.sent >= NONSENSE_MAX) return;
    this.nonsense.sent += 1;
    const startedAt = performance.now();
    try {
      await this.#talker.talk(place);
      this.nonsense.answered += 1;
    } catch (error) {
      this.nonsense.wrong.push({ from: startedAt, to: performance.now(), why: error.message });
    }
  }
}
