// Clients that come, call once and go; and those that talk nonsense.
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect, newUser, open } from '../../clients/sockets.mjs';
import { within } from '../../clients/waiting.mjs';
import { Worker } from './callers.mjs';
import { Direct } from './doors.mjs';
import { until } from '../../clients/waiting.mjs';

const VISIT_EVERY_MS = 800;
const NONSENSE_EVERY_MS = 1_200;

/** Nonsense is bounded in count, whatever the run's length. */
const NONSENSE_MAX = 1_500;

/** Calls that are answered with an error: parameters, and what the error is. */
const BAD_CALLS = {
  'no body': [null, /^Invalid parameters/],
  'a number': [7, /^Invalid parameters/],
  'no method': [{ params: {} }, /^Invalid parameters/],
  'a method that is no text': [{ method: { a: 1 }, params: {} }, /^Invalid parameters/],
  'an empty method': [{ method: '', params: {} }, /^Invalid parameters/],
  'a negative timeout': [{ method: 'm', params: {}, timeoutMs: -1 }, /^Invalid parameters|^RPC method not available/],
};

export class Visitors {
  /** Visits that came to their end. */
  visits = 0;
  /** Visits that did not: `{from, to, why}`. */
  failed = [];
  /** What nonsense was met by. */
  nonsense = { sent: 0, answered: 0, wrong: [] };
  #fleet;
  #calls;
  #draw;
  #timers = [];
  #running = new Set();

  constructor(fleet, calls, draw) {
    this.#fleet = fleet;
    this.#calls = calls;
    this.#draw = draw;
  }

  start() {
    const every = (ms, act) => this.#timers.push(setInterval(() => this.#run(act), ms));
    every(VISIT_EVERY_MS, () => this.#visit());
    every(NONSENSE_EVERY_MS, () => this.#talkNonsense());
  }

  async stop() {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#running);
  }

  #run(act) {
    const one = act();
    this.#running.add(one);
    one.finally(() => this.#running.delete(one));
  }

  #place() {
    const up = this.#fleet.replicas.filter(({ isUp }) => isUp);
    return up.length > 0 ? new Direct(this.#fleet, this.#draw.of(up).options.index) : undefined;
  }

  async #visit() {
    const [from, to, transport] = [this.#place(), this.#place(), this.#draw.of(['websocket', 'websocket', 'polling'])];
    if (!from || !to) return;
    const startedAt = performance.now();
    const user = newUser('visitor');
    const worker = new Worker(this.#calls, to, { user, methods: ['once'], transport });
    let caller;
    try {
      caller = await connect(from, { user, transport });
      await until(() => worker.isWhole, 20_000, 'a visiting daemon');
      const record = await this.#calls.make(caller, 'once');
      Object.assign(record, { path: new Set([from.at, to.at]), isVisit: true });
      this.visits += 1;
    } catch (error) {
      this.failed.push({ from: startedAt, to: performance.now(), why: error.message });
    } finally {
      caller?.disconnect();
      worker.socket.disconnect();
    }
  }

  async #talkNonsense() {
    const place = this.#place();
    if (!place || this.nonsense.sent >= NONSENSE_MAX) return;
    const kinds = [this.#badCall, this.#badEvents, this.#badPackets, this.#badToken, this.#badHttp, this.#badDevice, this.#badEmit];
    this.nonsense.sent += 1;
    const startedAt = performance.now();
    try {
      await this.#draw.of(kinds).call(this, place);
      this.nonsense.answered += 1;
    } catch (error) {
      this.nonsense.wrong.push({ from: startedAt, to: performance.now(), why: error.message });
    }
  }

  async #badCall(place) {
    const socket = await connect(place, { user: newUser('noise') });
    try {
      const name = this.#draw.of(Object.keys(BAD_CALLS));
      const [payload, expected] = BAD_CALLS[name];
      const answer = await within(socket.emitWithAck('rpc-call', payload), 20_000, `the answer of a call with ${name}`);
      if (answer?.ok !== false || !expected.test(answer.error)) throw new Error(`a call with ${name}: ${JSON.stringify(answer)}`);
    } finally {
      socket.disconnect();
    }
  }

  /** Events that mean nothing; the connection stands. */
  async #badEvents(place) {
    const socket = await connect(place, { user: newUser('noise') });
    try {
      for (const event of ['rpc-register', 'rpc-unregister', 'rpc-result', 'session-alive', 'session-end', 'machine-alive', 'rpc-resumed', 'nobody-knows']) {
        for (const body of [null, 7, 'text', [], {}, { method: 7 }, { sid: '', time: 'now' }]) socket.emit(event, body);
      }
      await within(socket.emitWithAck('ping'), 20_000, 'the answer of a ping after nonsense');
    } finally {
      socket.disconnect();
    }
  }

  /** Packets that are none: it is cut off, or they are passed over. */
  async #badPackets(place) {
    const socket = await connect(place, { user: newUser('noise') });
    const words = ['2["rpc-call"', '999', '2/nowhere,["a"]', '51-["rpc-call",{"_placeholder":true,"num":3}]', '{', '2{"a":1}', '3999["ack of nothing"]', '4"no"'];
    socket.io.engine.write(this.#draw.of(words));
    await within(Promise.race([once(socket, 'disconnect'), socket.emitWithAck('ping')]).catch(() => {}), 70_000, 'an end, or an answer, after a bad packet');
    socket.disconnect();
  }

  async #badToken(place) {
    const socket = open(place, { auth: { token: this.#draw.of(['', 'a.b.c', 'x'.repeat(10_000), { no: 'text' }]) } });
    const refused = once(socket, 'connect_error').then(() => true);
    const taken = once(socket, 'connect').then(() => false, () => new Promise(() => {}));
    try {
      if (!(await within(Promise.race([refused, taken]), 20_000, 'a refusal'))) throw new Error('a bad token was taken');
    } finally {
      socket.disconnect();
    }
  }

  /** What is no HTTP, or none of ours. */
  async #badHttp(place) {
    const words = ['NONSENSE\r\n\r\n', '\x16\x03\x01\x02\x00', 'GET /socket.io/?EIO=3&transport=polling HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', 'POST /socket.io/?EIO=4&transport=polling&sid=nobody HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx'];
    const socket = connectTcp(Number(new URL(place.url).port), '127.0.0.1');
    socket.on('error', () => {}); // followed by `close`
    socket.on('data', () => {});
    socket.end(this.#draw.of(words));
    await within(once(socket, 'close'), 70_000, 'the end of a connection that is no client\'s');
  }

  async #badDevice(place) {
    const socket = open(place, { namespace: '/device' });
    socket.auth = undefined;
    try {
      await within(once(socket, 'connect'), 20_000, 'a connection to /device');
      const ended = once(socket, 'disconnect');
      const told = once(socket, 'device:auth-error');
      const body = this.#draw.of([null, 7, {}, { device_id: 7 }, { device_id: 'd', device_token: 'no token' }, { pairing_code: '' }]);
      socket.emit('device:register', body);
      await within(Promise.race([told, ended]), 20_000, `an answer to a register with ${JSON.stringify(body)}`);
    } finally {
      socket.disconnect();
    }
  }

  async #badEmit(place) {
    const replica = this.#fleet.replicas[place.at];
    const { status } = await replica.request('/v1/emit', this.#draw.of([[], {}, { rooms: [] }, { rooms: ['a'], event: 7 }]));
    if (status !== 400) throw new Error(`a bad emit was answered with ${status}`);
  }
}
