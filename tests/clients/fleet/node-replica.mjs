// Replicas that are the field's own server, on Node: as it is, and as it was before.
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { within } from '../support/waiting.mjs';
import { Process } from './processes.mjs';
import { Replica } from './replica.mjs';

const programOf = (name) => fileURLToPath(new URL(`../../peers/node/${name}.mjs`, import.meta.url));

/** A cold start on a machine that may be busy. */
const LISTENS_MS = 60_000;

/** The last ones are kept. */
const LOG_LINES_MAX = 500;

/** The options of the other kind, with `environment` instead of `settings`. */
export class NodeReplica extends Replica {
  kind = 'node';
  program = programOf('seed-server');
  faults = [];
  log = [];
  #server;

  async launch() {
    const { redis, secret, graceMs, streamLenMax, environment } = this.options;
    const env = {
      PATH: process.env.PATH,
      PORT: String(this.port),
      REDIS_URL: `redis://127.0.0.1:${redis}`,
      AUTH_HS256_SECRET: secret,
      GRACE_MS: String(graceMs),
      STREAM_LEN_MAX: String(streamLenMax),
      ...environment,
    };
    this.#server = new Process(process.execPath, [this.program], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    createInterface({ input: this.#server.stderr }).on('line', (line) => {
      if (this.log.push(line) > LOG_LINES_MAX) this.log.shift();
    });
    const line = once(createInterface({ input: this.#server.stdout }), 'line').then(([line]) => line);
    const ended = this.#server.ended.then((code) => {
      throw new Error(`the Node replica ended with ${code} before it was ready:\n${this.shownLog()}`);
    });
    ended.catch(() => {}); // later it is told by whoever misses it
    this.admin = JSON.parse(await within(Promise.race([line, ended]), LISTENS_MS, 'the ready line')).listening.admin;
  }

  get pid() {
    return this.#server.pid;
  }

  shownLog() {
    return this.log.slice(-30).join('\n');
  }

  /** Resolves with its exit code when its process ends, by whatever. */
  ended() {
    return this.#server.ended;
  }

  async end(signal) {
    await this.#server?.end(signal);
  }
}

/** It has neither a grace nor a bound of the stream. */
export class OldDesignReplica extends NodeReplica {
  kind = 'old-design';
  program = programOf('old-design');
}
