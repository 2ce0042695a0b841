// A daemon's results outlive its connection: what was finished while it was away is handed in when it is back.
import { handshakeOf } from './handshake.mjs';

/** The server of the caller cannot be asked now. Every other answer is the last word on a result. */
const UNREACHABLE = 'RPC target unreachable';

/** How long the server may take to say what became of a result. */
const ANSWER_MS = 10_000;

/** How often the server is asked whether it has the latest answers: seldom, so that this costs nothing beside the calls. */
const CONFIRM_MS = 1_000;

/** How many requests may be at work: of more, the oldest are not said to be when the connection is lost. A server takes 10,000 at once. */
const AT_WORK_MAX = 9_000;

/** How many former sockets are remembered until the server knows what became of their requests. */
const FORMER_MAX = 8;

/**
 * Answers requests as `socket.on('rpc-request', listener)` does: `listener(request, answer)`, and `answer(result)` may come late,
 * on another connection. Registering the methods on every `connect` remains the caller's, by a listener that is added after this: the
 * server is first told which requests are here, so that nobody waits for those that were lost on their way. `keepMax`, `keepMs`:
 * how many results are kept, the oldest go first, and for how long; `retryMs`: the pause before one is handed in again.
 */
export function resume(socket, listener, { keepMax = 1_000, keepMs = 120_000, retryMs = 1_000 } = {}) {
  handshakeOf(socket).capabilities.add('rpc-resume');
  const requests = new Requests(socket, { keepMax, keepMs, retryMs });
  socket.on('rpc-request', (request, answer) => listener(request, requests.answering(request, answer)));
  socket.on('connect', () => requests.goOn());
}

/** Requests that the server may wait for. */
class Requests {
  /** Ids of calls that have no result yet. */
  #atWork = new Set();
  /** Call id to `{result, keptAt, sentOn, isUnderWay}`, the oldest first; `sentOn`: the connection where it was acknowledged. */
  #kept = new Map();
  /** Ids of this socket on connections that the server may have requests for. */
  #former = new Set();
  #isConfirming = false;
  #socket;
  #bounds;

  constructor(socket, bounds) {
    this.#socket = socket;
    this.#bounds = bounds;
  }

  /** The function that answers a request, on the connection where that came or on a later one. */
  answering({ callId }, answer) {
    // A server that does not know this gives no id: then there is only the acknowledgement.
    if (callId === undefined) return answer;
    const cameOn = this.#socket.id;
    let isAnswered = false;
    addWithin(this.#atWork, callId, AT_WORK_MAX);
    return (result = null) => {
      if (isAnswered) return;
      isAnswered = true;
      this.#atWork.delete(callId);
      // The acknowledgement's number means something on its own connection only.
      const isLive = this.#socket.connected && this.#socket.id === cameOn;
      this.#keep(callId, { result, keptAt: Date.now(), sentOn: isLive ? cameOn : undefined, isUnderWay: false });
      if (isLive) {
        answer(result);
        this.#confirmSoon();
      } else {
        this.#handIn(callId);
      }
    };
  }

  /** On a new connection: says which requests of the former ones are here, and hands in what is done. */
  goOn() {
    this.#prune();
    const callIds = [...this.#atWork, ...this.#kept.keys()];
    for (const former of this.#former) this.#say(former, callIds);
    addWithin(this.#former, this.#socket.id, FORMER_MAX);
    // What was acknowledged too: it may have been on its way when the connection ended. The server knows what it has.
    for (const callId of this.#kept.keys()) this.#handIn(callId);
  }

  async #say(former, callIds) {
    try {
      await this.#socket.timeout(ANSWER_MS).emitWithAck('rpc-resumed', { socket: former, callIds });
      this.#former.delete(former);
    } catch {
      // said again on the next connection
    }
  }

  #keep(callId, kept) {
    this.#kept.set(callId, kept);
    this.#prune();
  }

  #prune() {
    for (const [callId, { keptAt }] of this.#kept) {
      const isTooOld = Date.now() - keptAt > this.#bounds.keepMs;
      if (!isTooOld && this.#kept.size <= this.#bounds.keepMax) break;
      this.#kept.delete(callId);
    }
  }

  async #handIn(callId) {
    this.#prune();
    const kept = this.#kept.get(callId);
    // Not before the connection stands: socket.io-client would send it then, and we again.
    if (!kept || kept.isUnderWay || !this.#socket.connected) return;
    kept.isUnderWay = true;
    const isDone = await this.#isDone(callId, kept.result);
    kept.isUnderWay = false;
    if (isDone) this.#kept.delete(callId);
    else setTimeout(() => this.#handIn(callId), this.#bounds.retryMs);
  }

  async #isDone(callId, result) {
    try {
      const answer = await this.#socket.timeout(ANSWER_MS).emitWithAck('rpc-result', { callId, result });
      return answer?.error !== UNREACHABLE;
    } catch {
      return false; // the connection ended, or the server was silent
    }
  }

  /** Drops what was acknowledged and has arrived: a server handles a socket's events in order, so a later answer proves it. */
  #confirmSoon() {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    setTimeout(async () => {
      const sent = this.#sentHere();
      const hasArrived = sent.length > 0 && (await this.#isAnswering());
      this.#isConfirming = false;
      if (hasArrived) for (const callId of sent) this.#kept.delete(callId);
      this.#prune();
      if (this.#sentHere().length > 0) this.#confirmSoon();
    }, CONFIRM_MS);
  }

  /** The calls that were acknowledged on this very connection. */
  #sentHere() {
    if (!this.#socket.connected) return [];
    return [...this.#kept].filter(([, { sentOn }]) => sentOn === this.#socket.id).map(([callId]) => callId);
  }

  #isAnswering() {
    return this.#socket.timeout(ANSWER_MS).emitWithAck('ping').then(() => true, () => false);
  }
}

/** Adds to a set of which only the last `max` are kept. */
function addWithin(set, one, max) {
  set.add(one);
  if (set.size > max) set.delete(set.values().next().value);
}
