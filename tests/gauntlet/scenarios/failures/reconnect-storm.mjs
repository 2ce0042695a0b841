// All daemons lose their connections at once, again and again, under load.
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, count, shownFailures } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

const CYCLES = 5;
const DAEMONS = 20;
const CALL_EVERY_MS = 50;
const WORK_MS = 10;
const LOADED_MS = 500;

/** A server may need this long to hear of a cut. */
const HEARS_MS = 50;

export default {
  name: 'reconnect-storm',
  seed: '96–97 %',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const { replicas } = fleet;
    const members = await Promise.all(Array.from({ length: DAEMONS }, async (_, i) => {
      const door = await fleet.door(i % replicas.length);
      const handle = async ({ params }) => (await delay(WORK_MS), params);
      const callerAt = replicas[Math.floor(i / replicas.length) % replicas.length];
      return { door, ...(await pair(calls, callerAt, door, { handle, method: `work-${i}` })) };
    }));
    const loads = members.map(({ caller, method }) => calls.load(caller, method, CALL_EVERY_MS));
    const cuts = [];
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      await delay(LOADED_MS);
      const cutAt = performance.now();
      cuts.push(cutAt);
      for (const { door } of members) door.cut();
      const isBack = ({ daemon }) => daemon.socket.connected && daemon.registeredAt > cutAt;
      await until(() => members.every(isBack), 20_000, 'all daemons to be back');
    }
    await delay(LOADED_MS);
    const answers = (await Promise.all(loads.map((load) => load.stop()))).flat();

    // A call that had been handed to a socket when that died has had its daemon; nothing can be known of it.
    const wasHanded = ({ error, startedAt, endedAt }) =>
      error === 'RPC target disconnected' && cuts.some((cutAt) => startedAt < cutAt + HEARS_MS && endedAt > cutAt);
    const owed = answers.filter((record) => !wasHanded(record));
    stage.all('calls with a daemon within grace', count(owed, 'ok'), owed.length, { ours: owed.length, seed: Math.ceil(owed.length * 0.96) });
    stage.atLeast('of all calls', (100 * count(answers, 'ok')) / answers.length, ' %', { ours: 96, seed: 94 });
    if (bad(answers).length > 0) stage.note(shownFailures(answers));
  },
};
