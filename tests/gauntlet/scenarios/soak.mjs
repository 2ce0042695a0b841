// Half an hour of everything at once: load of all kinds, and what goes wrong in the field one after the other, drawn from a seed. Every call
// is answered, nothing is logged that is not explained, memory stays where it was, and in the end all is whole.
import { setTimeout as delay } from 'node:timers/promises';
import { counted } from '../../clients/cluster.mjs';
import { unluckyUser } from '../../clients/unlucky.mjs';
import { until } from '../../clients/waiting.mjs';
import { app, closeSockets, newUser } from '../clients.mjs';
import { Draw } from '../draw.mjs';
import { Party } from '../soak/callers.mjs';
import { Devices } from '../soak/fleet-of-devices.mjs';
import { Directories } from '../soak/directories.mjs';
import { Direct, Door } from '../soak/doors.mjs';
import { isCallExplained, isWarningExplained } from '../soak/explained.mjs';
import { Messages } from '../soak/messages.mjs';
import { Supervisor } from '../soak/supervisor.mjs';
import { Timeline } from '../soak/timeline.mjs';
import { ACTS, schedule, SPARED } from '../soak/troubles.mjs';
import { Visitors } from '../soak/visitors.mjs';
import { openFiles, Vitals } from '../soak/vitals.mjs';

const CALL_EVERY_MS = 500;
const DEVICES = 12;

/** How long it may take until all is whole after a trouble, and from then on until nothing is to be seen of it any more. */
const WHOLE_MS = 40_000;
const SETTLE_MS = 2_000;

/** A device that came back too often is held off for up to a minute. */
const DEVICES_WHOLE_MS = 90_000;

/** From here on memory is flat: allocators and caches are warm, and each slot has its former generations. */
const WARM_UP_MS = 300_000;
/** A shorter run shows what it does, and is not judged by it. */
const JUDGED_FROM_MINUTES = 15;

/** A replica may grow by so much: four slots keep three former generations each, of a few MiB. */
const GROWTH_MAX_MIB = 8;
const FILES_GROWTH_MAX = 4;
const THREADS_GROWTH_MAX = 4;

/** Files and sockets that a replica may have open more than before anybody came: connections of the admin API that are kept alive. */
const LEFT_OPEN_MAX = 8;
const LEFT_OPEN_MS = 30_000;

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
    console.log(`soak: ${minutes} min, --seed ${seed}`);
    const directories = await Directories.make(stage.kinds.length);
    stage.afterwards(() => directories.remove());
    const fleet = await stage.fleet({ settingsOf: (index) => directories.settings(index) });
    const stand = await Stand.build(stage, fleet, directories, new Draw(seed + 1));
    try {
      await play(stand, schedule(new Draw(seed), fleet.replicas.length), minutes * 60_000);
      await stand.judgeWhole(stage);
      await stand.quiet();
      stand.judge(stage, minutes);
      await stand.judgeNothingLeft(stage);
    } finally {
      await stand.close();
    }
  },
};

/** One trouble after the other, until the time is over. */
async function play(stand, troubles, ms) {
  const { timeline } = stand;
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
      console.log(`${timeline.line(trouble)}; ${stand.vitals.shown} MiB`);
    }
  }
}

/** The fleet with all that is connected to it. */
class Stand {
  timeline = new Timeline();
  #doors = [];

