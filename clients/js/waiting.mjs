// Calls, and word of those that are held because their daemon is away.
import { handshakeOf } from './handshake.mjs';

const EVENT = 'rpc-waiting';

/**
 * Has the server tell when a call of this socket is held, and when it goes on: `listener({method, sinceMs, deadlineMs})`.
 * `sinceMs`: how long its daemon has been away; `deadlineMs`: how long it is held at most, 0 when it goes on.
 * Without a listener only the `onWaiting` of a `call` is told.
 */
export function waiting(socket, listener) {
  handshakeOf(socket).capabilities.add('rpc-waiting');
  if (listener) socket.on(EVENT, listener);
}

/**
 * Calls a method and resolves with its result. Rejects with an error that has the server's message, or that of socket.io-client
 * when the connection ends first. `timeoutMs`: how long its daemon may take; `onWaiting`: told what `waiting` is told, but only
 * of this method. The server names no call: of several to one method each is told of all.
 */
export async function call(socket, method, params, { timeoutMs, onWaiting } = {}) {
  const told = (news) => news.method === method && onWaiting(news);
  if (onWaiting) socket.on(EVENT, told);
  try {
    const answer = await socket.emitWithAck('rpc-call', { method, params, timeoutMs });
    if (answer?.ok !== true) throw new Error(answer?.error ?? 'the answer is none');
    return answer.result;
  } finally {
    if (onWaiting) socket.off(EVENT, told);
  }
}
