// What a scenario works with: a fleet of its own, the book of its calls, and a list of judged figures.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Calls } from '../clients/support/calls.mjs';
import { Fleet } from '../clients/fleet/fleet.mjs';

/** How often it is looked whether this program is on time. */
const HOLD_UP_EVERY_MS = 5;

export class Stage {
  /** The book of all calls. */
  calls = new Calls();
  /** `{what, shown, limit, passed}`. */
  figures = [];
  /** Whether long waits are cut short. */
  isShort;
  /** The kinds of replica, in order. */
  kinds;
  /** What a scenario may be told: `{minutes, seed}`. */
  options;
  #fleets = [];
  #afterwards = [];
  #holdUps = monitorEventLoopDelay({ resolution: HOLD_UP_EVERY_MS });

  constructor(kinds, isShort, options = {}) {
    this.kinds = kinds;
    this.options = options;
    this.isShort = isShort;
    this.#holdUps.enable();
  }

  /** Whether all replicas are Pointwork's: then its own limits hold, else those of the seed. */
  get isOurs() {
    return this.kinds.every((kind) => kind === 'pointwork');
  }

  /** Starts the fleet; it is closed with the stage. Options as of `Fleet.start`. */
  async fleet(options, kinds = this.kinds) {
    const fleet = await Fleet.start(kinds, options);
    this.#fleets.push(fleet);
    return fleet;
  }

  /** Has something done once the fleets are gone. */
  afterwards(act) {
    this.#afterwards.push(act);
  }

  /** `limits`: `{ours, seed}`; where the one that holds is undefined the figure is shown and not judged. */
  atMost(what, value, unit, limits) {
    this.#judge(what, value, unit, '≤', limits, (limit) => value <= limit);
  }

  atLeast(what, value, unit, limits) {
    this.#judge(what, value, unit, '≥', limits, (limit) => value >= limit);
  }

  /** So many of so many, all of which there must be. */
  all(what, value, of, limits = { ours: of, seed: of }) {
    this.#judge(what, value, ` of ${of}`, '≥', limits, (limit) => value >= limit);
  }

  /** Something that must be so on every fleet, or only on ours. */
  holds(what, isSo, limits = { ours: true, seed: true }) {
    const limit = this.isOurs ? limits.ours : limits.seed;
    const passed = limit === undefined || isSo === limit;
    this.figures.push({ what, shown: isSo ? 'yes' : 'no', limit: limit === undefined ? '' : limit ? 'yes' : 'no', passed });
  }

  /** Something to know that is not judged. */
  note(what) {
    this.figures.push({ what, shown: '', limit: '', passed: true });
  }

  /** What holds in every scenario, whatever happens in it. */
  judgeBook() {
    const { all, duplicates, repeated, unanswered } = this.calls;
    if (all.length > 0) {
      const limits = { ours: 0, seed: 0 };
      this.atMost(`without an end within its bound, of ${all.length} calls`, unanswered, '', limits);
      this.atMost('answers or requests that came twice', duplicates + repeated, '', limits);
    }
  }

  /** That no replica ended by itself, and what their logs hold that should not be there; `mayFail`: errors are to be expected, panics are not. */
  judgeReplicas(mayFail) {
    const replicas = this.#fleets.flatMap((fleet) => fleet.replicas);
    this.atMost('replicas that ended by themselves', replicas.filter(({ hasCrashed }) => hasCrashed).length, '', { ours: 0, seed: 0 });
    const faults = replicas.flatMap(({ faults }) => faults);
    const counted = faults.filter((line) => !(mayFail && line.startsWith('{')));
    if (counted.length > 0) console.error(counted.slice(0, 10).join('\n'));
    if (replicas.some(({ kind }) => kind === 'pointwork')) {
      this.holds(mayFail ? 'no panic in a log' : 'no error in a log', counted.length === 0);
    }
  }

  /** For whoever looks at a latency beyond its limit: how late this program itself was, when the machine had other things to do. */
  noteHoldUps() {
    const lateMs = Math.max(0, this.#holdUps.max / 1e6 - HOLD_UP_EVERY_MS);
    this.note(`this program itself was up to ${lateMs.toFixed()} ms late`);
  }

  /** The end of each replica's log, for whoever looks for a failure's cause. */
  shownLogs() {
    const replicas = this.#fleets.flatMap(({ replicas }) => replicas);
    return replicas.map((one) => `-- replica ${one.options.index} (${one.kind})\n${one.shownLog()}`).join('\n');
  }

  async close() {
    this.#holdUps.disable();
    this.calls.close();
    await Promise.all(this.#fleets.map((fleet) => fleet.close()));
    await Promise.all(this.#afterwards.map((act) => act()));
  }

  #judge(what, value, unit, sign, limits, isWithin) {
    const limit = this.isOurs ? limits.ours : limits.seed;
    const rounded = Number.isInteger(value) ? value : value.toFixed(1);
    this.figures.push({
      what,
      shown: `${rounded}${unit}`,
      limit: limit === undefined ? '' : `${sign} ${limit}`,
      passed: limit === undefined || isWithin(limit),
    });
  }
}
