// Broadcasts of the backend and signs of life: what was sent, and what came to whom.
import { offsets } from '../../../../clients/js/index.mjs';
import { open } from '../../../clients/support/sockets.mjs';
import { RECONNECTION } from './callers.mjs';

const NUMBER_EVERY_MS = 300;
const ALIVE_EVERY_MS = 1_000;

/** How long a message may be on its way: one whose way touches no trouble must have come. */
const ON_ITS_WAY_MS = 2_000;

/** Troubles of one replica that lose nothing for followers unless it is the sender's own. */
const OF_ONE_REPLICA = ['kill', 'term', 'stop'];

/** Troubles that lose nothing for followers: those come back and are told what they missed. */
const HARMLESS = ['cut', 'swap', 'broken', 'trap'];

/** Somebody who notes what comes: how often each number came. */
class Listener {
  socket;
  place;
  /** Number to how often. */
  got = new Map();
  /** When it was told of a gap, and why. */
  gaps = [];
  /** Numbers whose offset was not after the one before, and gap of none between. */
  disorders = 0;
  isFollower;
  #last = '0-0';

  constructor(place, event, numberOf, { isFollower = false, ...options }) {
    this.place = place;
    this.isFollower = isFollower;
    this.socket = open(place, { ...RECONNECTION, ...options });
    if (isFollower) offsets(this.socket, { onGap: (reason) => this.#gap(reason) });
    this.socket.on(event, (body, offset) => {
      const number = numberOf(body);
      if (number === undefined) return;
      this.got.set(number, (this.got.get(number) ?? 0) + 1);
      if (!isFollower || typeof offset !== 'string') return;
      if (!isAfter(offset, this.#last)) this.disorders += 1;
      this.#last = offset;
    });
  }

  #gap(reason) {
    this.gaps.push({ reason, at: performance.now() });
    this.#last = '0-0';
  }
}

export class Messages {
  listeners = { number: [], alive: [] };
  /** Requests of the backend that were refused or not answered: `{at, why}`. */
  refused = [];
  /** Kind to `[{number, at, from}]`; `from`: the sender's replica. */
  sent = { number: [], alive: [] };
  sessions = [];
  #timers = [];
  #replicas;
  #turn = 0;

  /** `placesOf(kind)`: a new place of each replica. */
  constructor(replicas, audience, owner, doors) {
    this.#replicas = replicas;
    this.audience = audience;
    const onNumber = (place, options) => new Listener(place, 'number', (number) => number, { user: audience, ...options });
    const onAlive = (place) => new Listener(place, 'ephemeral', ({ type, id }) => (type === 'activity' ? Number(id.slice(1)) : undefined), { user: owner });
    for (const place of doors.followers) this.listeners.number.push(onNumber(place, { isFollower: true }));
    for (const place of doors.apps) this.listeners.number.push(onNumber(place));
    for (const place of doors.owners) this.listeners.alive.push(onAlive(place));
    this.sessions = doors.sessions.map((place, i) => ({
      place,
      socket: open(place, { user: owner, ...RECONNECTION, auth: { clientType: 'session-scoped', sessionId: `s-${i}` } }),
    }));
  }

  get isWhole() {
    return [...this.sessions, ...this.listeners.number, ...this.listeners.alive].every(({ socket }) => socket.connected);
  }

  get doors() {
    return [...this.sessions, ...this.listeners.number, ...this.listeners.alive].map(({ place }) => place);
  }

  start() {
    this.#timers.push(setInterval(() => this.#emit(), NUMBER_EVERY_MS));
    for (const session of this.sessions) this.#timers.push(setInterval(() => this.#alive(session), ALIVE_EVERY_MS));
  }

  stop() {
    for (const timer of this.#timers) clearInterval(timer);
  }

  /** What is wrong: `{lost, repeated, gaps, disorders, refused, judged}` counts and, for the report, `told`. */
  judged(timeline) {
    const found = { judged: 0, lost: 0, repeated: 0, gaps: 0, disorders: 0, refused: 0, told: [] };
    const tell = (what, text) => {
      found[what] += 1;
      if (found.told.length < 20) found.told.push(text);
    };
    for (const kind of ['number', 'alive']) {
      for (const [i, listener] of this.listeners[kind].entries()) {
        for (const { number, at, from } of this.sent[kind]) {
          if (!mustCome(timeline, listener, at, from)) continue;
          found.judged += 1;
          const times = listener.got.get(number) ?? 0;
          if (times === 1) continue;
          const who = `listener ${i}${listener.isFollower ? ', a follower,' : ''} at replica ${listener.place.at}`;
          const what = `${kind} ${number}, sent at replica ${from} ${timeline.shown(at)}, came ${times} times to ${who}`;
          tell(times === 0 ? 'lost' : 'repeated', what);
        }
        const unexplained = listener.gaps.filter(({ at }) => !timeline.during(at, at).some(({ kind }) => kind.startsWith('redis')));
        for (const { reason, at } of unexplained) tell('gaps', `listener ${i} was told of a gap ${timeline.shown(at)}: ${reason}`);
        found.disorders += listener.disorders;
      }
    }
    for (const { at, why } of this.refused) if (timeline.isQuiet(at, at)) tell('refused', `an emit ${timeline.shown(at)}: ${why}`);
    return found;
  }

  async #emit() {
    const up = this.#replicas.filter(({ isUp }) => isUp);
    if (up.length === 0) return;
    const replica = up[(this.#turn += 1) % up.length];
    const number = this.#turn;
    const at = performance.now();
    try {
      await replica.emit({ rooms: [`user:${this.audience}`], event: 'number', args: [number] });
      this.sent.number.push({ number, at, from: replica.options.index });
    } catch (error) {
      this.refused.push({ at, why: error.message });
    }
  }

  #alive({ socket, place }) {
    if (!socket.connected) return;
    const number = (this.#turn += 1);
    this.sent.alive.push({ number, at: performance.now(), from: place.at });
    socket.emit('session-alive', { sid: `n${number}`, time: Date.now(), mode: 'local' });
  }
}

/** Whether a message must have come to a listener, once. */
function mustCome(timeline, { isFollower }, at, from) {
  const troubles = timeline.during(at, at + ON_ITS_WAY_MS);
  if (!isFollower) return troubles.length === 0;
  return troubles.every(({ kind, replica }) => HARMLESS.includes(kind) || (OF_ONE_REPLICA.includes(kind) && replica !== from));
}

/** Whether the first of two ids of entries is the later. */
function isAfter(one, other) {
  const [[ms, seq], [otherMs, otherSeq]] = [one, other].map((id) => id.split('-').map(Number));
  return ms > otherMs || (ms === otherMs && seq > otherSeq);
}
