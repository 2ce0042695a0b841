// A Redis of the fleet's own that keeps nothing on disk, can be stopped, started empty, hung and resumed.
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until, within } from '../support/waiting.mjs';
import { freePort, Process } from './processes.mjs';

/** How long a Redis may take to answer. */
const ANSWER_MS = 2_000;

export class Redis {
  /** Stays the same over restarts. */
  port;
  #folder;
  #server;

  static async start() {
    const redis = new Redis();
    redis.#folder = await mkdtemp(join(tmpdir(), 'pointwork-redis-'));
    redis.port = await freePort();
    await redis.startEmpty();
    return redis;
  }

  /** Starts it, with nothing in it; resolves once it answers. */
  async startEmpty() {
    const options = { bind: '127.0.0.1', port: this.port, dir: this.#folder, save: '', appendonly: 'no' };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
    this.#server = new Process('redis-server', args, { stdio: 'ignore' });
    const answers = async () => {
      if (!this.#server.isRunning) throw new Error('redis-server ended at once');
      return this.command('PING').then((answer) => answer === 'PONG', () => false);
    };
    await until(answers, 10_000, 'an answer of redis-server');
  }

  /** It is gone at once, and with it all that it knew. */
  async stop() {
    await this.#server.end('SIGKILL');
  }

  /** It neither answers nor ends. */
  hang() {
    this.#server.signal('SIGSTOP');
  }

  resume() {
    this.#server.signal('SIGCONT');
  }

  async close() {
    await this.#server?.end('SIGKILL');
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** One command on a connection of its own; its answer as text, number or list. */
  async command(...words) {
    const socket = connect(this.port, '127.0.0.1');
    try {
      return await within(exchange(socket, words), ANSWER_MS, `Redis' answer to ${words[0]}`);
    } finally {
      socket.destroy();
    }
  }

  /** How many are subscribed to a channel. */
  async subscribers(channel) {
    return (await this.command('PUBSUB', 'NUMSUB', channel))[1];
  }
}

async function exchange(socket, words) {
  await once(socket, 'connect');
  const bulk = words.map((word) => `$${Buffer.byteLength(String(word))}\r\n${word}\r\n`);
  socket.write(`*${words.length}\r\n${bulk.join('')}`);
  let text = '';
  socket.setEncoding('utf8');
  for await (const chunk of socket) {
    text += chunk;
    const parsed = parse(text, 0);
    if (parsed) {
      if (parsed.value instanceof Error) throw parsed.value;
      return parsed.value;
    }
  }
  throw new Error('Redis closed the connection');
}

/** The value at `at` and where it ends; undefined while it is not all there. Plain ASCII is assumed. */
function parse(text, at) {
  const lineEnd = text.indexOf('\r\n', at);
  if (lineEnd < 0) return undefined;
  const line = text.slice(at + 1, lineEnd);
  let end = lineEnd + 2;
  switch (text[at]) {
    case '+':
      return { value: line, end };
    case '-':
      return { value: new Error(line), end };
    case ':':
      return { value: Number(line), end };
    case '$': {
      if (line === '-1') return { value: null, end };
      const after = end + Number(line) + 2;
      return after <= text.length ? { value: text.slice(end, after - 2), end: after } : undefined;
    }
    case '*': {
      const list = [];
      for (let i = 0; i < Number(line); i += 1) {
        const item = parse(text, end);
        if (!item) return undefined;
        list.push(item.value);
        end = item.end;
      }
      return { value: list, end };
    }
    default:
      throw new Error(`Redis said ${JSON.stringify(text[at])}`);
  }
}
