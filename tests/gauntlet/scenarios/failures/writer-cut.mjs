// The connections that write to Redis are cut while hundreds of answers come back: whatever is lost, every call ends soon.
import { setTimeout as delay } from 'node:timers/promises';
import { PATIENCE_MS, until } from '../../../clients/support/waiting.mjs';
import { bad, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

const ROUNDS = 8;
const CALLS = 400;

export default {
  name: 'writer-cut',
  seed: '—',
  // Node's replicas wait out the timeout of a call whose answer is lost.
  on: ['pointwork'],
  replicasMin: 2,
  mayLogErrors: true,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const [near, far] = fleet.replicas;
    // The daemon holds its answers back until all are there.
    const { caller, daemon, method } = await pair(calls, near, far, { handle: () => undefined });
    const answers = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = daemon.requests.length;
      const made = Array.from({ length: CALLS }, () => calls.make(caller, method));
      let ended = 0;
      for (const call of made) call.then(() => (ended += 1));
      // Some of them may meet the connections of the round before.
      await until(() => daemon.requests.length - before + ended >= CALLS, PATIENCE_MS, 'all requests, there or failed');
      daemon.answerAll();
      await delay(round);
      await fleet.redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
      answers.push(...(await Promise.all(made)));
    }
    const unclear = bad(answers).filter(({ error }) => error !== 'RPC target unreachable');
    stage.note(`${answers.length - bad(answers).length} of ${answers.length} ok ${shownFailures(answers)}`);
    stage.atMost('without a clear error', unclear.length, '', { ours: 0 });
    stage.atMost('slowest', slowest(answers), ' ms', { ours: 5_000 });
  },
};
