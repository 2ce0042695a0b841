// A daemon that stays connected and sends nothing stays registered.
import { setTimeout as delay } from 'node:timers/promises';
import { count, shownFailures } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

/** When the calls are made. */
const SLOW_MS = [0, 15_000, 35_000, 55_000, 75_000];
/** Beyond the time after which a silent replica counts as lost, twice. */
const FAST_MS = [0, 1_500, 3_000, 4_500, 6_500];

const scenario = (name, at) => ({
  name,
  seed: '5/5 through +75 s',
  replicasMin: 2,
  isLong: at === SLOW_MS,
  async run(stage) {
    const { calls } = stage;
    const { replicas } = await stage.fleet();
    const { caller } = await pair(calls, replicas[0], replicas[1]);
    const started = performance.now();
    const answers = [];
    for (const ms of at) {
      await delay(Math.max(0, started + ms - performance.now()));
      answers.push(await calls.make(caller, 'work'));
    }
    stage.all(`calls through +${at.at(-1) / 1_000} s`, count(answers, 'ok'), at.length);
    if (count(answers, 'ok') < at.length) stage.note(shownFailures(answers));
  },
});

export const ttlExpiry = scenario('ttl-expiry', SLOW_MS);
export const ttlExpiryFast = scenario('ttl-expiry-fast', FAST_MS);
