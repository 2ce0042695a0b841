// Devices that register, beat, come back when they are told to, and a dashboard that watches them.
import { Dashboard, DeviceSocket, record, registration } from '../../clients/devices.mjs';
import { newUser } from '../../clients/sockets.mjs';
import { RECONNECTION } from './callers.mjs';

const BEAT_EVERY_MS = 3_000;

/** How long a device waits that was disconnected without a word. */
const COMES_BACK_MS = 1_000;

class Device {
  id = newUser('device');
  place;
  /** The errors with which it was not let in. */
  errors = [];
  throttled = 0;
  socket;
  #one;
  #isRegistered = false;
  #timer;

  constructor(place, org) {
    this.place = place;
    this.#one = DeviceSocket.register(place, registration(place, this.id, { org }), RECONNECTION);
    this.socket = this.#one.socket;
    let waitMs;
    this.socket.on('connect', () => {
      this.#isRegistered = false;
      waitMs = COMES_BACK_MS;
    });
    this.socket.on('device:registered', () => (this.#isRegistered = true));
    this.socket.on('device:auth-error', ({ error }) => this.errors.push(error));
    this.socket.on('device:throttled', ({ retry_after_ms }) => {
      this.throttled += 1;
      waitMs = retry_after_ms;
    });
    // The library does not come back by itself when the server has ended it.
    this.socket.on('disconnect', (reason) => {
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

  static async start(dashboardAt, places) {
    const one = new Devices();
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

  stop() {
    for (const device of this.devices) device.stop();
  }
}
