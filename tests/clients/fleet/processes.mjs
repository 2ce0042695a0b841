// The processes of a fleet: ended with this one, whatever ends it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { within } from '../support/waiting.mjs';

const running = new Set();

process.on('exit', () => {
  for (const pid of running) signal(pid, 'SIGKILL');
});
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => process.exit(130));

/** Has a process ended with this one, until the function that it gives is called. */
export function endWithUs(pid) {
  running.add(pid);
  return () => running.delete(pid);
}

/** Whether a process that we started still is one. */
export function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A process that is started, and whose end can be awaited. */
export class Process {
  #child;
  #ended;

  constructor(program, args, options) {
    this.#child = spawn(program, args, options);
    this.#ended = once(this.#child, 'exit');
    this.#ended.catch(() => {}); // told here, or by whoever awaits it
    if (this.pid === undefined) throw new Error(`${program} cannot be started: is it installed?`);
    const forget = endWithUs(this.pid);
    this.#ended.then(forget, forget);
  }

  get pid() {
    return this.#child.pid;
  }

  get stdout() {
    return this.#child.stdout;
  }

  get stderr() {
    return this.#child.stderr;
  }

  get isRunning() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves with its exit code once it has ended. */
  get ended() {
    return this.#ended.then(([code]) => code);
  }

  signal(name) {
    this.#child.kill(name);
  }

  /** Ends it; one that is stopped only hears SIGKILL. */
  async end(name = 'SIGTERM', ms = 20_000) {
    if (!this.isRunning) return;
    this.signal(name);
    await within(this.#ended, ms, `the end of process ${this.pid} after ${name}`);
  }
}

/** A port that is free now: nobody else on this machine asks for just this one in the next moment. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch {
    // it has ended by itself
  }
}
