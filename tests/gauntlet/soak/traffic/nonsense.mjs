// Clients that talk nonsense: each kind has an answer that is right.
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect, newUser, open } from '../../../clients/support/sockets.mjs';
import { within } from '../../../clients/support/waiting.mjs';

/** How long a server may take to answer, and to end what is no client's connection. */
const ANSWER_MS = 20_000;
const END_MS = 70_000;

/** Calls that are answered with an error: parameters, and what the error is. */
const BAD_CALLS = {
  'no body': [null, /^Invalid parameters/],
  'a number': [7, /^Invalid parameters/],
  'no method': [{ params: {} }, /^Invalid parameters/],
  'a method that is no text': [{ method: { a: 1 }, params: {} }, /^Invalid parameters/],
  'an empty method': [{ method: '', params: {} }, /^Invalid parameters/],
  'a negative timeout': [{ method: 'm', params: {}, timeoutMs: -1 }, /^Invalid parameters|^RPC method not available/],
};

/** Packets that are none. */
const BAD_PACKETS = [
  '2["rpc-call"',
  '999',
  '2/nowhere,["a"]',
  '51-["rpc-call",{"_placeholder":true,"num":3}]',
  '{',
  '2{"a":1}',
  '3999["ack of nothing"]',
  '4"no"',
];

/** What is no HTTP, or none of ours. */
const BAD_REQUESTS = [
  'NONSENSE\r\n\r\n',
  '\x16\x03\x01\x02\x00',
  'GET /socket.io/?EIO=3&transport=polling HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n',
  'POST /socket.io/?EIO=4&transport=polling&sid=nobody HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx',
];

const NAMES = ['rpc-register', 'rpc-unregister', 'rpc-result', 'rpc-resumed', 'session-alive', 'session-end', 'machine-alive', 'nobody-knows'];
const BODIES = [null, 7, 'text', [], {}, { method: 7 }, { sid: '', time: 'now' }];
const BAD_TOKENS = ['', 'a.b.c', 'x'.repeat(10_000), { no: 'text' }];
const BAD_REGISTERS = [null, 7, {}, { device_id: 7 }, { device_id: 'd', device_token: 'no token' }, { pairing_code: '' }];
const BAD_EMITS = [[], {}, { rooms: [] }, { rooms: ['a'], event: 7 }];

export class Nonsense {
  #fleet;
  #draw;

  constructor(fleet, draw) {
    this.#fleet = fleet;
    this.#draw = draw;
  }

  /** One of all kinds, at a place; rejects if it was not met as it should be. */
  talk(place) {
    const kinds = ['call', 'events', 'packets', 'token', 'http', 'device', 'emit'];
    return this[this.#draw.of(kinds)](place);
  }

  async call(place) {
    const socket = await connect(place, { user: newUser('noise') });
    try {
      const name = this.#draw.of(Object.keys(BAD_CALLS));
      const [payload, expected] = BAD_CALLS[name];
      const answer = await within(socket.emitWithAck('rpc-call', payload), ANSWER_MS, `the answer of a call with ${name}`);
      if (answer?.ok !== false || !expected.test(answer.error)) throw new Error(`a call with ${name}: ${JSON.stringify(answer)}`);
    } finally {
      socket.disconnect();
    }
  }

  /** Events that mean nothing; the connection stands. */
  async events(place) {
    const socket = await connect(place, { user: newUser('noise') });
    try {
      for (const event of NAMES) for (const body of BODIES) socket.emit(event, body);
      await within(socket.emitWithAck('ping'), ANSWER_MS, 'the answer of a ping after nonsense');
    } finally {
      socket.disconnect();
    }
  }

  /** Packets that are none: it is cut off, or they are passed over. */
  async packets(place) {
    const socket = await connect(place, { user: newUser('noise') });
    try {
      const ended = once(socket, 'disconnect');
      socket.io.engine.write(this.#draw.of(BAD_PACKETS));
      const answered = socket.emitWithAck('ping').catch(() => {}); // it has ended
      await within(Promise.race([ended, answered]), END_MS, 'an end, or an answer, after a bad packet');
    } finally {
      socket.disconnect();
    }
  }

  async token(place) {
    const socket = open(place, { auth: { token: this.#draw.of(BAD_TOKENS) } });
    const refused = once(socket, 'connect_error').then(() => true);
    const taken = once(socket, 'connect').then(() => false, () => new Promise(() => {}));
    try {
      if (!(await within(Promise.race([refused, taken]), ANSWER_MS, 'a refusal'))) throw new Error('a bad token was taken');
    } finally {
      socket.disconnect();
    }
  }

  /** What is no HTTP, or none of ours. */
  async http(place) {
    const socket = connectTcp(Number(new URL(place.url).port), '127.0.0.1');
    socket.on('error', () => {}); // followed by `close`
    socket.on('data', () => {});
    socket.end(this.#draw.of(BAD_REQUESTS));
    await within(once(socket, 'close'), END_MS, 'the end of a connection that is no client\'s');
  }

  async device(place) {
    const socket = open(place, { namespace: '/device' });
    socket.auth = undefined;
    try {
      await within(once(socket, 'connect'), ANSWER_MS, 'a connection to /device');
      const ended = once(socket, 'disconnect');
      const told = once(socket, 'device:auth-error');
      const body = this.#draw.of(BAD_REGISTERS);
      socket.emit('device:register', body);
      await within(Promise.race([told, ended]), ANSWER_MS, `an answer to a register with ${JSON.stringify(body)}`);
    } finally {
      socket.disconnect();
    }
  }

  async emit(place) {
    const replica = this.#fleet.replicas[place.at];
    const { status } = await replica.request('/v1/emit', this.#draw.of(BAD_EMITS));
    if (status !== 400) throw new Error(`a bad emit was answered with ${status}`);
  }
}
