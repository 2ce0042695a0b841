// A thousand clients follow a numbered sequence while replicas are killed and connections cut at random: each ends with every number
// once and in order, or was told of a gap; and what they missed is read from Redis a few times, not once for each of them.
import { setTimeout as delay } from 'node:timers/promises';
import { offsets } from '../../../../clients/js/index.mjs';
import { counted } from '../../../clients/fleet/cluster.mjs';
import { connected, open } from '../../../clients/support/sockets.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { newUser } from '../../clients.mjs';

const CLIENTS = 1_000;
const USERS = 4;
const DOORS_PER_REPLICA = 10;

/** Between two numbers, and between two cuts of a door with the clients behind it; in milliseconds. */
const NUMBER_EVERY_MS = 125;
const CUT_EVERY_MS = 300;

/** How long a killed replica is away, and how long it is there until the next one is killed; in milliseconds. */
const AWAY_MS = 1_500;
const THERE_MS = 3_500;

/** For each replica that starts: one for all who come back to it, and some for those who come while that is read. */
const READS_PER_START = 3;

/** How long everything may take to arrive once nothing breaks any more. */
const CALM_MS = 60_000;

export default {
  name: 'offsets',
  seed: 'lost on the socket',
  on: ['pointwork'],
  replicasMin: 3,
  async run(stage) {
    const fleet = await stage.fleet();
    const users = Array.from({ length: USERS }, () => newUser());
    const n = fleet.replicas.length;
    const doors = await Promise.all(Array.from({ length: DOORS_PER_REPLICA * n }, (_, i) => fleet.door(i % n)));
    const clients = Array.from({ length: CLIENTS }, (_, i) => new Client(doors[i % doors.length], users[i % USERS], i));
    await Promise.all(clients.map((client) => client.started()));

    const reads = new Reads(fleet);
    const kills = stage.isShort ? 3 : 9;
    const isOver = await storm(fleet, doors, users, reads, kills);
    const truth = await numbers(fleet.redis);
    const isCalm = () => clients.every((client) => client.has(truth.at(-1)));
    await until(isCalm, CALM_MS, 'the last number everywhere').catch(() => {}); // judged below
    judge(stage, clients, truth);
    stage.all('numbers that were published', truth.length, isOver);
    stage.atLeast('reconnects', clients.reduce((sum, { connects }) => sum + connects - 1, 0), '', { ours: CLIENTS });
    const limit = READS_PER_START * kills;
    stage.atMost(`reads of what was missed, with ${kills} restarts`, await reads.total(), '', { ours: limit });
  },
};

/** A client that notes what comes: numbers, and 'gap' where it was told of one. Every other one is without clients/js. */
class Client {
  /** How often it was connected. */
  connects = 0;
  /** Broadcasts whose offset was not after that of the one before. */
  disorders = 0;
  seen = [];
  #hasBegun = false;
  #last = '0-0';
  #socket;

