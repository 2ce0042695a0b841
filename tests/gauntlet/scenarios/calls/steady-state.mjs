// Calls across replicas while nothing goes wrong.
import { count, median, slowest } from '../../../clients/support/calls.mjs';
import { app, Daemon, newUser } from '../../clients.mjs';

const PARALLEL = 50;
const SEQUENTIAL = 20;

export default {
  name: 'steady-state',
  seed: '50/50 + 20/20',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const { replicas } = await stage.fleet();
    const user = newUser();
    await Daemon.start(replicas[1], { user, method: 'work', calls });
    const others = replicas.filter((_, index) => index !== 1);
    const callers = await Promise.all(others.map((replica) => app(replica, user)));
    const callerOf = (i) => callers[i % callers.length];
    for (const caller of callers) await calls.make(caller, 'work');

    const parallel = await Promise.all(Array.from({ length: PARALLEL }, (_, i) => calls.make(callerOf(i), 'work', { i })));
    const sequential = [];
    for (let i = 0; i < SEQUENTIAL; i += 1) sequential.push(await calls.make(callerOf(i), 'work', { i }));

    const right = [...parallel, ...sequential].filter(({ outcome, result }, i) =>
      outcome === 'ok' && result.i === (i < PARALLEL ? i : i - PARALLEL));
    stage.all('parallel calls', count(parallel, 'ok'), PARALLEL);
    stage.all('sequential calls', count(sequential, 'ok'), SEQUENTIAL);
    stage.all('answers that are their own', right.length, PARALLEL + SEQUENTIAL);
    stage.atMost('slowest of the parallel', slowest(parallel), ' ms', { ours: 500, seed: 1_000 });
    stage.atMost('median of the sequential', median(sequential.map(({ ms }) => ms)), ' ms', { ours: 25, seed: 50 });
  },
};
