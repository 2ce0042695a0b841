// The daemon's replica is stopped in the middle of a call: it may live, so nothing is known of its calls until it goes on.
import { setTimeout as delay } from 'node:timers/promises';
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { app, Daemon, newUser, pair } from '../../clients.mjs';

const IN_FLIGHT = 5;
const GRACE_MS = 10_000;

/** Node's requests wait for the word of the stopped replica until they time out. */
const SEED_MAX_MS = GRACE_MS + 31_000;

export default {
  name: 'hung-pod',
  seed: '—',
  replicasMin: 3,
  async run(stage) {
    const { calls } = stage;
    const { replicas } = await stage.fleet({ graceMs: GRACE_MS });
    const user = newUser();
    const caller = await app(replicas[0], user);
    const kept = await Daemon.start(replicas[1], { user, method: 'kept', calls, handle: () => undefined });
    await Daemon.start(replicas[1], { user, method: 'hung', calls });
    const other = await pair(calls, replicas[0], replicas[2]);
    await calls.make(caller, 'hung');
    const inFlight = Array.from({ length: IN_FLIGHT }, () => calls.make(caller, 'kept'));
    await kept.received(IN_FLIGHT);

    replicas[1].stop();
    const elsewhere = calls.load(other.caller, other.method, 50);
    const toTheHung = calls.load(caller, 'hung', 250);
    // Beyond the time after which a silent replica counts as lost.
    await delay(stage.isShort ? 4_500 : 8_000);
    const endedMeanwhile = calls.all.filter(({ method, outcome }) => method === 'kept' && outcome).length;
    const [others, news] = [elsewhere.stop(), toTheHung.stop()];
    replicas[1].cont();
    kept.answerAll();
    const answers = await Promise.all(inFlight);

    stage.atMost('calls in flight given up while it was stopped', endedMeanwhile, '', { ours: 0 });
    stage.all('calls in flight answered after it went on', count(answers, 'ok'), IN_FLIGHT, { ours: IN_FLIGHT });
    if (bad(answers).length > 0) stage.note(shownFailures(answers));
    judgeOthers(stage, await others, await news);
    const after = await calls.make(caller, 'hung');
    stage.holds('the replica that went on serves again', after.outcome === 'ok');
  },
};

function judgeOthers(stage, others, news) {
  stage.atMost(`failed of ${others.length} to another replica`, bad(others).length, '', { ours: 0 });
  if (bad(others).length > 0) stage.note(shownFailures(others));
  stage.atMost('slowest to another replica', slowest(others), ' ms', { ours: 250, seed: SEED_MAX_MS });
  stage.atMost(`failed of ${news.length} new calls to the stopped one`, bad(news).length, '', { ours: 0 });
  if (bad(news).length > 0) stage.note(shownFailures(news));
  stage.atMost('slowest new call to the stopped one', slowest(news), ' ms', { ours: GRACE_MS + 2_000, seed: SEED_MAX_MS });
}
