// What chance decides, from a seed: the same seed draws the same.

export class Draw {
  #state;

  /** `seed`: an integer of 32 bits. */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, and without, 1. A counter whose bits are mixed (SplitMix's way, in 32 bits). */
  next() {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
  }

  /** An integer of `min` to `max`, both included. */
  between(min, max) {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** One of a list. */
  of(list) {
    return list[this.between(0, list.length - 1)];
  }

  /** The list in another order. */
  shuffled(list) {
    const rest = [...list];
    return Array.from(list, () => rest.splice(this.between(0, rest.length - 1), 1)[0]);
  }
}
