// Clients as the field's: unmodified sockets that reconnect by themselves, and daemons that register again on every connect.
import { once } from 'node:events';
import { connect, newUser, open } from '../clients/support/sockets.mjs';
import { until, within } from '../clients/support/waiting.mjs';

export { closeSockets, collect, newUser } from '../clients/support/sockets.mjs';

const PATIENCE_MS = 20_000;

/** A user's app: connected, and reconnecting with the library's own delays. */
export async function app(place, user, options = {}) {
  return connect(place, { user, reconnection: true, ...options });
}

/** A daemon as the field's CLI: on every connect it registers, and does not wait to be told that it is. */
export class Daemon {
  /** `{request, at}` of all requests that came. */
  requests = [];
  /** When it last emitted rpc-register. */
  registeredAt;
  socket;
  #unanswered = [];

  /**
   * Connected, and told once that it is registered. `handle(request)` gives the result, or undefined to keep the request until
   * `answerAll`; `calls`: the book where requests are noted.
   */
  static async start(place, { user, method, calls, handle = (request) => request.params, reconnection = true }) {
    const daemon = new Daemon();
    const auth = { clientType: 'machine-scoped', machineId: `machine-of-${method}` };
    daemon.socket = open(place, { user, reconnection, auth });
    daemon.socket.on('connect', () => {
      daemon.registeredAt = performance.now();
      daemon.socket.emit('rpc-register', { method });
    });
    daemon.socket.on('rpc-request', async (request, answer) => {
      daemon.requests.push({ request, at: performance.now() });
      calls.handled(request);
      const result = await handle(request);
      if (result === undefined) daemon.#unanswered.push({ request, answer });
      else answer(result);
    });
    await within(once(daemon.socket, 'rpc-registered'), PATIENCE_MS, `the registration of ${method}`);
    return daemon;
  }

  /** Waits until so many requests have come since it was made. */
  async received(number) {
    await until(() => this.requests.length >= number, PATIENCE_MS, () => `${number} requests; ${this.requests.length} came`);
  }

  /** Answers the requests that were kept. */
  answerAll() {
    for (const { request, answer } of this.#unanswered.splice(0)) answer(request.params);
  }
}

/** A caller and a daemon of one user and method, each at its place. */
export async function pair(calls, callerAt, daemonAt, { user = newUser(), method = 'work', ...options } = {}) {
  const [caller, daemon] = await Promise.all([app(callerAt, user), Daemon.start(daemonAt, { user, method, calls, ...options })]);
  return { user, method, caller, daemon };
}
