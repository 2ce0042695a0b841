// What a socket says of itself on every connection: its own `auth`, and what the additions put beside that.

/** Socket to its handshake. */
const handshakes = new WeakMap();

/** The part of a socket's handshake that is ours. */
class Handshake {
  /** Names of capabilities. */
  capabilities = new Set();
  /** Where in the stream it is; undefined as long as it is nowhere. */
  lastOffset;

  /** Extends the socket's `auth`, and whatever it is replaced by later. */
  constructor(socket) {
    let auth = this.#extended(socket.auth);
    Object.defineProperty(socket, 'auth', {
      configurable: true,
      enumerable: true,
      get: () => auth,
      set: (own) => (auth = this.#extended(own)),
    });
  }

  /** A function stays one and an object too, so that `socket.auth.token = …` goes on to work. */
  #extended(own) {
    if (typeof own === 'function') return (send) => own((data) => send({ ...data, ...this.#additions(data) }));
    const auth = { ...own };
    for (const name of ['capabilities', 'lastOffset']) {
      const get = () => this.#additions(own)[name];
      Object.defineProperty(auth, name, { configurable: true, enumerable: true, get });
    }
    return auth;
  }

  #additions(own) {
    const capabilities = [...new Set([...(own?.capabilities ?? []), ...this.capabilities])];
    return { capabilities, lastOffset: this.lastOffset ?? own?.lastOffset };
  }
}

/** The handshake of a socket. Throws when the socket is connected: the server has already been told who it is. */
export function handshakeOf(socket) {
  if (socket.connected) throw new Error('the socket is connected: this must be added before');
  let handshake = handshakes.get(socket);
  if (!handshake) handshakes.set(socket, (handshake = new Handshake(socket)));
  return handshake;
}
