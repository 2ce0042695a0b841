// What was done to the fleet and when, so that whatever goes wrong can be held against it.

export class Timeline {
  /** `{kind, replica?, told, at, endedAt, wholeAt, quietAt}`; times as of `performance.now()`, Infinity while they are to come. */
  troubles = [];
  #startedAt = performance.now();

  /** A trouble begins. */
  begin(trouble) {
    const begun = { ...trouble, at: performance.now(), endedAt: Infinity, wholeAt: Infinity, quietAt: Infinity };
    this.troubles.push(begun);
    return begun;
  }

  /** Those whose time, from their beginning until all was quiet again, has something in common with this span. */
  during(from, to) {
    return this.troubles.filter(({ at, quietAt }) => from <= quietAt && to >= at);
  }

  isQuiet(from, to) {
    return this.during(from, to).length === 0;
  }

  /** A moment as seconds since the beginning. */
  shown(at) {
    return `+${((at - this.#startedAt) / 1_000).toFixed(1)} s`;
  }

  /** One trouble in a line. */
  line({ kind, replica, told = '', at, endedAt, wholeAt }) {
    const who = replica === undefined ? '' : ` of replica ${replica}`;
    const clock = new Date(performance.timeOrigin + at).toISOString().slice(11, 23);
    const [lasted, whole] = [endedAt - at, wholeAt - endedAt].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
    return `${this.shown(at)} (${clock}) ${kind}${who}${told && `: ${told}`}; ${lasted}, whole after another ${whole}`;
  }
}
