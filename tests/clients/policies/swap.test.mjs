// 500 swaps of a policy under load: no call is lost, none fails, and memory stays where it was.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startHost } from '../support/host.mjs';
import { call, closeSockets, connect, daemon, newUser } from '../support/sockets.mjs';

const SWAPS = 500;
const WARM = 50;
const SAMPLE_EVERY = 50;
const CALLERS = 32;
const GROWTH_MAX = 1.05;

let host;
before(async () => (host = await startHost({ settings: { 'policy.quiet_ms': 5 } })));
after(async () => {
  closeSockets();
  await host.stop();
});

test(`${SWAPS} swaps while ${CALLERS} callers are calling`, async (t) => {
  const user = newUser();
  for (const name of ['first', 'second']) await daemon(host, { user, methods: ['m'], handler: () => name });
  const answers = { first: 0, second: 0 };
  let swapping = true;
  const callers = Array.from({ length: CALLERS }, async () => {
    const caller = await connect(host, { user });
    while (swapping) {
      const answer = await call(caller, 'm', 0);
      assert.ok(answer.ok && answer.result in answers, JSON.stringify(answer));
      answers[answer.result] += 1;
    }
  });
  const load = Promise.all(callers);

  const memory = new Map();
  const swaps = async () => {
    let { generation } = await host.policy('target');
    for (let swap = 1; swap <= SWAPS; swap += 1) {
      const served = await host.swap('target', swap % 2 ? 'target-least-loaded' : 'target-first');
      assert.notEqual(served.generation, generation, `swap ${swap}`);
      generation = served.generation;
      if (swap % SAMPLE_EVERY === 0) {
        // What a generation held is given back once it has drained; before that it is not a leak.
        await host.serving('target', ({ live_generations: live }) => live === 1, 'a drained generation');
        memory.set(swap, await host.residentKib());
      }
    }
  };
  try {
    // A caller that fails ends the test at once, not after the last swap.
    await Promise.race([swaps(), load]);
  } finally {
    swapping = false;
  }
  await load;
  const [warm, last] = [memory.get(WARM), memory.get(SWAPS)];
  t.diagnostic(`${answers.first} calls to the first, ${answers.second} to the second daemon`);
  t.diagnostic(`resident KiB after each ${SAMPLE_EVERY} swaps: ${[...memory.values()].join(' ')}`);
  assert.ok(answers.first > SWAPS && answers.second > 0, 'both policies decided');
  assert.ok(last <= warm * GROWTH_MAX, `resident memory grew from ${warm} to ${last} KiB`);
  const { failures, last_load_error: error } = await host.policy('target');
  assert.equal(error, null);
  assert.deepEqual(failures, {});
});
