// Redis goes away and comes back empty, or hangs and goes on. Nothing is restarted but Redis.
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { app, collect, newUser, pair } from '../../clients.mjs';

const CALL_EVERY_MS = 50;
const LOADED_MS = 1_000;

/** Within this all must be as before. */
const BACK_MS = 2_000;

const scenario = (name, outage) => ({
  name,
  seed: '—',
  // A fleet of Node replicas has no call without Redis, and readers that are lost after it: nothing to hold it to.
  on: ['pointwork', 'mixed'],
  replicasMin: 3,
  mayLogErrors: true,
  async run(stage) {
    const fleet = await stage.fleet();
    const parts = await loadedParts(stage, fleet);
    await delay(LOADED_MS);

    const goneAt = performance.now();
    await outage.begin(fleet.redis);
    await delay(stage.isShort ? 5_000 : outage.longMs);
    await outage.end(fleet.redis);
    const backAt = performance.now();

    await delay(BACK_MS + LOADED_MS);
    const local = (await Promise.all(parts.local.map(({ load }) => load.stop()))).flat();
    const across = (await Promise.all(parts.across.map(({ load }) => load.stop()))).flat();
    judgeLocal(stage, local);
    judgeAcross(stage, across, { goneAt, backAt, failsFastMs: outage.failsFastMs });
    await judgeDirectory(stage, fleet, parts);
  },
});

export const redisRestart = scenario('redis-restart', {
  begin: (redis) => redis.stop(),
  end: (redis) => redis.startEmpty(),
  longMs: 20_000,
  failsFastMs: 1_000,
});

export const redisHang = scenario('redis-hang', {
  begin: async (redis) => redis.hang(),
  end: async (redis) => redis.resume(),
  longMs: 10_000,
  // Nobody closes a connection: that it is dead shows by what does not come.
  failsFastMs: 4_000,
});

/** Pairs within each replica of ours and between each two, all under load. */
async function loadedParts(stage, fleet) {
  const ours = fleet.of('pointwork');
  const loaded = async (from, to) => {
    const one = await pair(stage.calls, fleet.replicas[from], fleet.replicas[to]);
    await stage.calls.make(one.caller, one.method);
    return { ...one, load: stage.calls.load(one.caller, one.method, CALL_EVERY_MS) };
  };
  const local = await Promise.all(ours.map((index) => loaded(index, index)));
  const across = await Promise.all(ours.flatMap((from) => ours.filter((to) => to !== from).map((to) => loaded(from, to))));
  return { ours, local, across };
}

function judgeLocal(stage, local) {
  stage.atMost(`local calls failed, of ${local.length}`, bad(local).length, '', { ours: 0, seed: 0 });
  if (bad(local).length > 0) stage.note(shownFailures(local));
  stage.atMost('slowest local call', slowest(local), ' ms', { ours: 250, seed: 250 });
}

function judgeAcross(stage, across, { goneAt, backAt, failsFastMs }) {
  // What began before its end was near had no Redis as long as it lasted.
  const during = across.filter(({ startedAt }) => startedAt > goneAt && startedAt < backAt - failsFastMs);
  const late = during.filter(({ ms }) => ms > failsFastMs);
  stage.note(`across, meanwhile: ${count(during, 'ok')} of ${during.length} ok, ${shownFailures(during)}`);
  stage.atMost(`across, not answered within ${failsFastMs} ms meanwhile`, late.length, '', { ours: 0, seed: 0 });
  const silent = bad(during).filter(({ error }) => typeof error !== 'string' || error === '' || error === 'RPC target disconnected');
  stage.atMost('across, without a clear error meanwhile', silent.length, '', { ours: 0, seed: 0 });

  const after = across.filter(({ startedAt }) => startedAt > backAt);
  const lastBad = Math.max(0, ...bad(after).map(({ startedAt }) => startedAt - backAt));
  stage.atMost('across, last call to fail after it was back', lastBad, ' ms', { ours: BACK_MS, seed: BACK_MS });
  const settled = after.filter(({ startedAt }) => startedAt > backAt + BACK_MS);
  stage.atMost('across, slowest call from then on', slowest(settled), ' ms', { ours: 250, seed: 1_000 });
}

/** Every replica finds every daemon, and a broadcast from each reaches every one. */
async function judgeDirectory(stage, fleet, { ours, local, across }) {
  let right = 0;
  let wanted = 0;
  for (const { user, method } of [...local, ...across]) {
    for (const index of ours) {
      const caller = await app(fleet.replicas[index], user);
      wanted += 1;
      right += (await stage.calls.make(caller, method)).outcome === 'ok';
      caller.disconnect();
    }
  }
  stage.all('daemons found by every replica afterwards', right, wanted);

  const user = newUser();
  const updates = await Promise.all(ours.map(async (index) => collect(await app(fleet.replicas[index], user), 'update')));
  for (const index of ours) await fleet.replicas[index].emit({ rooms: [`user:${user}`], event: 'update' });
  await until(() => updates.every((list) => list.length >= ours.length), 5_000, 'updates').catch(() => {}); // judged below
  const got = updates.filter((list) => list.length === ours.length).length;
  stage.all('sockets that get the broadcasts of all, once each', got, ours.length);
}
