// A TCP proxy that can become a black hole, and that balances load: each connection goes to the first target that takes it.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** Listens on loopback and carries bytes both ways. */
export class Proxy {
  #server;
  #targets;
  #links = new Set();
  #isHole = false;

  /** `targets()`: the ports to try, in order, for the connection that just came in. */
  static async start(targets) {
    const proxy = new Proxy();
    proxy.#targets = targets;
    // Half open is allowed so that the end of one side is told to the other by us, and not told by a black hole.
    proxy.#server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => proxy.#accept(client));
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get port() {
    return this.#server.address().port;
  }

  /** Nothing comes through in either direction, neither bytes nor an end; nobody is told. */
  blackhole() {
    this.#isHole = true;
    for (const link of this.#links) link.hold();
  }

  /** What was on its way arrives now, as after TCP's retransmissions. */
  heal() {
    this.#isHole = false;
    for (const link of this.#links) link.release();
  }

  /** Every connection through it is reset on both sides. */
  cut() {
    for (const link of this.#links) link.cut();
  }

  async close() {
    this.#server.close();
    this.cut();
    await once(this.#server, 'close');
  }

  #accept(client) {
    const link = new Link(client, this.#targets);
    this.#links.add(link);
    link.onEnd = () => this.#links.delete(link);
    if (this.#isHole) link.hold();
    else link.release();
  }
}

/** One connection and the one that it is carried on. */
class Link {
  onEnd = () => {};
  #client;
  #server;
  #targets;
  #isHeld = true;
  /** What a black hole keeps to itself: how one side was to be told of the other's end. */
  #untold = [];

  constructor(client, targets) {
    this.#client = client;
    this.#targets = targets;
    client.pause();
    client.on('error', () => {}); // followed by `close`
    client.once('close', () => this.#server || this.onEnd());
  }

  hold() {
    this.#isHeld = true;
    this.#client.pause();
    this.#server?.pause();
  }

  release() {
    this.#isHeld = false;
    for (const tell of this.#untold.splice(0)) tell();
    if (this.#server) this.#flow();
    else this.#reach(this.#targets());
  }

  cut() {
    this.#client.resetAndDestroy();
    this.#server?.resetAndDestroy();
    this.onEnd();
  }

  #reach([port, ...rest]) {
    if (port === undefined) return this.cut();
    const server = connect({ port, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    const refused = () => this.#reach(rest);
    server.once('error', refused);
    server.once('connect', () => {
      server.off('error', refused);
      server.on('error', () => {}); // followed by `close`
      if (this.#client.destroyed) return server.destroy();
      this.#server = server;
      server.pause();
      this.#pour(this.#client, server);
      this.#pour(server, this.#client);
      if (!this.#isHeld) this.#flow();
    });
  }

  #flow() {
    this.#client.resume();
    this.#server.resume();
  }

  /** Not `pipe`: that resumes a source which is paused on purpose. */
  #pour(from, to) {
    from.on('data', (bytes) => {
      if (to.write(bytes)) return;
      from.pause();
      to.once('drain', () => this.#isHeld || from.resume());
    });
    from.once('end', () => this.#tell(() => to.end()));
    from.once('close', () => {
      this.#tell(() => to.destroySoon());
      if (to.destroyed) this.onEnd();
    });
  }

  #tell(end) {
    if (this.#isHeld) this.#untold.push(end);
    else end();
  }
}
