// How clients of the soak reach the fleet: by a load balancer's listener of their own, or always at one replica.
import { Proxy } from '../../../clients/fleet/proxy.mjs';

/** A client that came back elsewhere may still be known where it was for so long: calls to it can end with that. */
const REMEMBERED_MS = 3_000;

/** Leads to its home as long as that is up, else to the next replica that is. */
export class Door {
  url;
  path;
  secret;
  /** Whether it resets its client's connections when it is cut. */
  canBeCut = true;
  /** The replica that the latest connection was led to, by index. */
  at;
  #left;
  #proxy;

  static async open({ replicas }, home) {
    const door = new Door();
    const inOrder = () => replicas.map((_, i) => replicas[(home + i) % replicas.length]).filter(({ isUp }) => isUp);
    door.#proxy = await Proxy.start(() => {
      const order = inOrder();
      door.#lead(order[0]?.options.index);
      return order.map(({ port }) => port);
    });
    const [{ path, secret }] = replicas;
    return Object.assign(door, { url: `http://127.0.0.1:${door.#proxy.port}`, path, secret, at: home });
  }

  /** The replicas that its client may be known at, the latest first. */
  get places() {
    const isRemembered = this.#left && performance.now() - this.#left.since < REMEMBERED_MS;
    return isRemembered ? [this.at, this.#left.at] : [this.at];
  }

  #lead(at) {
    if (at !== this.at) this.#left = { at: this.at, since: performance.now() };
    this.at = at;
  }

  cut() {
    this.#proxy.cut();
  }

  close() {
    return this.#proxy.close();
  }
}

/** One replica, whatever becomes of it: where a client's requests have to stay together, as those of polling have. */
export class Direct {
  canBeCut = false;

  constructor({ replicas }, at) {
    const { url, path, secret } = replicas[at];
    Object.assign(this, { url, path, secret, at, places: [at] });
  }

  async close() {}
}
