// Thousands of calls at once between two replicas: no queue on the way may lose one.
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

const CALLS = 2_000;

/** Every counter of something that was given up on the way. */
const LOSSES = [
  'adapter_outbox_full_total',
  'adapter_channel_missed_total',
  'adapter_publish_failed_total',
  'adapter_answers_unclaimed_total',
  'adapter_requests_lost_total',
];

export default {
  name: 'burst',
  seed: '—',
  // Node's replicas have no such counters: between two of ours, whoever else is there.
  on: ['pointwork', 'mixed'],
  replicasMin: 3,
  async run(stage) {
    const { calls } = stage;
    const settings = { 'rpc.calls_per_user_max': 2 * CALLS, 'listen.max_buffer_packets': 8 * CALLS };
    const fleet = await stage.fleet({ settings });
    const [near, far] = fleet.of('pointwork').map((index) => fleet.replicas[index]);
    const { caller, daemon, method } = await pair(calls, near, far);
    await calls.make(caller, method);
    // What a replica counts while it starts is no part of the burst.
    const before = await counters([near, far]);

    const answers = await Promise.all(Array.from({ length: CALLS }, (_, i) => calls.make(caller, method, { i })));
    const own = answers.filter(({ outcome, result }, i) => outcome === 'ok' && result.i === i);
    stage.all('calls answered', count(answers, 'ok'), CALLS);
    if (bad(answers).length > 0) stage.note(shownFailures(answers));
    stage.all('answers that are their own', own.length, CALLS);
    stage.all('requests that reached the daemon', daemon.requests.length - 1, CALLS);
    stage.atMost('slowest', slowest(answers), ' ms', {});
    const after = await counters([near, far]);
    const added = (name) => after(name) - before(name);
    // A request and its answer each: the counters are those of what the calls went through.
    stage.atLeast('messages published', added('adapter_published_total'), '', { ours: 2 * CALLS, seed: 2 * CALLS });
    for (const name of LOSSES) stage.atMost(name, added(name), '', { ours: 0, seed: 0 });
  },
};

/** What some replicas count together, as a function of a counter's name: over all labels, and 0 before it is first counted. */
async function counters(replicas) {
  const texts = await Promise.all(replicas.map(async (replica) => (await replica.request('/metrics')).text));
  return (name) => {
    const samples = texts.join('\n').matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'gm'));
    return [...samples].reduce((sum, [, value]) => sum + Number(value), 0);
  };
}