  constructor(door, user, index) {
    this.#socket = open(door, { user, reconnection: true, reconnectionDelay: 200, reconnectionDelayMax: 1_000 });
    if (index % 2) offsets(this.#socket, { onGap: () => {} });
    else this.#keepPlace(this.#socket);
    this.#socket.on('connect', () => (this.connects += 1));
    this.#socket.on('offset', () => (this.#hasBegun ? this.seen.push('gap') : (this.#hasBegun = true)));
    this.#socket.on('gap', () => this.seen.push('gap'));
    this.#socket.on('number', (number, offset) => {
      if (!isAfter(offset, this.#last)) this.disorders += 1;
      this.#last = offset;
      this.seen.push(number);
    });
  }

  /** Connected, and told where it begins. */
  async started() {
    await connected(this.#socket);
    await until(() => this.#hasBegun, CALM_MS, 'the first offset');
  }

  /** Whether it has a number, or has lost sight of some. */
  has(number) {
    return this.#socket.connected && (this.seen.at(-1) === number || this.seen.includes(number));
  }

  #keepPlace(socket) {
    socket.auth.capabilities = ['offsets'];
    const at = (offset) => (socket.auth.lastOffset = offset ?? socket.auth.lastOffset);
    socket.on('offset', (told) => at(told.at));
    socket.on('recovered', (told) => at(told.to));
    socket.on('gap', (told) => at(told.to));
    socket.on('number', (_, offset) => at(offset));
  }
}

/** What replicas read for those who come back, over their deaths. */
class Reads {
  #fleet;
  #ofTheDead = 0;

  constructor(fleet) {
    this.#fleet = fleet;
  }

  /** Before a replica is killed, and with it its counters. */
  async keep(replica) {
    this.#ofTheDead += await counted(replica, 'adapter_recovery_reads_total');
  }

  async total() {
    const living = await Promise.all(this.#fleet.replicas.map((replica) => counted(replica, 'adapter_recovery_reads_total')));
    return living.reduce((sum, reads) => sum + reads, this.#ofTheDead);
  }
}

/** Numbers, cuts and kills at once; gives how many numbers were published for certain. */
async function storm({ redis, replicas }, doors, users, reads, kills) {
  const rooms = users.map((user) => `user:${user}`);
  const draw = (list) => list[Math.floor(Math.random() * list.length)];
  let isOver = false;
  let doomed;
  let published = 0;
  let number = 0;
  const every = async (ms, act) => {
    while (!isOver) {
      await act();
      await delay(ms);
    }
  };
  // By turns as a server of another kind does it, and through a replica.
  const publish = async () => {
    number += 1;
    if (number % 2) await add(redis, rooms, number);
    else await draw(replicas.filter((replica) => replica.isUp && replica !== doomed)).emit({ rooms, event: 'number', args: [number] });
    published += 1;
  };
  const running = [every(NUMBER_EVERY_MS, publish), every(CUT_EVERY_MS, () => draw(doors).cut())];
  for (let kill = 0; kill < kills; kill += 1) {
    await delay(THERE_MS);
    doomed = draw(replicas);
    // What it has taken to publish is on the stream by then: it is the followers' loss that is tried, not the publisher's.
    await delay(NUMBER_EVERY_MS * 2);
    await reads.keep(doomed);
    await doomed.kill();
    await delay(AWAY_MS);
    await doomed.start();
    doomed = undefined;
  }
  await delay(THERE_MS);
  isOver = true;
  await Promise.all(running);
  return published;
}

/** As the emitter of the field's backend. */
async function add(redis, rooms, number) {
  const data = JSON.stringify({ packet: { type: 2, data: ['number', number] }, opts: { rooms, except: [], flags: {} } });
  await redis.command('XADD', 'socket.io', '*', 'uid', 'emitter', 'nsp', '/', 'type', '3', 'data', data);
}

/** The numbers on the stream, in its order. */
async function numbers(redis) {
  const entries = await redis.command('XRANGE', 'socket.io', '-', '+');
  return entries.flatMap(([, fields]) => {
    const data = fields[fields.indexOf('data') + 1];
    const [event, number] = data?.startsWith('{') ? (JSON.parse(data).packet?.data ?? []) : [];
    return event === 'number' ? [number] : [];
  });
}

function judge(stage, clients, truth) {
  const placeOf = new Map(truth.map((number, place) => [number, place]));
  const verdicts = clients.map(({ seen }) => verdict(seen, placeOf, truth.length));
  const sum = (of) => verdicts.reduce((total, one) => total + of(one), 0);
  stage.all(`clients with all ${truth.length} numbers, or told of a gap`, sum(({ isExplained }) => isExplained), CLIENTS);
  stage.atMost('clients told of a gap', sum(({ gaps }) => gaps > 0), '', { ours: 0 });
  stage.atMost('numbers that came twice', sum(({ duplicates }) => duplicates), '', { ours: 0 });
  const wrongOffsets = clients.reduce((total, { disorders }) => total + disorders, 0);
  stage.atMost('numbers out of order', sum(({ disorders }) => disorders) + wrongOffsets, '', { ours: 0 });
  const bad = verdicts.findIndex(({ isExplained }) => !isExplained);
  if (bad >= 0) stage.note(`client ${bad} misses ${truth.filter((number) => !clients[bad].seen.includes(number)).join()}`);
}

/** What became of the sequence at one client; `isExplained`: whatever is missing is missing where it was told of a gap. */
function verdict(seen, placeOf, length) {
  const had = new Set();
  let next = 0;
  let isInGap = false;
  const found = { isExplained: true, gaps: 0, duplicates: 0, disorders: 0 };
  for (const one of seen) {
    if (one === 'gap') {
      found.gaps += 1;
      isInGap = true;
      continue;
    }
    const place = placeOf.get(one);
    if (had.has(one)) found.duplicates += 1;
    else if (place < next) found.disorders += 1;
    else if (place > next && !isInGap) found.isExplained = false;
    had.add(one);
    next = Math.max(next, place + 1);
    isInGap = false;
  }
  if (next < length && !isInGap) found.isExplained = false;
  return found;
}

/** Whether the first of two ids of entries is the later. */
function isAfter(one, other) {
  const [[ms, seq], [otherMs, otherSeq]] = [one, other].map((id) => String(id).split('-').map(Number));
  return ms > otherMs || (ms === otherMs && seq > otherSeq);
}
