// The daemon's and then the caller's network swallows everything for a while, shorter than the grace: nothing may fail.
import { setTimeout as delay } from 'node:timers/promises';
import { bad, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { pair } from '../../clients.mjs';

const CALL_EVERY_MS = 700;

export default {
  name: 'network-loss',
  seed: '85/85',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const doors = [await fleet.door(0), await fleet.door(1)];
    const { caller } = await pair(calls, doors[0], doors[1]);
    // Each side in turn, then both at once.
    const losses = [[doors[1]], [doors[0]], doors];
    const [rounds, clearMs, darkMs] = stage.isShort ? [3, 1_000, 1_500] : [6, 5_000, 5_000];
    const load = calls.load(caller, 'work', stage.isShort ? CALL_EVERY_MS / 7 : CALL_EVERY_MS);
    for (let round = 0; round < rounds; round += 1) {
      await delay(clearMs);
      const dark = losses[round % losses.length];
      for (const door of dark) door.blackhole();
      await delay(darkMs);
      for (const door of dark) door.heal();
    }
    await delay(clearMs);
    const answers = await load.stop();
    stage.atMost(`failed of ${answers.length}`, bad(answers).length, '', { ours: 0, seed: 0 });
    if (bad(answers).length > 0) stage.note(shownFailures(answers));
    stage.atMost(`slowest, with ${darkMs} ms dark`, slowest(answers), ' ms', { ours: darkMs + 500, seed: darkMs + 2_000 });
  },
};
