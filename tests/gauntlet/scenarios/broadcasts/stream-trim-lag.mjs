// A replica sleeps while more is broadcast than the stream keeps: it says that it missed something, and gets what comes after.
import { until } from '../../../clients/support/waiting.mjs';
import { app, collect, newUser } from '../../clients.mjs';

const STREAM_LEN_MAX = 100;
const MISSED = 1_000;

/** How many entries the replica says that it missed. */
const MISSED_COUNTER = /^adapter_stream_missed_total(?:\{[^}]*\})? (\d+)$/m;

export default {
  name: 'stream-trim-lag',
  seed: 'skipped without a word',
  replicasMin: 2,
  async run(stage) {
    const fleet = await stage.fleet({ streamLenMax: STREAM_LEN_MAX });
    // Redis trims whole nodes of its list: small ones, so that `~` is near.
    await fleet.redis.command('CONFIG', 'SET', 'stream-node-max-entries', '10');
    const [near, sleeper] = fleet.replicas;
    const user = newUser();
    const awake = collect(await app(near, user), 'update');
    const asleep = collect(await app(sleeper, user), 'update');
    const emit = (id) => near.emit({ rooms: [`user:${user}`], event: 'update', args: [{ id }] });
    await emit(0);
    await until(() => awake.length === 1 && asleep.length === 1, 10_000, 'the first update');

    sleeper.stop();
    for (let id = 1; id <= MISSED; id += 1) await emit(id);
    await until(() => awake.length > MISSED, 20_000, 'all updates where nobody slept').catch(() => {}); // judged below
    const kept = await fleet.redis.command('XLEN', 'socket.io');
    sleeper.cont();

    const last = () => asleep.at(-1)?.[0].id;
    let id = MISSED;
    // The sleeper may only find its place again by what comes: an event now and then, until one arrives.
    const arrives = async () => (await emit((id += 1)), last() > MISSED);
    const isBack = await until(arrives, 10_000, 'a further update').then(() => true, () => false);
    stage.all('updates where nobody slept', Math.min(awake.length, MISSED + 1), MISSED + 1);
    stage.atMost('entries kept by the stream', kept, '', { ours: STREAM_LEN_MAX * 2, seed: STREAM_LEN_MAX * 2 });
    stage.holds('further updates arrive at the sleeper', isBack);
    stage.atLeast('updates that the sleeper missed', id - asleep.length, '', { ours: 1, seed: 1 });
    stage.atLeast('entries that it says it missed', await toldMissed(sleeper), '', { ours: 1 });
  },
};

async function toldMissed(replica) {
  const told = async () => Number(MISSED_COUNTER.exec((await replica.request('/metrics')).text)?.[1] ?? 0);
  return until(told, 3_000, 'word of the gap').catch(() => 0);
}
