// Replicas that are killed without a chance to say anything: the daemon's own, and one that has nothing to do with a call.
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { app, Daemon, newUser, pair } from '../../clients.mjs';

const IN_FLIGHT = 10;

/** A load is under way when this much of it was answered. */
const WARM_MS = 1_000;

/** From then on the death of a replica is known. */
const KNOWN_MS = 250;

/** What a call to a daemon that is gone is answered with. */
const DISCONNECTED = 'RPC target disconnected';

export const podKillMidRpc = {
  name: 'pod-kill-mid-rpc',
  seed: '1612 ms',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const { replicas } = fleet;
    const user = newUser();
    const daemon = await Daemon.start(replicas[1], { user, method: 'work', calls, handle: () => undefined, reconnection: false });
    const others = replicas.filter((_, index) => index !== 1);
    const callers = await Promise.all(others.map((replica) => app(replica, user)));
    const inFlight = Array.from({ length: IN_FLIGHT }, (_, i) => calls.make(callers[i % callers.length], 'work'));
    await daemon.received(IN_FLIGHT);
    const moving = await Daemon.start(await fleet.door(1), { user, method: 'moves', calls });
    const load = calls.load(callers[0], 'moves', 20);
    await moving.received(1);

    const killedAt = performance.now();
    await replicas[1].kill();
    const answers = await Promise.all(inFlight);
    await until(() => moving.registeredAt > killedAt, 20_000, 'the daemon to come back elsewhere');
    const moved = await load.stop();

    stage.all(`calls answered "${DISCONNECTED}"`, answers.filter(({ error }) => error === DISCONNECTED).length, IN_FLIGHT);
    const slowestMs = Math.max(...answers.map(({ endedAt }) => endedAt - killedAt));
    stage.atMost('slowest answer after the SIGKILL', slowestMs, ' ms', { ours: 250, seed: 2_500 });
    // Whoever called when the death could be known waits for the daemon to come back, and is served.
    const waited = moved.filter(({ startedAt }) => startedAt > killedAt + KNOWN_MS);
    stage.all('later calls served once the daemon has moved', count(waited, 'ok'), waited.length);
    if (bad(moved).length > 0) stage.note(shownFailures(moved));
  },
};

export const uninvolvedPodKill = {
  name: 'uninvolved-pod-kill',
  seed: '—',
  replicasMin: 3,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const { replicas } = fleet;
    const handle = async ({ params }) => (await delay(20), params);
    // Both ways, and within one replica.
    const pairs = [[0, 1], [1, 0], [0, 0]];
    const loads = [];
    for (const [from, to] of pairs) {
      const { caller } = await pair(calls, replicas[from], replicas[to], { handle });
      loads.push(calls.load(caller, 'work', 20));
    }
    await delay(WARM_MS);
    await replicas[2].kill();
    // Long enough for a reader of heartbeats to draw a wrong conclusion.
    await delay(stage.isShort ? 4_000 : 12_000);
    const answers = (await Promise.all(loads.map((load) => load.stop()))).flat();

    const failed = bad(answers);
    stage.atMost(`failed of ${answers.length}`, failed.length, '', { ours: 0, seed: Math.ceil(answers.length / 20) });
    if (failed.length > 0) stage.note(shownFailures(answers));
    stage.atMost('delayed over 250 ms', answers.filter(({ ms }) => ms > 250).length, '', { ours: 0 });
    // Node's requests also wait for the word of the replica that died: the unlucky time out.
    stage.atMost('slowest', slowest(answers), ' ms', { ours: 250, seed: 31_000 });
  },
};
