// Half an hour of everything at once: load of all kinds, and what goes wrong in the field one after the other, drawn from a seed. Every call
// is answered, nothing is logged that is not explained, memory stays where it was, and in the end all is whole.
import { setTimeout as delay } from 'node:timers/promises';
import { counted } from '../../clients/fleet/cluster.mjs';
import { until } from '../../clients/support/waiting.mjs';
import { app, closeSockets } from '../clients.mjs';
import { Draw } from '../draw.mjs';
import { Directories } from '../soak/directories.mjs';
import { Pushes } from '../soak/pushes.mjs';
import { SETTLE_MS, Stand, WHOLE_MS } from '../soak/stand.mjs';
import { ACTS, schedule, SPARED } from '../soak/troubles.mjs';
import { judge } from '../soak/verdict.mjs';
import { openFiles } from '../soak/vitals.mjs';

/** A device that came back too often is held off for up to a minute. */
const DEVICES_WHOLE_MS = 90_000;
/** How long it may take until nothing is left of those who have gone. */
const GONE_MS = 60_000;

/** Files and sockets that a replica may have open more than before anybody came: connections of the admin API that are kept alive. */
const LEFT_OPEN_MAX = 8;

const SERIES_MAX = 2_000;
/** So many more than early in the run there may be: results that a method had not had yet, and not one for each of a thousand visitors. */
const SERIES_MORE_MAX = 100;
/** By then each kind of load has been there; a third of a run that is shorter than three times that. */
const EARLY_MS = 300_000;

/** Beyond the run: the start, and all that is looked at in the end. */
const BESIDE_MS = 300_000;

export default {
  name: 'soak',
  seed: '—',
  on: ['pointwork'],
  replicasMin: 3,
  isLong: true,
  maxMsOf: ({ minutes }) => minutes * 60_000 + BESIDE_MS,
  async run(stage) {
    const { minutes, seed } = stage.options;
    // Where policies come from is one of the things that the seed says.
    const policies = seed % 2 === 0 ? await Directories.make(stage.kinds.length) : new Pushes();
    console.log(`soak: --minutes ${minutes} --seed ${seed}; policies by ${seed % 2 === 0 ? 'directory' : 'push'}`);
    stage.afterwards(() => policies.remove());
    const fleet = await stage.fleet({ settingsOf: (index) => policies.settings(index) });
    await policies.begin(fleet.replicas);
    const stand = await Stand.build(stage, fleet, policies, new Draw(seed + 1));
    try {
      const early = seriesAfter(Math.min(EARLY_MS, (minutes * 60_000) / 3), stand);
      await play(stand, schedule(new Draw(seed), fleet.replicas.length), minutes * 60_000);
      await judgeServing(stage, stand);
      await judgeDevices(stage, stand);
      await stand.quiet();
      judge(stage, stand);
      await judgeSeries(stage, stand, await early);
      await judgeNothingLeft(stage, stand);
    } finally {
      await stand.close();
    }
  },
};

/** One trouble after the other, until the time is over. */
async function play(stand, troubles, ms) {
  const { timeline, vitals } = stand;
  const endAt = performance.now() + ms;
  while (performance.now() < endAt) {
    const { value: drawn } = troubles.next();
    await delay(drawn.pauseMs);
    const trouble = timeline.begin(drawn);
    try {
      await ACTS[trouble.kind](stand, trouble);
      trouble.endedAt = performance.now();
      await until(() => stand.isWhole(), WHOLE_MS, () => `all to be whole again: ${stand.missing().join(', ')}`);
      trouble.wholeAt = performance.now();
      await delay(SETTLE_MS);
      trouble.quietAt = performance.now();
    } finally {
      console.log(`${timeline.line(trouble)}; ${vitals.shown} MiB`);
    }
  }
}

/** After the last trouble every replica has the policies, and finds every daemon. */
async function judgeServing(stage, { fleet: { replicas }, policies, parties, calls }) {
  const serve = replicas.map((replica) => policies.serves(replica).then(() => true, (error) => console.error(error.message)));
  stage.all('replicas with the policies as they were swapped in last', (await Promise.all(serve)).filter(Boolean).length, replicas.length);
  let wanted = 0;
  let right = 0;
  for (const { user, methods } of parties) {
    for (const replica of replicas) {
      const caller = await app(replica, user);
      for (const method of methods) {
        wanted += 1;
        right += (await calls.make(caller, method)).outcome === 'ok';
      }
      caller.disconnect();
    }
  }
  stage.all('methods called from every replica in the end', right, wanted);
}

