// A load balancer as one stands before a deployment: it asks each replica, on the port that it sends clients to, whether it is ready, and
// sends each connection to the next one that was.
import { setTimeout as delay } from 'node:timers/promises';
import { Proxy } from '../clients/fleet/proxy.mjs';

/** How often each is asked. */
const EVERY_MS = 50;
const ANSWER_MS = 1_000;

export class Balancer {
  /** `{at, index}` of each connection: when it came, as of `performance.now()`, and to which replica it was sent. */
  arrivals = [];
  #replicas;
  #ready = new Set();
  #next = 0;
  #proxy;
  #isOver = false;

  /** Balances over the replicas of a fleet, restarted ones too; it has what a client needs of a place. */
  static async start({ replicas }) {
    const balancer = new Balancer();
    balancer.#replicas = replicas;
    await Promise.all(replicas.map((_, index) => balancer.#ask(index)));
    replicas.forEach((_, index) => void balancer.#follow(index));
    balancer.#proxy = await Proxy.start(() => balancer.#choose());
    Object.assign(balancer, { url: `http://127.0.0.1:${balancer.#proxy.port}`, path: replicas[0].path, secret: replicas[0].secret });
    return balancer;
  }

  async close() {
    this.#isOver = true;
    await this.#proxy.close();
  }

  /** Ports in the order in which they are tried: in turn, and another one only when the first takes no connection. */
  #choose() {
    const n = this.#replicas.length;
    const order = this.#replicas.map((_, i) => (this.#next + i) % n).filter((index) => this.#ready.has(index));
    if (order.length > 0) {
      this.#next = order[0] + 1;
      this.arrivals.push({ at: performance.now(), index: order[0] });
    }
    return order.map((index) => this.#replicas[index].port);
  }

  async #follow(index) {
    while (!this.#isOver) {
      await delay(EVERY_MS);
      await this.#ask(index);
    }
  }

  async #ask(index) {
    if (await this.#isReady(this.#replicas[index])) this.#ready.add(index);
    else this.#ready.delete(index);
  }

  async #isReady(replica) {
    // A Node server's probe is on a port of its own.
    const place = replica.kind === 'pointwork' ? replica.url : replica.admin;
    return fetch(`${place}/health/ready`, { signal: AbortSignal.timeout(ANSWER_MS) }).then(({ ok }) => ok, () => false);
  }
}
