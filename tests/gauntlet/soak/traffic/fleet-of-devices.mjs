// Devices that register, beat, come back when they are told to, and a dashboard that watches them.
import { setTimeout as delay } from 'node:timers/promises';
import { Dashboard, DeviceSocket, record, registration } from '../../../clients/devices/devices.mjs';
import { newUser } from '../../../clients/support/sockets.mjs';
import { RECONNECTION } from './callers.mjs';

const BEAT_EVERY_MS = 3_000;

/** How long a device waits that was disconnected without a word. */
const COMES_BACK_MS = 1_000;

/** A second socket of one of the devices comes this often and stays so long: seldom enough for what the limiters allow a device. */
const RIVAL_EVERY_MS = 10_000;
const RIVAL_STAYS_MS = 1_500;

/** Away for less than this, and something for a busy machine, a device is not to be seen offline: the debounce is 5 s. */
const DEBOUNCED_MS = 4_000;

class Device {
  id = newUser('device');
  place;
  /** The errors with which it was not let in. */
  errors = [];
  throttled = 0;
  socket;
  words;
  /** The longest that it was without a session, in milliseconds. */
  longestAwayMs = 0;
  #awaySince;
  #one;
  #isRegistered = false;
  #timer;

  constructor(place, org) {
    this.place = place;
    this.words = registration(place, this.id, { org });
    this.#one = DeviceSocket.register(place, this.words, RECONNECTION);
    this.socket = this.#one.socket;
    let waitMs;
    this.socket.on('connect', () => {
      this.#isRegistered = false;
      waitMs = COMES_BACK_MS;
    });
    this.socket.on('device:registered', () => {
      if (this.#awaySince) this.longestAwayMs = Math.max(this.longestAwayMs, performance.now() - this.#awaySince);
      this.#awaySince = undefined;
      this.#isRegistered = true;
    });
    this.socket.on('device:auth-error', ({ error }) => this.errors.push(error));
    this.socket.on('device:throttled', ({ retry_after_ms }) => {
      this.throttled += 1;
      waitMs = retry_after_ms;
    });
    // The library does not come back by itself when the server has ended it.
    this.socket.on('disconnect', (reason) => {
      this.#awaySince ??= performance.now();
      this.#isRegistered = false;
      if (reason === 'io server disconnect') setTimeout(() => this.socket.connect(), waitMs);
    });
    this.#timer = setInterval(() => {
      if (this.isWhole) this.#one.heartbeat(this.id);
      // What it was told is judged by its record; only the last is kept.
      this.#one.told.splice(0, this.#one.told.length - 10);
    }, BEAT_EVERY_MS);
  }

  get isWhole() {
    return this.socket.connected && this.#isRegistered;
  }

  /** Whether a replica says that it is the one that has its session. */
  async isHeldBy(replica) {
    const { status, holder } = await record(replica, this.id);
    return status === 'online' && holder?.socket === this.socket.id;
  }

  stop() {
    clearInterval(this.#timer);
  }
}

export class Devices {
  devices;
  dashboard;
  /** How often there was a second socket, and how often it got the session. */
  rivals = { opened: 0, accepted: 0 };
  #timer;
  #draw;
  #replicas;

  static async start(replicas, dashboardAt, places, draw) {
    const one = new Devices();
    one.#replicas = replicas;
    one.#draw = draw;
    const org = newUser('org');
    one.dashboard = await Dashboard.open(dashboardAt, { sub: newUser(), org }, RECONNECTION);
    one.devices = places.map((place) => new Device(place, org));
    return one;
  }

  get isWhole() {
    return this.dashboard.socket.connected && this.devices.every(({ isWhole }) => isWhole);
  }

  get doors() {
    return this.devices.map(({ place }) => place);
  }

  /** Rivals come from now on. */
  start() {
    this.#timer = setInterval(() => this.#rival(), RIVAL_EVERY_MS);
  }

  /** No more rivals; resolves once the last has gone. */
  async calm() {
    clearInterval(this.#timer);
    await delay(RIVAL_STAYS_MS);
  }

  /** Devices that were seen offline though none of their absences was long enough for that. */
  get slandered() {
    return this.devices.filter(({ id, longestAwayMs }) => longestAwayMs < DEBOUNCED_MS && this.dashboard.statuses(id).some((status) => status !== 'online'));
  }

  async #rival() {
    const up = this.#replicas.filter(({ isUp }) => isUp);
    const device = this.#draw.of(this.devices);
    if (up.length === 0 || !device.isWhole) return;
    const rival = DeviceSocket.register(this.#draw.of(up), device.words);
    this.rivals.opened += 1;
    await delay(RIVAL_STAYS_MS);
    this.rivals.accepted += rival.isRegistered;
    rival.close();
  }

  stop() {
    clearInterval(this.#timer);
    for (const device of this.devices) device.stop();
  }
}
