// Policies are pushed to the cluster one after the other, as fast as they come to serve, while clients call all the time.
import { readFile } from 'node:fs/promises';
import { policyFile } from '../../../clients/support/host.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, median, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { app, Daemon, newUser } from '../../clients.mjs';

const PUSHES = { short: 20, full: 200 };
/** Memory is compared with what it is after the first so many: allocators and caches are warm then. */
const WARM = { short: 8, full: 20 };
const CALL_EVERY_MS = 10;
/** Three generations are kept behind the one that serves, and what was pushed goes and comes with each push. */
const GROWTH_MAX_MIB = 12;

export default {
  name: 'rollout',
  seed: 'a deploy for each rule',
  replicasMin: 2,
  on: ['pointwork'],
  maxMs: 900_000,
  async run(stage) {
    const { calls } = stage;
    const { replicas } = await stage.fleet({ settings: { 'policy.source': 'cluster' } });
    const user = newUser();
    for (const replica of replicas) await Daemon.start(replica, { user, method: 'work', calls });
    const callers = await Promise.all(replicas.map((replica) => app(replica, user)));
    for (const caller of callers) await calls.make(caller, 'work');
    const modules = await Promise.all(['target-first', 'target-least-loaded'].map((name) => readFile(policyFile(name))));

    const pushes = stage.isShort ? PUSHES.short : PUSHES.full;
    const warm = stage.isShort ? WARM.short : WARM.full;
    const loads = callers.map((caller) => calls.load(caller, 'work', CALL_EVERY_MS));
    const took = [];
    const resident = [];
    for (let i = 0; i < pushes; i += 1) {
      const at = performance.now();
      // Every second one is a configured generation that never was before.
      const config = i % 2 === 0 ? {} : { stuck_unanswered: i + 1 };
      const { digest } = await push(replicas[i % replicas.length], modules[i % 2], config);
      await until(async () => (await Promise.all(replicas.map((one) => serves(one, digest)))).every(Boolean), 20_000, `push ${i}`);
      took.push(performance.now() - at);
      resident.push(await Promise.all(replicas.map(({ pid }) => residentMib(pid))));
    }
    const made = (await Promise.all(loads.map((load) => load.stop()))).flat();

    stage.all('pushes that every replica served', took.length, pushes);
    stage.atMost(`calls that failed, of ${made.length}`, bad(made).length, '', { ours: 0, seed: 0 });
    stage.atLeast('calls meanwhile', made.length, '', { ours: pushes, seed: pushes });
    stage.note(`a push served everywhere after ${median(took).toFixed()} ms (median), slowest ${Math.max(...took).toFixed()} ms`);
    if (bad(made).length > 0) {
      stage.note(shownFailures(made));
      const warned = replicas.flatMap(({ log }, i) => log.filter((line) => line.includes('"WARN"')).map((line) => `replica ${i}: ${line}`));
      console.error(warned.slice(-40).join('\n'));
      for (const { method, startedAt, ms } of bad(made)) console.error(`${method} at ${wallClock(startedAt)}, after ${ms.toFixed()} ms`);
    }
    stage.note(`slowest call ${slowest(made).toFixed()} ms`);
    for (const [i] of replicas.entries()) {
      const after = resident.slice(warm).map((all) => all[i]);
      const growth = median(after.slice(-5)) - median(after.slice(0, 5));
      stage.note(`replica ${i}: ${resident[warm][i].toFixed()} MiB after ${warm} pushes, ${resident.at(-1)[i].toFixed()} MiB at the end`);
      stage.atMost(`growth of replica ${i}`, growth, ' MiB', { ours: GROWTH_MAX_MIB, seed: undefined });
    }
  },
};

/** A moment of the book as the logs have it. */
const wallClock = (at) => new Date(performance.timeOrigin + at).toISOString();

async function push(replica, wasm, config) {
  const query = new URLSearchParams({ config: JSON.stringify(config) });
  const response = await fetch(`${replica.admin}/v1/policies/target/push?${query}`, { method: 'POST', body: wasm });
  const body = await response.json();
  if (response.status !== 202) throw new Error(`a push: ${response.status} ${body.error}`);
  return body;
}

async function serves(replica, digest) {
  const { policies } = JSON.parse((await replica.request('/v1/policies')).text);
  const target = policies.find(({ slot }) => slot === 'target');
  if (target.failed) throw new Error(`a push failed: ${JSON.stringify(target.failed)}`);
  return target.converged && target.digest === digest;
}

async function residentMib(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))[1]) / 1_024;
}
