// The book of calls: every rpc-call is awaited with a bound of its own, and it is noted what became of it.
import { setTimeout as delay } from 'node:timers/promises';

/** Beyond anything a server may take: 10 s grace, 30 s for the daemon, and something for a busy machine. */
const BOUND_MS = 45_000;

/** What Socket.IO calls an acknowledgement. */
const ACK_PACKET = 3;

/** A load that is not answered stops growing here. */
const IN_FLIGHT_MAX = 200;

export class Calls {
  /** `{id, method, startedAt, endedAt, ms, outcome, result?, error?}`; `outcome` as in `make`. Times as of `performance.now()`. */
  all = [];
  /** Acknowledgements that came a second time. */
  duplicates = 0;
  #watched = new WeakSet();
  /** How often each call reached a daemon. */
  #handled = new Map();
  #timers = new Set();

  /**
   * Makes a call and resolves with its record. Outcomes: 'ok'; 'failed' with the server's `error`; 'lost' when the caller's own
   * connection ended; 'unanswered' when the bound passed.
   */
  async make(socket, method, params = {}, boundMs = BOUND_MS) {
    this.#watch(socket);
    const record = { id: this.all.length, method, startedAt: performance.now() };
    this.all.push(record);
    const payload = { method, params: { ...params, call: record.id } };
    const bound = new AbortController();
    const late = delay(boundMs, { outcome: 'unanswered' }, { signal: bound.signal });
    late.catch(() => {}); // aborted below
    const answered = socket.emitWithAck('rpc-call', payload).then(judged, () => ({ outcome: 'lost' }));
    Object.assign(record, await Promise.race([answered, late]));
    bound.abort();
    record.endedAt = performance.now();
    record.ms = record.endedAt - record.startedAt;
    return record;
  }

  /** One call each `everyMs`, whether or not the one before was answered; `stop()` resolves with their records once all have ended. */
  load(socket, method, everyMs, params) {
    const made = [];
    let inFlight = 0;
    const timer = setInterval(() => {
      if (inFlight >= IN_FLIGHT_MAX) return;
      inFlight += 1;
      made.push(this.make(socket, method, params).finally(() => (inFlight -= 1)));
    }, everyMs);
    this.#timers.add(timer);
    return {
      stop: () => {
        clearInterval(timer);
        return Promise.all(made);
      },
    };
  }

  /** Ends the loads that are still on. */
  close() {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** For daemons: notes that a request reached one. */
  handled({ params }) {
    if (params?.call !== undefined) this.#handled.set(params.call, (this.#handled.get(params.call) ?? 0) + 1);
  }

  /** How many requests reached a daemon more than once. */
  get repeated() {
    return [...this.#handled.values()].filter((times) => times > 1).length;
  }

  get unanswered() {
    return this.all.filter(({ outcome }) => outcome === undefined || outcome === 'unanswered').length;
  }

  /** The client library drops a second acknowledgement, so it is looked for in what comes in. */
  #watch(socket) {
    if (this.#watched.has(socket)) return;
    this.#watched.add(socket);
    const seen = new Set();
    socket.io.on('packet', ({ type, id }) => {
      if (type !== ACK_PACKET) return;
      if (seen.has(id)) this.duplicates += 1;
      seen.add(id);
    });
  }
}

function judged(answer) {
  return answer?.ok === true ? { outcome: 'ok', result: answer.result } : { outcome: 'failed', error: answer?.error };
}

/** How many of the records ended so. */
export const count = (records, outcome) => records.filter((record) => record.outcome === outcome).length;

/** The records that were not answered with success. */
export const bad = (records) => records.filter(({ outcome }) => outcome !== 'ok');

/** The slowest, in milliseconds; 0 of none. */
export const slowest = (records) => Math.max(0, ...records.map(({ ms }) => ms));

/** The middle one of some numbers. */
export const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** What went wrong and how often: `3 x RPC target disconnected`. */
export function shownFailures(records) {
  const times = new Map();
  for (const { outcome, error } of bad(records)) {
    const name = error ?? outcome;
    times.set(name, (times.get(name) ?? 0) + 1);
  }
  return [...times].map(([name, n]) => `${n} x ${name}`).join(', ');
}
