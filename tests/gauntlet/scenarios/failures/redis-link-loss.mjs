// One replica loses sight of Redis, and nobody is told: the others and its own clients go on, and it is part of the fleet afterwards.
import { setTimeout as delay } from 'node:timers/promises';
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

const CALL_EVERY_MS = 50;
const LOADED_MS = 1_000;
const BACK_MS = 2_000;
const GRACE_MS = 10_000;

export default {
  name: 'redis-link-loss',
  seed: '—',
  // A Node replica has no call without Redis.
  on: ['pointwork', 'mixed'],
  replicasMin: 3,
  mayLogErrors: true,
  async run(stage) {
    const { calls } = stage;
    const [near, lonely] = [stage.kinds.indexOf('pointwork'), stage.kinds.lastIndexOf('pointwork')];
    const fleet = await stage.fleet({ graceMs: GRACE_MS, redisThroughProxy: [lonely] });
    const third = [0, 1, 2].find((index) => index !== near && index !== lonely);
    const at = (index) => fleet.replicas[index];
    const loaded = async (from, to) => {
      const { caller, method } = await pair(calls, at(from), at(to));
      await calls.make(caller, method);
      return calls.load(caller, method, CALL_EVERY_MS);
    };
    const [local, others, into] = await Promise.all([loaded(lonely, lonely), loaded(near, third), loaded(near, lonely)]);
    await delay(LOADED_MS);

    const link = fleet.redisLinks.get(lonely);
    link.blackhole();
    await delay(stage.isShort ? 5_000 : 10_000);
    link.heal();
    const backAt = performance.now();
    await delay(BACK_MS + LOADED_MS);
    const [localCalls, otherCalls, intoCalls] = await Promise.all([local.stop(), others.stop(), into.stop()]);

    judgeUntouched(stage, 'within the replica', localCalls, { ours: 0, seed: 0 }, { ours: 250, seed: 250 });
    judgeUntouched(stage, 'between the others', otherCalls, { ours: 0 }, { ours: 250 });
    stage.note(`into it: ${count(intoCalls, 'ok')} of ${intoCalls.length} ok ${shownFailures(intoCalls)}`.trim());
    stage.atMost('into it, slowest', slowest(intoCalls), ' ms', { ours: GRACE_MS + 2_000, seed: GRACE_MS + 2_000 });
    const settled = intoCalls.filter(({ startedAt }) => startedAt > backAt + BACK_MS);
    stage.all(`into it, from ${BACK_MS} ms after it was back`, count(settled, 'ok'), settled.length);
  },
};

function judgeUntouched(stage, what, records, failed, slow) {
  stage.atMost(`${what}, failed of ${records.length}`, bad(records).length, '', failed);
  if (bad(records).length > 0) stage.note(shownFailures(records));
  stage.atMost(`${what}, slowest`, slowest(records), ' ms', slow);
}
