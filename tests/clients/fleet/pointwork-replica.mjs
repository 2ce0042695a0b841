// A replica that is a Pointwork host, with the default policies.
import { rm } from 'node:fs/promises';
import { startHost } from '../support/host.mjs';
import { endWithUs } from './processes.mjs';
import { Replica } from './replica.mjs';

/** `options`: `{index, redis, secret, settings, config, graceMs, streamLenMax}`. */
export class PointworkReplica extends Replica {
  kind = 'pointwork';
  /** The log of each process that it was, as `Host` has it, the latest last. */
  logs = [];
  #host;

  async launch() {
    const { redis, secret, settings, config, graceMs, streamLenMax } = this.options;
    this.#host = await startHost({
      secret,
      config,
      configs: { grace: { grace_ms: graceMs }, presence: { resume_ms: graceMs } },
      settings: {
        'listen.address': `127.0.0.1:${this.port}`,
        'redis.url': `redis://127.0.0.1:${redis}`,
        'redis.stream_len_max': streamLenMax,
        'rpc.grace_ms': graceMs,
        'drain.deadline_ms': 5_000,
        ...settings,
      },
    });
    this.logs.push(this.#host.log);
    this.admin = this.#host.admin;
    this.forget = endWithUs(this.pid);
  }

  get pid() {
    return this.#host.pid;
  }

  /** Lines of its log that say that something broke: errors, and a panic's lines, which are no JSON. */
  get faults() {
    return (this.#host?.log ?? []).filter((line) => typeof line === 'string' || line.level === 'ERROR').map(shown);
  }

  /** Its log as texts. */
  get log() {
    return (this.#host?.log ?? []).map(shown);
  }

  shownLog() {
    return this.log.slice(-30).join('\n');
  }

  /** Resolves with its exit code when its process ends, by whatever. */
  async ended() {
    const { folder, ended } = this.#host;
    const code = await ended;
    this.forget();
    await rm(folder, { recursive: true, force: true });
    return code;
  }

  /** Gives its exit code; null after a SIGKILL. */
  async end(signal) {
    const host = this.#host;
    if (!host) return undefined;
    const code = await host.end(signal);
    this.forget();
    await rm(host.folder, { recursive: true, force: true });
    return code;
  }
}

function shown(line) {
  return typeof line === 'string' ? line : JSON.stringify(line);
}
