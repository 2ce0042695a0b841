// Memory, threads and open files of processes, sockets aside, looked at every few seconds, and how they move over a process' life.
import { readdir, readFile, readlink } from 'node:fs/promises';
import { median } from '../../clients/support/calls.mjs';

const LOOK_EVERY_MS = 3_000;

/** In a life that is too short for quarters with this many looks each, nothing can be told. */
const LOOKS_MIN = 5;

export class Vitals {
  /** `{index, pid, looks: [{at, mib, threads, files}]}` of each process, in the order of their starts. */
  lives = [];
  #replicas;
  #timer;

  constructor(replicas) {
    this.#replicas = replicas;
    this.#timer = setInterval(() => replicas.forEach((replica, index) => this.#look(replica, index)), LOOK_EVERY_MS);
  }

  /** What each replica has in memory now, for whoever watches. */
  get shown() {
    return this.#replicas.map((_, index) => `${(this.lives.findLast((life) => life.index === index)?.looks.at(-1)?.mib ?? 0).toFixed(1)}`).join(' / ');
  }

  close() {
    clearInterval(this.#timer);
  }

  /**
   * How each life of a replica that has looks enough after its warm-up moved: `{pid, looks, from, to, peak}`, the medians of the first and
   * of the last quarter of those looks and the most, each `{mib, threads, files}`.
   */
  moves(index, warmUpMs) {
    return this.lives.filter((life) => life.index === index).flatMap(({ pid, looks }) => {
      const warm = looks.filter(({ at }) => at - looks[0].at >= warmUpMs);
      const quarter = Math.floor(warm.length / 4);
      if (quarter < LOOKS_MIN) return [];
      const middle = (some) => each((what) => median(some.map((look) => look[what])));
      const peak = each((what) => Math.max(...warm.map((look) => look[what])));
      return [{ pid, looks: warm.length, from: middle(warm.slice(0, quarter)), to: middle(warm.slice(-quarter)), peak }];
    });
  }

  async #look({ pid, isUp, isStopped }, index) {
    if (!isUp || isStopped) return;
    try {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      const files = (await openFiles(pid)).filter((file) => !file.startsWith('socket:'));
      const number = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]);
      let life = this.lives.findLast((one) => one.index === index);
      if (life?.pid !== pid) this.lives.push((life = { index, pid, looks: [] }));
      life.looks.push({ at: performance.now(), mib: number('VmRSS') / 1_024, threads: number('Threads'), files: files.length });
    } catch {
      // it ended just now
    }
  }
}

const each = (of) => ({ mib: of('mib'), threads: of('threads'), files: of('files') });

/** What a process has open, as the kernel names it. */
export async function openFiles(pid) {
  const names = await readdir(`/proc/${pid}/fd`);
  const files = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => undefined)));
  return files.filter((file) => file !== undefined);
}
