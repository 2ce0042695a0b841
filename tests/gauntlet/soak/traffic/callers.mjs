// Callers and their daemons: who calls whom, from which replica to which, and what became of each call.
import { setTimeout as delay } from 'node:timers/promises';
import { resume } from '../../../../clients/js/index.mjs';
import { open } from '../../../clients/support/sockets.mjs';

/** Back soon, so that a trouble is over soon. */
export const RECONNECTION = { reconnection: true, reconnectionDelay: 200, reconnectionDelayMax: 1_000 };

/** A daemon that answers with the parameters after so long as they say; it registers its methods on every connect. */
export class Worker {
  place;
  socket;
  #methods;
  #registered = new Set();

  /** `canResume`: whether its requests outlive its connection. */
  constructor(calls, place, { user, methods, transport, canResume = false }) {
    this.place = place;
    this.#methods = methods;
    this.socket = open(place, { user, transport, ...RECONNECTION, auth: { clientType: 'machine-scoped', machineId: `m-${methods[0]}` } });
    const work = async (request, answer) => {
      calls.handled(request);
      const cameOn = this.socket.id;
      if (request.params?.workMs) await delay(request.params.workMs);
      // An acknowledgement's number means something on its own connection only.
      if (canResume || this.socket.id === cameOn) answer(request.params ?? null);
    };
    if (canResume) resume(this.socket, work);
    else this.socket.on('rpc-request', work);
    this.socket.on('rpc-registered', ({ method }) => this.#registered.add(method));
    this.socket.on('connect', () => {
      this.#registered.clear();
      for (const method of methods) this.socket.emit('rpc-register', { method });
    });
  }

  /** Connected, and told of each method that it is registered on this connection. */
  get isWhole() {
    return this.socket.connected && this.#methods.every((method) => this.#registered.has(method));
  }
}

/** Callers and workers of one user, all methods called in turn. */
export class Party {
  /** What shows in a failure. */
  name;
  user;
  callers;
  workers;
  methods;
  /** Whether any of it polls: then a replica that is not asked any more by the load balancer is a loss of connection. */
  isPolling;
  #calls;
  #workMaxMs;
  #draw;
  #timers = [];
  #turn = 0;
  #made = [];

  /** `callersAt`, `workersAt`: places; `workMaxMs`: how long the workers take at most; `transport`, `workerTransport`, `canResume`. */
  constructor(calls, draw, { name, user, methods, callersAt, workersAt, workMaxMs, canResume, transport, workerTransport }) {
    Object.assign(this, { name, user, methods, isPolling: [transport, workerTransport].includes('polling') });
    this.#calls = calls;
    this.#draw = draw;
    this.#workMaxMs = workMaxMs;
    this.workers = workersAt.map((place) => new Worker(calls, place, { user, methods, canResume, transport: workerTransport }));
    this.callers = callersAt.map((place) => ({ place, socket: open(place, { user, transport, ...RECONNECTION }) }));
  }

  /** One call of each caller so often, from now on. */
  start(everyMs) {
    for (const caller of this.callers) {
      this.#timers.push(setInterval(() => this.#made.push(this.call(caller)), everyMs));
    }
  }

  /** Makes a call and gives its record, with its `party` and the `path`, the replicas that it may have touched, the caller's first. */
  async call({ place, socket }) {
    const method = this.methods[(this.#turn += 1) % this.methods.length];
    const path = () => [place.at, ...this.workers.flatMap((worker) => worker.place.places)];
    const before = path();
    const made = this.#calls.make(socket, method, { workMs: this.#draw.between(0, this.#workMaxMs) });
    const record = await made;
    return Object.assign(record, { party: this, path: new Set([...before, ...path()]) });
  }

  get isWhole() {
    return this.callers.every(({ socket }) => socket.connected) && this.workers.every(({ isWhole }) => isWhole);
  }

  /** Where its connections can be cut. */
  get doors() {
    return [...this.callers, ...this.workers].map(({ place }) => place).filter(({ canBeCut }) => canBeCut);
  }

  /** Resolves once all calls have ended. */
  async stop() {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#made);
  }
}