/** After the last trouble every device has its session, on every replica's word, and is seen to have it. */
async function judgeDevices(stage, { fleet: { replicas }, devices: all }) {
  const { devices, dashboard, rivals } = all;
  await all.calm();
  let held;
  const areHeld = async () => {
    held = await Promise.all(devices.flatMap((device) => replicas.map((replica) => device.isHeldBy(replica))));
    return held.every(Boolean);
  };
  await until(areHeld, DEVICES_WHOLE_MS, 'the devices').catch(() => {}); // judged here
  stage.all('devices held by their sockets, asked of each replica', held.filter(Boolean).length, held.length);
  const online = () => devices.filter(({ id }) => dashboard.statuses(id).at(-1) === 'online').length;
  await until(() => online() === devices.length, 20_000, 'all to be seen').catch(() => {}); // judged here
  stage.all('devices shown online', online(), devices.length);
  stage.atMost('devices that were not let in', devices.filter(({ errors }) => errors.length > 0).length, '', { ours: 0 });
  const { slandered } = all;
  stage.atMost('devices seen offline that were away only shortly', slandered.length, '', { ours: 0 });
  for (const { id, longestAwayMs } of slandered) console.error(`${id}, away for ${longestAwayMs.toFixed()} ms at most:\n${aroundOffline(dashboard.changes(id))}`);
  const heldOff = devices.reduce((sum, { throttled }) => sum + throttled, 0);
  stage.note(`devices were held off ${heldOff} times; of ${rivals.opened} rivals ${rivals.accepted} got the session`);
}

/** How many series the metrics of the spared replica have. */
async function seriesOf({ fleet: { replicas } }) {
  const { text } = await replicas[SPARED].request('/metrics');
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
}

/** The same in so many milliseconds. */
function seriesAfter(ms, stand) {
  const series = delay(ms, undefined, { ref: false }).then(() => seriesOf(stand));
  series.catch(() => {}); // awaited in the end
  return series;
}

/** Whoever came, and whatever was called, the metrics are as many as they were early in the run. */
async function judgeSeries(stage, stand, early) {
  const { visits } = stand.visitors;
  const series = await seriesOf(stand);
  stage.atMost(`series in the metrics of replica ${SPARED}`, series, '', { ours: SERIES_MAX });
  stage.atMost(`of them more than early in the run, after ${visits} visitors with a method each`, series - early, '', { ours: SERIES_MORE_MAX });
}

/** With everybody gone nobody is counted any more, and nothing is open. */
async function judgeNothingLeft(stage, { fleet: { replicas }, openAtFirst }) {
  closeSockets();
  const gauges = ['websocket_connections_total', 'pointwork_device_sockets', 'pointwork_device_holders'];
  const left = async () => {
    const counts = await Promise.all(replicas.flatMap((replica) => gauges.map((name) => counted(replica, name))));
    return counts.reduce((sum, count) => sum + count, 0);
  };
  await until(async () => (await left()) === 0, GONE_MS, 'all to be gone').catch(() => {}); // judged here
  stage.atMost('connections and devices that are counted when all have gone', await left(), '', { ours: 0 });
  let open;
  const more = async () => (open = await openFiles(replicas[SPARED].pid)).length - openAtFirst;
  await until(async () => (await more()) <= LEFT_OPEN_MAX, GONE_MS, 'all to be closed').catch(() => console.error(open.sort().join(' ')));
  stage.atMost(`files and sockets that replica ${SPARED} has open then, more than ${openAtFirst} at first`, await more(), '', { ours: LEFT_OPEN_MAX });
}

/** What a dashboard was told just before and after a device was seen offline, a line each; an epoch is about when that was. */
function aroundOffline(changes) {
  const isNear = (_, index) => changes.slice(Math.max(0, index - 2), index + 4).some(({ status }) => status !== 'online');
  return changes.filter(isNear).map(({ status, epoch }) => `  ${new Date(epoch).toISOString()} ${status}`).join('\n');
}
