// A fleet: replicas behind one Redis, and the doors by which clients reach them.
import { randomBytes } from 'node:crypto';
import { until } from '../support/waiting.mjs';
import { NodeReplica, OldDesignReplica } from './node-replica.mjs';
import { PointworkReplica } from './pointwork-replica.mjs';
import { Proxy } from './proxy.mjs';
import { Redis } from './redis.mjs';

/** The channel that every replica of a namespace subscribes to exactly once. */
const PUBLIC_CHANNEL = 'socket.io#/#';

const KINDS = { pointwork: PointworkReplica, node: NodeReplica, 'old-design': OldDesignReplica };

/** Longer than the adapter's own: nobody finds the stream trimmed unless the scenario is about that. */
const STREAM_LEN_MAX = 50_000;

export class Fleet {
  redis;
  replicas = [];
  /** Replica to the proxy between it and Redis, for those that have one. */
  redisLinks = new Map();
  #doors = [];
  #secret = randomBytes(32).toString('hex');
  #options;

  /**
   * Starts it; ready when every replica is and knows how many there are.
   * `kinds`: 'pointwork', 'node' or 'old-design' for each replica; `graceMs`, `streamLenMax`; `settings`, `config`: further ones, of
   * Pointwork, as `startHost` takes them; `settingsOf(index)`: further ones of one replica; `environment`: of the others; `redisThroughProxy`: indexes of the replicas that reach Redis through a proxy.
   */
  static async start(kinds, options = {}) {
    const fleet = new Fleet();
    fleet.#options = { graceMs: 10_000, streamLenMax: STREAM_LEN_MAX, redisThroughProxy: [], ...options };
    try {
      fleet.redis = await Redis.start();
      await Promise.all(kinds.map((kind, index) => fleet.add(kind, index)));
      await fleet.agreed();
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  /** Starts one more replica. */
  async add(kind, index = this.replicas.length) {
    const { redisThroughProxy, settingsOf, ...options } = this.#options;
    options.settings = { ...options.settings, ...settingsOf?.(index) };
    let { port } = this.redis;
    if (redisThroughProxy.includes(index)) {
      const link = await Proxy.start(() => [this.redis.port]);
      this.redisLinks.set(index, link);
      ({ port } = link);
    }
    const added = new KINDS[kind]({ index, redis: port, secret: this.#secret, ...options });
    this.replicas[index] = added;
    await added.start();
    return added;
  }

  /** Waits until Redis counts as many subscribers as there are replicas: from then on Node's requests wait for the right number. */
  async agreed() {
    const count = () => this.redis.subscribers(PUBLIC_CHANNEL);
    await until(async () => (await count()) === this.replicas.length, 20_000, 'all replicas on the public channel');
  }

  /** The indexes of the replicas of a kind. */
  of(kind) {
    return this.replicas.flatMap((replica, index) => (replica.kind === kind ? [index] : []));
  }

  /**
   * A load balancer's listener, for one client: it leads to the preferred replica as long as that is up, else to the next that is;
   * `leadTo(index)` prefers another for connections to come. It is a `Proxy` too, and so can become a black hole or be cut.
   */
  async door(preferred) {
    const inOrder = () => this.replicas.map((_, i) => this.replicas[(preferred + i) % this.replicas.length]);
    const leadTo = (index) => (preferred = index);
    const proxy = await Proxy.start(() => inOrder().filter((replica) => replica.isUp).map(({ port }) => port));
    this.#doors.push(proxy);
    const { path } = this.replicas[0];
    return Object.assign(proxy, { url: `http://127.0.0.1:${proxy.port}`, path, secret: this.#secret, leadTo });
  }

  async close() {
    const parts = [...this.#doors, ...this.redisLinks.values(), ...this.replicas.filter(Boolean)];
    await Promise.allSettled(parts.map((part) => part.close()));
    await this.redis?.close();
  }
}
