// All replicas are restarted, one after the other, under load: clients move on and nothing else happens.
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../clients/waiting.mjs';
import { bad, count, shownFailures, slowest } from '../calls.mjs';
import { pair } from '../clients.mjs';

const PAIRS = 9;
const CALL_EVERY_MS = 50;
const WORK_MS = 10;
const LOADED_MS = 1_000;

export default {
  name: 'rolling-restart',
  seed: '—',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const n = fleet.replicas.length;
    const handle = async ({ params }) => (await delay(WORK_MS), params);
    const members = await Promise.all(Array.from({ length: PAIRS }, async (_, i) => {
      const [from, to] = [await fleet.door(i % n), await fleet.door(Math.floor(i / n) % n)];
      return pair(calls, from, to, { handle });
    }));
    const loads = members.map(({ caller, method }) => calls.load(caller, method, CALL_EVERY_MS));
    await delay(LOADED_MS);
    for (const replica of fleet.replicas) {
      await replica.restart();
      const isConnected = ({ caller, daemon }) => caller.connected && daemon.socket.connected;
      await until(() => members.every(isConnected), 20_000, 'all clients to be connected again');
      await delay(LOADED_MS);
    }
    const answers = (await Promise.all(loads.map((load) => load.stop()))).flat();

    // A caller whose own connection ended was given no answer at all; its library told it so, and it may call again.
    const failed = answers.filter(({ outcome }) => outcome === 'failed' || outcome === 'unanswered');
    // All on Node, 2 to 4 of 1,400 fail.
    stage.atMost(`failed of ${answers.length}`, failed.length, '', { ours: 0, seed: Math.ceil(answers.length / 100) });
    if (failed.length > 0) stage.note(shownFailures(failed));
    stage.atMost("lost with the caller's own connection", count(answers, 'lost'), '', {});
    stage.atMost('slowest', slowest(answers), ' ms', { ours: 10_000, seed: 12_000 });
    const after = await Promise.all(members.map(({ caller, method }) => calls.make(caller, method)));
    stage.atMost('failed when all were back', bad(after).length, '', { ours: 0, seed: 0 });
  },
};
