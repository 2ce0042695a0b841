// All replicas are asked to stop, one after the other, under load, and a supervisor starts them again: no call fails, and those who have
// to go elsewhere do not come there all at once.
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../clients/support/waiting.mjs';
import { Balancer } from '../../balancer.mjs';
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { app, newUser, pair } from '../../clients.mjs';
import { Supervisor } from '../../../clients/fleet/supervisor.mjs';

const PAIRS = 9;
const CALL_EVERY_MS = 50;
const WORK_MS = 10;
const LOADED_MS = 500;

/** Clients that are just connected, for each replica, and how many are let in at a time. */
const CROWD = 240;
const CROWD_SHORT = 120;
const AT_A_TIME = 60;

/** Of six in the crowd five come back in the moment they are gone, which shows the host's own turns; one as the library does. */
const RAW_OF_SIX = 5;
const RAW = { reconnectionDelay: 1, reconnectionDelayMax: 100, randomizationFactor: 0 };
/** The library's own delay spreads those by so much more. */
const LIBRARY_SPREAD_MS = 1_000;

const SETTLE_MS = 500;
const CLOSE_MS = 5_000;
/** The host closes at least so many a second. */
const CLOSED_PER_SECOND = 100;

/**
 * A bin is a fourth of the time in which the sockets are closed. So each has ten connections or more of those that a replica gets, and
 * that a bin has three times as many by chance is less than one in a million; and this program may be late by half the window without
 * being taken for a stampede, while one, being in a single bin, has four times the mean.
 */
const BINS = 4;
const TIMES_MEAN_MAX = 3;

export default {
  name: 'rolling-restart',
  seed: '—',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const settings = { 'drain.settle_ms': SETTLE_MS, 'drain.deadline_ms': 15_000, 'drain.close_ms': CLOSE_MS };
    const fleet = await stage.fleet({ settings });
    const [atOnce, asLibrary, forPairs] = await Promise.all([1, 2, 3].map(() => Balancer.start(fleet)));
    const supervisors = fleet.replicas.map((replica) => new Supervisor(replica));
    try {
      const handle = async ({ params }) => (await delay(WORK_MS), params);
      const members = await Promise.all(Array.from({ length: PAIRS }, () => pair(calls, forPairs, forPairs, { handle })));
      const crowd = await gathered(fleet.replicas.length * (stage.isShort ? CROWD_SHORT : CROWD), atOnce, asLibrary);
      const loads = members.map(({ caller, method }) => calls.load(caller, method, CALL_EVERY_MS));
      await delay(LOADED_MS);
      const everyone = [...crowd, ...members.flatMap(({ caller, daemon }) => [caller, daemon.socket])];
      for (const [index, supervisor] of supervisors.entries()) {
        const since = performance.now();
        process.kill(fleet.replicas[index].pid, 'SIGTERM');
        const isBack = () => supervisor.error || (supervisor.restarts === 1 && everyone.every(({ connected }) => connected));
        await until(isBack, 90_000, () => `replica ${index} and all clients to be back; away are ${away(everyone)}`);
        if (supervisor.error) throw supervisor.error;
        // Not those that came last, when the replica that left was back: they are a few, and at one time.
        const elsewhere = (arrival) => arrival.at > since && arrival.index !== index;
        judgeRates(stage, `replica ${index} left`, [atOnce, asLibrary].map(({ arrivals }) => arrivals.filter(elsewhere)));
        await delay(LOADED_MS);
      }
      const answers = (await Promise.all(loads.map((load) => load.stop()))).flat();
      await judgeCalls(stage, answers, members);
      judgeExits(stage, fleet, supervisors);
      stage.all('clients that are connected in the end', everyone.filter(({ connected }) => connected).length, everyone.length);
    } finally {
      supervisors.forEach((supervisor) => supervisor.stop());
      await Promise.all([atOnce, asLibrary, forPairs].map((balancer) => balancer.close()));
    }
  },
};

/** A crowd of so many, which comes slowly. */
async function gathered(size, atOnce, asLibrary) {
  const crowd = [];
  while (crowd.length < size) {
    const next = Array.from({ length: Math.min(AT_A_TIME, size - crowd.length) }, (_, i) =>
      i % 6 < RAW_OF_SIX ? app(atOnce, newUser(), RAW) : app(asLibrary, newUser()));
    crowd.push(...(await Promise.all(next)));
  }
  return crowd;
}

const away = (sockets) => sockets.filter(({ connected }) => !connected).length;

/** The largest bin of each replica that stayed, against the mean while the sockets were closed: of those that come back at once, and of all. */
function judgeRates(stage, what, [atOnce, asLibrary]) {
  const closedMs = Math.min(CLOSE_MS, ((atOnce.length + asLibrary.length) / CLOSED_PER_SECOND) * 1_000);
  const limits = { ours: TIMES_MEAN_MAX };
  stage.atMost(`${what}: largest rate, of ${atOnce.length} back at once`, peak(atOnce, closedMs), ' x mean', limits);
  const all = [...atOnce, ...asLibrary].sort((a, b) => a.at - b.at);
  stage.atMost(`${what}: largest rate, of all ${all.length}`, peak(all, closedMs + LIBRARY_SPREAD_MS), ' x mean', limits);
}

function peak(arrivals, windowMs) {
  const began = arrivals[0]?.at;
  const times = [...new Set(arrivals.map(({ index }) => index))].map((index) => {
    const own = arrivals.filter((arrival) => arrival.index === index);
    const bins = new Map();
    for (const { at } of own) {
      const bin = Math.floor(((at - began) * BINS) / windowMs);
      bins.set(bin, (bins.get(bin) ?? 0) + 1);
    }
    return Math.max(...bins.values()) / (own.length / BINS);
  });
  return Math.max(0, ...times);
}

async function judgeCalls(stage, answers, members) {
  // A caller whose own connection ended was given no answer at all; its library told it so, and it may call again.
  const failed = answers.filter(({ outcome }) => outcome === 'failed' || outcome === 'unanswered');
  // All on Node, 2 to 4 of 1,400 fail.
  stage.atMost(`failed of ${answers.length}`, failed.length, '', { ours: 0, seed: Math.ceil(answers.length / 100) });
  if (failed.length > 0) stage.note(shownFailures(failed));
  stage.atMost("lost with the caller's own connection", count(answers, 'lost'), '', {});
  stage.atMost('slowest', slowest(answers), ' ms', { ours: 10_000, seed: 12_000 });
  const after = await Promise.all(members.map(({ caller, method }) => stage.calls.make(caller, method)));
  stage.atMost('failed when all were back', bad(after).length, '', { ours: 0, seed: 0 });
}

function judgeExits(stage, fleet, supervisors) {
  const ours = fleet.of('pointwork');
  const exits = ours.flatMap((index) => supervisors[index].exits);
  stage.all('exits with 0', exits.filter(({ code }) => code === 0).length, ours.length);
  const summaries = exits.map(({ summary }) => summary).filter((summary) => summary?.signal === 'SIGTERM');
  stage.all('that said what they closed', summaries.filter((summary) => summary.sockets_closed > 0).length, ours.length);
  const sum = (name) => summaries.reduce((total, summary) => total + summary[name], 0);
  stage.atMost('calls broken off', sum('calls_broken_off'), '', { ours: 0 });
  stage.note(`${sum('sockets_closed')} sockets closed, ${sum('calls_finished')} calls finished; ${summaries.map(({ took_ms: ms }) => ms).join(', ')} ms`);
}
