// Thousands of calls in flight on one replica all the time, answered whenever their daemons please: each gets its own answer, and the
// memory that they took is given back.
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, count, shownFailures } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

/** How many at once, for how long, and how long a daemon takes at most; in milliseconds. */
const LONG = { inFlight: 10_000, forMs: 60_000, workMaxMs: 20_000 };
const SHORT = { inFlight: 2_000, forMs: 6_000, workMaxMs: 4_000 };

/** A user has a bound of its own. */
const CALLS_PER_USER = 500;

/** Of the replica's memory after a first round, which is what it needs for such a load at all. */
const MEMORY_GROWTH_MAX = 0.1;

/** How long the replica may take to give memory back once the last call has ended. */
const GIVEN_BACK_MS = 10_000;

export default {
  name: 'in-flight',
  seed: '—',
  on: ['pointwork'],
  replicasMin: 2,
  async run(stage) {
    const spans = stage.isShort ? SHORT : LONG;
    const fleet = await stage.fleet();
    const [near, far] = fleet.replicas;
    // Half of the daemons are on the callers' own replica.
    const handle = async ({ params }) => (await delay(params.workMs), params);
    const places = Array.from({ length: spans.inFlight / CALLS_PER_USER }, (_, i) => (i % 2 ? near : far));
    const pairs = await Promise.all(places.map((place) => pair(stage.calls, near, place, { handle })));
    await round(stage, pairs, { ...spans, forMs: 0, workMaxMs: 1_000 });
    const atFirstMib = await settledMib(near);

    const { records, fewest } = await round(stage, pairs, spans);
    const own = records.filter(({ outcome, result, id }) => outcome === 'ok' && result.call === id);
    stage.all('calls answered, each with its own result', own.length, records.length);
    if (bad(records).length > 0) stage.note(shownFailures(records));
    stage.atLeast('calls in flight at any moment of it', fewest, '', { ours: spans.inFlight * 0.95 });
    const answered = await answeredBy(near);
    stage.all('calls that the replica says it answered', answered, count(stage.calls.all, 'ok'));
    const limitMib = Math.ceil(atFirstMib * (1 + MEMORY_GROWTH_MAX));
    const thenMib = await settledMib(near, limitMib);
    stage.atMost('memory before', atFirstMib, ' MiB', {});
    stage.atMost('memory afterwards', thenMib, ' MiB', { ours: limitMib });
  },
};

/** Keeps so many calls in flight for so long, then lets them end; gives their records, and how few were in flight while it lasted. */
async function round({ calls }, pairs, { inFlight, forMs, workMaxMs }) {
  const records = [];
  const endAt = performance.now() + forMs;
  let open = 0;
  let fewest = inFlight;
  const slot = async ({ caller, method }) => {
    do {
      open += 1;
      records.push(await calls.make(caller, method, { workMs: Math.random() * workMaxMs }));
      open -= 1;
    } while (performance.now() < endAt);
  };
  const slots = Array.from({ length: inFlight }, (_, i) => slot(pairs[i % pairs.length]));
  const watch = setInterval(() => performance.now() < endAt && (fewest = Math.min(fewest, open)), 100);
  await Promise.all(slots);
  clearInterval(watch);
  return { records, fewest };
}

/** What the replica has in memory once it is as little as this, or has not become so in time. */
async function settledMib({ pid }, enoughMib = 0) {
  let mib = Infinity;
  const isEnough = async () => (mib = Math.min(mib, await residentMib(pid))) <= enoughMib;
  await until(isEnough, GIVEN_BACK_MS, 'memory to be given back').catch(() => {}); // judged by the caller
  return mib;
}

async function residentMib(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))[1]) / 1_024;
}

/** Calls of all methods that succeeded, as a replica counts them. */
async function answeredBy(replica) {
  const { text } = await replica.request('/metrics');
  const samples = text.matchAll(/^rpc_calls_total\{[^}]*result="success"\} (\d+)$/gm);
  return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
}
