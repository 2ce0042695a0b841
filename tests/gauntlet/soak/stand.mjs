// The fleet with all that is connected to it.
import { setTimeout as delay } from 'node:timers/promises';
import { newUser } from '../../clients/support/sockets.mjs';
import { unlucky } from '../../clients/support/unlucky.mjs';
import { until } from '../../clients/support/waiting.mjs';
import { Party } from './traffic/callers.mjs';
import { Direct, Door } from './traffic/doors.mjs';
import { Devices } from './traffic/fleet-of-devices.mjs';
import { Messages } from './traffic/messages.mjs';
import { Supervisor } from './supervisor.mjs';
import { Timeline } from './timeline.mjs';
import { SPARED } from './troubles.mjs';
import { Visitors } from './traffic/visitors.mjs';
import { openFiles, Vitals } from './vitals.mjs';

const CALL_EVERY_MS = 500;
const DEVICES = 12;

/** How long it may take until all is whole after a trouble, and from then on until nothing is to be seen of it any more. */
export const WHOLE_MS = 40_000;
export const SETTLE_MS = 2_000;

/** The replicas that clients are at home at. */
const HOMES = [0, 1, 2];

export class Stand {
  timeline = new Timeline();
  fleet;
  policies;
  calls;
  supervisor;
  vitals;
  parties;
  /** Of the parties, the one whose user the hostile guest traps for; its callers are at all replicas. */
  unlucky;
  messages;
  devices;
  visitors;
  /** How many files and sockets the spared replica had open before anybody came. */
  openAtFirst;
  #doors = [];

  /** All are connected, and the load is on. `draw`: for what is not a trouble. */
  static async build({ calls }, fleet, policies, draw) {
    const one = Object.assign(new Stand(), { fleet, policies, calls });
    one.openAtFirst = (await openFiles(fleet.replicas[SPARED].pid)).length;
    one.supervisor = new Supervisor(fleet.replicas);
    one.vitals = new Vitals(fleet.replicas);
    try {
      await one.#fill(draw);
    } catch (error) {
      await one.close();
      throw error;
    }
    return one;
  }

  /** Where connections can be cut. */
  doors() {
    return [...this.parties, this.messages, this.devices].flatMap(({ doors }) => doors);
  }

  /** Whether all replicas serve and all clients, devices aside, are connected, each daemon with its methods. */
  async isWhole() {
    if (this.supervisor.failures.length > 0) throw new Error(this.supervisor.failures.join('; '));
    if (this.missing().length > 0) return false;
    return (await Promise.all(this.fleet.replicas.map((replica) => replica.isReady()))).every(Boolean);
  }

  /** Who is not there, by name. */
  missing() {
    const replicas = this.fleet.replicas.filter(({ isUp }) => !isUp).map(({ options }) => `replica ${options.index}`);
    const parties = this.parties.filter(({ isWhole }) => !isWhole).map(({ name }) => name);
    return [...replicas, ...parties, ...(this.messages.isWhole ? [] : ['listeners'])];
  }

  /** No more load; resolves once all of it has ended. */
  async quiet() {
    this.messages.stop();
    this.devices.stop();
    await Promise.all([...this.parties.map((party) => party.stop()), this.visitors.stop()]);
    await delay(SETTLE_MS);
  }

  async close() {
    this.supervisor.close();
    this.vitals.close();
    this.messages?.stop();
    this.devices?.stop();
    await Promise.all(this.#doors.map((door) => door.close()));
  }

  async #fill(draw) {
    this.parties = await this.#invite(draw);
    this.unlucky = this.parties.find(({ name }) => name === 'unlucky');
    this.messages = new Messages(this.fleet.replicas, newUser('audience'), newUser('owner'), {
      followers: await this.#doorsTo([...HOMES, ...HOMES]),
      apps: await this.#doorsTo(HOMES),
      owners: await this.#doorsTo(HOMES),
      sessions: await this.#doorsTo([...HOMES, 2]),
    });
    const devicesAt = await this.#doorsTo(Array.from({ length: DEVICES }, (_, i) => HOMES[i % HOMES.length]));
    this.devices = await Devices.start(this.fleet.replicas, new Direct(this.fleet, SPARED), devicesAt, draw);
    this.visitors = new Visitors(this.fleet, this.calls, draw);
    const isThere = async () => this.devices.isWhole && this.isWhole();
    await until(isThere, WHOLE_MS, () => `all to be there: ${this.missing().join(', ') || 'devices'}`);
    for (const party of this.parties) party.start(CALL_EVERY_MS);
    this.messages.start();
    this.devices.start();
    this.visitors.start();
  }

  /** Callers and daemons within each replica and between each two: plain ones, those whose calls outlive a connection, and those that poll. */
  async #invite(draw) {
    const parties = [];
    const party = (name, callersAt, workersAt, more) =>
      parties.push(new Party(this.calls, draw, { name, user: newUser(), methods: ['work'], callersAt, workersAt, workMaxMs: 30, ...more }));
    const pair = async (name, from, to, more) => party(name, await this.#doorsTo([from]), await this.#doorsTo([to]), more);
    for (const from of HOMES) {
      for (const to of HOMES) {
        await pair(`plain ${from}-${to}`, from, to, { methods: ['work', 'read', 'list'] });
        await pair(`resuming ${from}-${to}`, from, to, { canResume: true, workMaxMs: 1_500 });
      }
      const next = (from + 1) % HOMES.length;
      party(`polling caller ${from}-${next}`, [new Direct(this.fleet, from)], await this.#doorsTo([next]), { transport: 'polling' });
      party(`polling daemon ${from}-${next}`, await this.#doorsTo([from]), [new Direct(this.fleet, next)], { workerTransport: 'polling' });
    }
    party('several', await this.#doorsTo(HOMES), await this.#doorsTo(HOMES), { workMaxMs: 300 });
    party('unlucky', HOMES.map((index) => new Direct(this.fleet, index)), await this.#doorsTo([1]), { user: unlucky('user') });
    return parties;
  }

  #doorsTo(homes) {
    return Promise.all(homes.map(async (home) => {
      const door = await Door.open(this.fleet, home);
      this.#doors.push(door);
      return door;
    }));
  }
}
