// Records what scripted clients send and are told: one line an event, grouped by client within a step.
import { connected, open } from '../support/sockets.mjs';
import { PATIENCE_MS, until, within } from '../support/waiting.mjs';
import { shape } from './shape.mjs';

/** Heartbeats for this device are fences: they are answered at once, and not recorded. */
const FENCE = 'fence';

/** A client whose words are recorded. */
export class Client {
  socket;
  #lines = [];
  #told = [];
  #ended = 0;
  #fences = 0;

  constructor(host, options) {
    const { namespace } = options;
    this.namespace = namespace ?? '/';
    this.socket = open(host, options);
    if (namespace === '/device') this.socket.auth = undefined;
    this.socket.onAny((event, ...args) => this.#note(event, args));
    this.socket.on('connect', () => this.line('<- connected'));
    this.socket.on('connect_error', ({ message, data }) => {
      this.#ended += 1;
      this.line(`<- connect_error ${shape(message)}${data === undefined ? '' : ` ${shape(data)}`}`);
    });
    this.socket.on('disconnect', (reason) => {
      this.#ended += 1;
      this.line(`<- disconnected ${shape(reason)}`);
    });
  }

  #note(event, args) {
    if (event === 'device:heartbeat-refused' && args[0]?.device_id === FENCE) {
      this.#fences += 1;
      return;
    }
    this.#told.push([event, ...args]);
    this.line(`<- ${event} ${args.map((arg) => shape(arg)).join(', ')}`);
  }

  line(text) {
    this.#lines.push(text.trimEnd());
  }

  /** The lines since it was asked last. */
  take() {
    this.#told = [];
    return this.#lines.splice(0);
  }

  async connected() {
    await connected(this.socket);
    return this;
  }

  /** Waits until the server has refused it or ended its connection, in this step or before. */
  async ended() {
    await until(() => this.#ended > 0 && !this.socket.connected, PATIENCE_MS, () => `the end of a client; its lines: ${this.#lines.join('; ')}`);
  }

  send(event, ...args) {
    this.line(`-> ${event} ${args.map((arg) => shape(arg)).join(', ')}`);
    this.socket.emit(event, ...args);
  }

  /** Sends an event and records its acknowledgement; gives it. */
  async ask(event, ...args) {
    this.line(`-> ${event} ${args.map((arg) => shape(arg)).join(', ')}`);
    const answer = await within(this.socket.emitWithAck(event, ...args), PATIENCE_MS, `the answer to ${event} ${JSON.stringify(args).slice(0, 200)}`);
    this.line(`<- (${event}) ${shape(answer)}`);
    return answer;
  }

  /** Waits until it was told an event so many times in this step; gives the arguments of the last. */
  async told(event, times = 1) {
    const all = () => this.#told.filter(([name]) => name === event);
    await until(() => all().length >= times, PATIENCE_MS, () => `${times} of ${event}; its lines: ${this.#lines.join('; ')}`);
    return all()[times - 1].slice(1);
  }

  /** Waits until what the server told it before has come. */
  async fence() {
    if (!this.socket.connected) return;
    if (this.namespace === '/') await within(this.socket.emitWithAck('ping'), PATIENCE_MS, 'the answer to a fence');
    if (this.namespace !== '/device') return;
    const before = this.#fences;
    this.socket.emit('device:heartbeat', { device_id: FENCE });
    await until(() => this.#fences > before || !this.socket.connected, PATIENCE_MS, 'the answer to a fence');
  }

  leave() {
    this.socket.disconnect();
  }

  /** The connection breaks without a word. */
  break() {
    this.socket.io.engine.close();
  }
}

/** Runs steps one after the other and keeps their lines. */
export class Recorder {
  lines = [];
  #clients = new Map();

  /** A client that has begun to connect, named in the lines. `options` as of `open`. */
  client(name, host, options) {
    const client = new Client(host, options);
    this.#clients.set(name, client);
    return client;
  }

  /** One step: what each client sent and was told in it. */
  async step(title, run) {
    this.lines.push('', `# ${title}`);
    await run();
    // Twice: what one client caused may be told to one that was asked before it.
    for (let times = 0; times < 2; times += 1) for (const client of this.#clients.values()) await client.fence();
    for (const [name, client] of this.#clients) {
      for (const line of client.take()) this.lines.push(`${name} ${line}`);
    }
  }

  /** Forgets the clients, which leave. */
  close() {
    for (const client of this.#clients.values()) client.leave();
    this.#clients.clear();
  }
}
