// The place in the stream of broadcasts: kept, and said on the next connection, so that nothing is missed in between.
import { handshakeOf } from './handshake.mjs';

/** The id of an entry of the stream: milliseconds since 1970, and a number. Not just any two numbers, which an event may well end with. */
const OFFSET = /^\d{12,}-\d+$/;

/**
 * Has the server send what was missed on every reconnect, before anything new. Broadcasts get their offset as an additional last
 * argument. `onGap(reason)`: something is lost for good (`trimmed`, `unknown`, `too-many` or `unreachable`), so fetch your state
 * again; `from`: where to begin, from an earlier run. `last` of what it gives is where the socket is.
 */
export function offsets(socket, { onGap, from }) {
  if (typeof onGap !== 'function') throw new TypeError('offsets needs onGap: without it a loss would be silent');
  const handshake = handshakeOf(socket);
  handshake.capabilities.add('offsets');
  handshake.lastOffset = from;
  // A place that is not told leaves us where we were: the next connection asks again from there.
  const reached = (at) => (handshake.lastOffset = at ?? handshake.lastOffset);
  socket.onAny((_event, ...args) => {
    const last = args.at(-1);
    if (typeof last === 'string' && OFFSET.test(last)) reached(last);
  });
  socket.on('offset', ({ at }) => reached(at));
  socket.on('recovered', ({ to }) => reached(to));
  socket.on('gap', ({ reason, to }) => {
    reached(to);
    onGap(reason);
  });
  return {
    get last() {
      return handshake.lastOffset;
    },
  };
}
