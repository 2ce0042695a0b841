// What the two kinds of replica have in common: a process that is started, stopped, killed and restarted.
import { until } from '../support/waiting.mjs';
import { freePort, isAlive } from './processes.mjs';

/** A cold start on a machine that may be busy. */
const READY_MS = 60_000;

/** A kind has `launch`, which sets `admin`, and `end(signal)`, `ended()`, `pid`, `faults`, `log` and `shownLog`. */
export class Replica {
  /** Where clients connect: the same over restarts. */
  url;
  path = '/socket.io';
  secret;
  /** Whether a load balancer should send clients here. */
  isUp = false;
  /** Whether it is stopped by SIGSTOP. */
  isStopped = false;
  options;

  constructor(options) {
    this.options = options;
    this.secret = options.secret;
  }

  /** Starts it, for the first time or again, and waits until it says that it is ready. */
  async start() {
    this.port ??= await freePort();
    await this.launch();
    this.url = `http://127.0.0.1:${this.port}`;
    await until(() => this.isReady(), READY_MS, () => `replica ${this.options.index} to be ready\n${this.shownLog()}`);
    this.isUp = true;
  }

  /** Whether it ended without having been told to. */
  get hasCrashed() {
    return this.isUp && !isAlive(this.pid);
  }

  async isReady() {
    return this.request('/health/ready').then(({ status }) => status === 200, () => false);
  }

  /** GET or POST of its admin API: `{status, text}`. */
  async request(path, body) {
    const options = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(this.admin + path, { ...options, signal: AbortSignal.timeout(5_000) });
    return { status: response.status, text: await response.text() };
  }

  /** Broadcasts as the application's backend does. */
  async emit(body) {
    const { status, text } = await this.request('/v1/emit', body);
    if (status !== 200) throw new Error(`emit at replica ${this.options.index}: ${status} ${text}`);
  }

  /** SIGKILL: it has no chance to say anything. */
  async kill() {
    this.isUp = false;
    await this.end('SIGKILL');
  }

  /** SIGSTOP: it lives, and does nothing. A load balancer finds out. */
  stop() {
    this.isUp = false;
    this.isStopped = true;
    process.kill(this.pid, 'SIGSTOP');
  }

  cont() {
    process.kill(this.pid, 'SIGCONT');
    this.isStopped = false;
    this.isUp = true;
  }

  /** As a supervisor does it: SIGTERM, then started again on the same port. */
  async restart() {
    this.isUp = false;
    await this.end('SIGTERM');
    await this.start();
  }

  /** For good. */
  async close() {
    this.isUp = false;
    await this.end(this.isStopped ? 'SIGKILL' : 'SIGTERM').catch(() => this.end('SIGKILL'));
  }
}