  static async build(stage, fleet, directories, draw) {
    const one = new Stand();
    Object.assign(one, { fleet, directories, calls: stage.calls });
    one.openAtFirst = (await openFiles(fleet.replicas[SPARED].pid)).length;
    one.supervisor = new Supervisor(fleet.replicas);
    one.vitals = new Vitals(fleet.replicas);
    one.parties = await one.#parties(draw);
    one.unlucky = one.parties.find(({ name }) => name === 'unlucky');
    one.messages = new Messages(fleet.replicas, newUser('audience'), newUser('owner'), {
      followers: await one.#doorsTo([0, 0, 1, 1, 2, 2]),
      apps: await one.#doorsTo([0, 1, 2]),
      owners: await one.#doorsTo([0, 1, 2]),
      sessions: await one.#doorsTo([0, 1, 2, 2]),
    });
    one.devices = await Devices.start(new Direct(fleet, SPARED), await one.#doorsTo(Array.from({ length: DEVICES }, (_, i) => i % 3)));
    one.visitors = new Visitors(fleet, stage.calls, draw);
    await until(() => one.isWhole() && one.devices.isWhole, WHOLE_MS, () => `all to be there: ${one.missing().join(', ')}`);
    for (const party of one.parties) party.start(CALL_EVERY_MS);
    one.messages.start();
    one.visitors.start();
    return one;
  }

  /** Where connections can be cut. */
  doors() {
    return [...this.parties, this.messages, this.devices].flatMap(({ doors }) => doors);
  }

  /** Whether all replicas serve and all clients, devices aside, are connected, each daemon with its methods. */
  async isWhole() {
    if (this.supervisor.failures.length > 0) throw new Error(this.supervisor.failures.join('; '));
    if (this.missing().length > 0) return false;
    return (await Promise.all(this.fleet.replicas.map((replica) => replica.isReady()))).every(Boolean);
  }

  missing() {
    const replicas = this.fleet.replicas.filter(({ isUp }) => !isUp).map(({ options }) => `replica ${options.index}`);
    const parties = this.parties.filter(({ isWhole }) => !isWhole).map(({ name }) => name);
    return [...replicas, ...parties, ...(this.messages.isWhole ? [] : ['listeners'])];
  }

  /** In the end: policies, devices, and every daemon called from every replica. */
  async judgeWhole(stage) {
    const { replicas } = this.fleet;
    const policies = await Promise.all(replicas.map((replica) => this.directories.serves(replica).then(() => true, (error) => console.error(error.message))));
    stage.all('replicas with the policies as they were swapped in last', policies.filter(Boolean).length, replicas.length);
    await until(() => this.devices.isWhole, DEVICES_WHOLE_MS, 'the devices').catch(() => {}); // judged by what the replicas say
    const { devices, dashboard } = this.devices;
    const held = await Promise.all(devices.flatMap((device) => replicas.map((replica) => device.isHeldBy(replica))));
    stage.all('devices held by their sockets, asked of each replica', held.filter(Boolean).length, held.length);
    await until(() => devices.every(({ id }) => dashboard.statuses(id).at(-1) === 'online'), 10_000, 'dashboard').catch(() => {}); // judged here
    stage.all('devices shown online', devices.filter(({ id }) => dashboard.statuses(id).at(-1) === 'online').length, devices.length);
    stage.atMost('devices that were not let in', devices.filter(({ errors }) => errors.length > 0).length, '', { ours: 0 });
    stage.note(`devices were held off ${devices.reduce((sum, { throttled }) => sum + throttled, 0)} times`);
    let wanted = 0;
    let right = 0;
    for (const { user, methods } of this.parties) {
      for (const replica of replicas) {
        const caller = await app(replica, user);
        for (const method of methods) {
          const record = await this.calls.make(caller, method);
          wanted += 1;
          right += record.outcome === 'ok';
        }
        caller.disconnect();
      }
    }
    stage.all('methods called from every replica in the end', right, wanted);
  }

  /** No more load; resolves once all of it has ended. */
  async quiet() {
    this.messages.stop();
    this.devices.stop();
    await Promise.all([...this.parties.map((party) => party.stop()), this.visitors.stop()]);
    await delay(SETTLE_MS);
  }

  judge(stage, minutes) {
    const times = new Map();
    for (const { kind } of this.timeline.troubles) times.set(kind, (times.get(kind) ?? 0) + 1);
    stage.note(`--seed ${stage.options.seed}; troubles: ${[...times].map(([kind, n]) => `${n} ${kind}`).join(', ')}`);
    this.#judgeCalls(stage);
    this.#judgeMessages(stage);
    this.#judgeVisitors(stage);
    this.#judgeLogs(stage);
    this.#judgeEnds(stage);
    this.#judgeVitals(stage, minutes);
  }

  /** With everybody gone nobody is counted any more. */
  async judgeNothingLeft(stage) {
    closeSockets();
    const left = async () => {
      const gauges = ['websocket_connections_total', 'device_sockets', 'device_holders'];
      const counts = await Promise.all(this.fleet.replicas.flatMap((replica) => gauges.map((name) => counted(replica, name))));
      return counts.reduce((sum, count) => sum + count, 0);
    };
    await until(async () => (await left()) === 0, 60_000, 'all to be gone').catch(() => {}); // judged here
    stage.atMost('connections and devices that are counted when all have gone', await left(), '', { ours: 0 });
    let open;
    const more = async () => (open = await openFiles(this.fleet.replicas[SPARED].pid)).length - this.openAtFirst;
    await until(async () => (await more()) <= LEFT_OPEN_MAX, LEFT_OPEN_MS, 'files to be closed').catch(() => console.error(open.sort().join(' ')));
    stage.atMost(`files and sockets that replica ${SPARED} has open then, more than ${this.openAtFirst} at first`, await more(), '', { ours: LEFT_OPEN_MAX });
  }

  async close() {
    this.supervisor.close();
    this.vitals.close();
    this.messages?.stop();
    this.devices?.stop();
    await Promise.all(this.#doors.map((door) => door.close()));
  }

  /** Callers and daemons within each replica and between each two: plain ones, those whose calls outlive a connection, and those that poll. */
  async #parties(draw) {
    const parties = [];
    const add = (options) => parties.push(Object.assign(new Party(this.calls, draw, options), { user: options.user }));
    const party = (name, callersAt, workersAt, more) => add({ name, user: newUser(), methods: ['work'], callersAt, workersAt, workMaxMs: 30, ...more });
    const n = 3;
    for (let from = 0; from < n; from += 1) {
      for (let to = 0; to < n; to += 1) {
        party(`plain ${from}-${to}`, await this.#doorsTo([from]), await this.#doorsTo([to]), { methods: ['work', 'read', 'list'] });
        party(`resuming ${from}-${to}`, await this.#doorsTo([from]), await this.#doorsTo([to]), { canResume: true, workMaxMs: 1_500 });
      }
      const next = (from + 1) % n;
      party(`polling caller ${from}-${next}`, [new Direct(this.fleet, from)], await this.#doorsTo([next]), { transport: 'polling' });
      party(`polling daemon ${from}-${next}`, await this.#doorsTo([from]), [new Direct(this.fleet, next)], { workerTransport: 'polling' });
    }
    party('several', await this.#doorsTo([0, 1, 2]), await this.#doorsTo([0, 1, 2]), { workMaxMs: 300 });
    const everywhere = [0, 1, 2].map((index) => new Direct(this.fleet, index));
    party('unlucky', everywhere, await this.#doorsTo([1]), { user: unluckyUser() });
    return parties;
  }

  #doorsTo(homes) {
    return Promise.all(homes.map(async (home) => {
      const door = await Door.open(this.fleet, home);
      this.#doors.push(door);
      return door;
    }));
  }

  #judgeCalls(stage) {
    const made = this.calls.all;
    const quiet = made.filter(({ startedAt, endedAt }) => this.timeline.isQuiet(startedAt, endedAt));
    const bad = quiet.filter(({ outcome }) => outcome !== 'ok');
    stage.atLeast('calls away from all troubles', quiet.length, '', { ours: made.length / 10 });
    stage.atMost('of those, that did not succeed', bad.length, '', { ours: 0 });
    const unexplained = made.filter((record) => !isCallExplained(this.timeline, record));
    stage.atMost(`calls whose end is not explained, of ${made.length}`, unexplained.length, '', { ours: 0 });
    for (const record of unexplained.slice(0, 40)) console.error(this.#shownCall(record));
    const foreign = made.filter(({ outcome, result, id }) => outcome === 'ok' && result?.call !== id);
    stage.atMost("calls with another call's result", foreign.length, '', { ours: 0 });
    const ends = new Map();
    for (const { outcome, error } of made) ends.set(error ?? outcome, (ends.get(error ?? outcome) ?? 0) + 1);
    stage.note(`ends: ${[...ends].map(([end, n]) => `${n} x ${end}`).join(', ')}`);
  }

  #shownCall({ method, outcome, error, startedAt, ms, path, party, isVisit, id }) {
    const meanwhile = this.timeline.during(startedAt, startedAt + ms).map(({ kind, replica, at }) => `${kind}${replica === undefined ? '' : ` of ${replica}`} ${this.timeline.shown(at)}`);
    const who = party?.name ?? (isVisit ? 'a visit' : 'a last look');
    const clock = new Date(performance.timeOrigin + startedAt).toISOString();
    return `unexplained: call ${id} of ${who}, ${method}, ${this.timeline.shown(startedAt)} (${clock}), after ${ms?.toFixed()} ms: ${error ?? outcome}; path ${[...(path ?? [])].join()}; meanwhile ${meanwhile.join(', ') || 'nothing'}`;
  }

  #judgeMessages(stage) {
    const { judged, lost, repeated, gaps, disorders, refused, told } = this.messages.judged(this.timeline);
    const what = { 'did not come': lost, 'came more than once': repeated, 'came out of order to a follower': disorders };
    for (const [name, number] of Object.entries(what)) stage.atMost(`messages that ${name}, of ${judged}`, number, '', { ours: 0 });
    stage.atMost('gaps that followers were told of with Redis there', gaps, '', { ours: 0 });
    stage.atMost('broadcasts that were refused away from all troubles', refused, '', { ours: 0 });
    if (told.length > 0) console.error(told.join('\n'));
  }

  #judgeVisitors(stage) {
    const { visits, failed, nonsense } = this.visitors;
    const inQuiet = (list) => list.filter(({ from, to }) => this.timeline.isQuiet(from, to));
    stage.atLeast('visits', visits, '', { ours: 1 });
    stage.atMost('visits that failed away from all troubles', inQuiet(failed).length, '', { ours: 0 });
    stage.atLeast('nonsense that was met as it should be', nonsense.answered, '', { ours: 1 });
    stage.atMost('nonsense that was not, away from all troubles', inQuiet(nonsense.wrong).length, '', { ours: 0 });
    for (const { from, why } of [...inQuiet(failed), ...inQuiet(nonsense.wrong)].slice(0, 20)) console.error(`${this.timeline.shown(from)}: ${why}`);
  }

  /** Of all processes that there were. */
  #judgeLogs(stage) {
    const lines = this.fleet.replicas.flatMap(({ logs, options }) => logs.flat().map((line) => ({ line, index: options.index })));
    const faults = lines.filter(({ line }) => typeof line === 'string' || line.level === 'ERROR');
    stage.atMost('panics and errors in the logs', faults.length, '', { ours: 0 });
    const warnings = lines.filter(({ line }) => line.level === 'WARN');
    const unexplained = warnings.filter(({ line }) => !isWarningExplained(this.timeline, line));
    stage.atMost(`warnings that are not explained, of ${warnings.length}`, unexplained.length, '', { ours: 0 });
    for (const { line, index } of [...faults, ...unexplained].slice(0, 40)) console.error(`replica ${index}: ${typeof line === 'string' ? line : JSON.stringify(line)}`);
  }

  #judgeEnds(stage) {
    const { ends, failures } = this.supervisor;
    const asked = ends.filter(({ signal }) => signal === 'SIGTERM');
    stage.atMost('processes that ended by themselves, or did not start', ends.filter(({ signal }) => !signal).length + failures.length, '', { ours: 0 });
    stage.all('processes that ended with 0 when they were asked to', asked.filter(({ code }) => code === 0).length, asked.length);
  }

  #judgeVitals(stage, minutes) {
    const isJudged = minutes >= JUDGED_FROM_MINUTES;
    const warmUpMs = Math.min(WARM_UP_MS, minutes * 15_000);
    const limit = (ours) => (isJudged ? { ours } : {});
    for (const index of this.fleet.replicas.keys()) {
      for (const { pid, looks, from, to, peak } of this.vitals.moves(index, warmUpMs)) {
        const who = `replica ${index}, process ${pid}, ${looks} looks`;
        stage.atMost(`${who}: growth`, to.mib - from.mib, ' MiB', limit(GROWTH_MAX_MIB));
        stage.note(`${who}: ${from.mib.toFixed(1)} MiB, then ${to.mib.toFixed(1)} MiB, at most ${peak.mib.toFixed(1)} MiB`);
        stage.atMost(`${who}: threads more`, to.threads - from.threads, '', limit(THREADS_GROWTH_MAX));
        stage.atMost(`${who}: files other than sockets more`, to.files - from.files, '', limit(FILES_GROWTH_MAX));
      }
    }
    if (isJudged) stage.atLeast(`lives of replica ${SPARED} that were long enough`, this.vitals.moves(SPARED, warmUpMs).length, '', { ours: 1 });
  }
}
