// What is done to the fleet: drawn from a seed, one thing at a time.
import { setTimeout as delay } from 'node:timers/promises';
import { Draw } from '../draw.mjs';
import { BROKEN, CHOICES } from './directories.mjs';

/** The replica that is never ended, so that there is a process whose memory can be judged over the whole time. */
export const SPARED = 0;

/** How often each kind is in one round; every round has them in another order. */
const ROUND = ['kill', 'kill', 'term', 'term', 'stop', 'stop', 'redis-restart', 'redis-stop', 'swap', 'swap', 'broken', 'trap', 'cut', 'cut'];

/** How many calls of each unlucky caller trip the breaker, and some more. */
const UNLUCKY_CALLS = 8;

/**
 * Troubles without end: `{kind, replica?, ms, share, picks, pauseMs}`. `ms`: how long it lasts, or the replica is away; `share`: of the connections
 * that are cut; `picks`: numbers of 0 to 1 for whatever else there is to choose; `pauseMs`: how long it is quiet before it.
 */
export function* schedule(draw, replicas) {
  const isSpared = (index) => index === SPARED;
  const ends = Array.from({ length: replicas }, (_, index) => index).filter((index) => !isSpared(index));
  for (;;) {
    for (const kind of draw.shuffled(ROUND)) {
      const common = { kind, picks: Array.from({ length: 4 }, () => draw.next()), pauseMs: draw.between(500, 5_000) };
      if (kind === 'kill' || kind === 'term') yield { ...common, replica: draw.of(ends), ms: draw.between(0, 1_500) };
      else if (kind === 'stop') yield { ...common, replica: draw.between(0, replicas - 1), ms: draw.between(1_000, 3_000) };
      else if (kind === 'redis-restart') yield { ...common, ms: draw.between(500, 4_000) };
      else if (kind === 'redis-stop') yield { ...common, ms: draw.between(1_000, 2_000) };
      else yield { ...common, share: 0.1 + draw.next() * 0.5 };
    }
  }
}

/** `act(stand, trouble)` for each kind: resolves when the trouble itself is over; may note in `trouble.told` what exactly it was. */
export const ACTS = {
  kill: async (stand, { replica, ms }) => ended(stand, replica, 'SIGKILL', ms),
  term: async (stand, { replica, ms }) => ended(stand, replica, 'SIGTERM', ms),

  async stop({ fleet }, trouble) {
    const replica = fleet.replicas[trouble.replica];
    replica.stop();
    await delay(trouble.ms);
    replica.cont();
    trouble.told = `${trouble.ms} ms`;
  },

  async 'redis-restart'({ fleet }, trouble) {
    await fleet.redis.stop();
    await delay(trouble.ms);
    await fleet.redis.startEmpty();
    trouble.told = `away for ${trouble.ms} ms`;
  },

  async 'redis-stop'({ fleet }, trouble) {
    fleet.redis.hang();
    await delay(trouble.ms);
    fleet.redis.resume();
    trouble.told = `${trouble.ms} ms`;
  },

  async swap({ fleet, policies }, trouble) {
    const slots = Object.keys(CHOICES).filter((_, i) => trouble.picks[i] < 0.6);
    const names = Object.fromEntries((slots.length ? slots : ['target']).map((slot) => [slot, another(policies, slot, trouble.picks[3])]));
    trouble.told = Object.values(names).join(', ');
    await policies.swap(fleet.replicas, names);
  },

  async broken({ fleet, policies }, trouble) {
    const slot = pick(Object.keys(CHOICES), trouble.picks[0]);
    const how = pick(Object.keys(BROKEN), trouble.picks[1]);
    trouble.told = `${slot}: ${how}`;
    await policies.break(fleet.replicas, slot, how);
    await policies.swap(fleet.replicas, { [slot]: another(policies, slot, trouble.picks[2]) });
  },

  async trap({ fleet, policies, unlucky }, trouble) {
    await policies.trap(fleet.replicas);
    // Each replica's own breaker has to see it.
    const calls = unlucky.callers.flatMap((caller) => Array.from({ length: UNLUCKY_CALLS }, () => unlucky.call(caller)));
    await Promise.all(calls);
    await policies.givenUp(fleet.replicas);
    await policies.untrap();
    const name = another(policies, 'target', trouble.picks[0]);
    trouble.told = `then ${name}`;
    await policies.swap(fleet.replicas, { target: name });
  },

  async cut(stand, trouble) {
    const all = stand.doors();
    const order = new Draw(trouble.picks[0] * 2 ** 32).shuffled(all);
    trouble.doors = new Set(order.slice(0, Math.ceil(all.length * trouble.share)));
    trouble.told = `${trouble.doors.size} of ${all.length} connections`;
    for (const door of trouble.doors) door.cut();
  },
};

async function ended({ fleet, supervisor }, index, signal, awayMs) {
  const replica = fleet.replicas[index];
  const { pid } = replica;
  supervisor.end(replica, signal, awayMs);
  while (!(replica.isUp && replica.pid !== pid) && supervisor.failures.length === 0) await delay(20);
}

const pick = (list, share) => list[Math.floor(share * list.length)];

/** A policy of the slot other than the one that serves. */
function another({ wanted }, slot, share) {
  return pick(CHOICES[slot].filter((name) => name !== wanted[slot]), share);
}
