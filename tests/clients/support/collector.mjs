// A collector of spans: takes OTLP in protobuf over HTTP and keeps what came.
import { once } from 'node:events';
import { createServer } from 'node:http';

export class Collector {
  /** Spans in the order of arrival: `{resource, traceId, spanId, parentId, name, attributes, isError, startNs, endNs}`. */
  spans = [];
  /** All bodies, as they came. */
  bodies = [];
  /** What requests are answered with. */
  status = 200;
  /** So many spans of each request it says that it rejects, below 128; it keeps all. */
  rejected = 0;
  #server;

  static async start() {
    const collector = new Collector();
    collector.#server = createServer(async (request, response) => {
      const chunks = [];
      for await (const chunk of request) chunks.push(chunk);
      response.writeHead(collector.#take(request, Buffer.concat(chunks)), { 'content-type': 'application/x-protobuf' });
      // `partial_success` with `rejected_spans`, or nothing.
      response.end(collector.rejected > 0 ? Buffer.from([0x0a, 2, 0x08, collector.rejected]) : '');
    });
    collector.#server.listen(0, '127.0.0.1');
    await once(collector.#server, 'listening');
    return collector;
  }

  get url() {
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  async close() {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #take({ method, url, headers }, body) {
    if (method !== 'POST' || url !== '/v1/traces' || headers['content-type'] !== 'application/x-protobuf') return 400;
    if (this.status !== 200) return this.status;
    this.bodies.push(body);
    for (const [, resourceSpans] of only(1, fields(body))) {
      const inside = fields(resourceSpans);
      const resource = attributes(only(1, inside).flatMap(([, text]) => only(1, fields(text))));
      for (const [, scope] of only(2, inside)) {
        for (const [, span] of only(2, fields(scope))) this.spans.push({ resource, ...spanOf(fields(span)) });
      }
    }
    return 200;
  }
}

function spanOf(all) {
  const one = (number) => only(number, all)[0]?.[1];
  const hex = (number) => one(number)?.toString('hex') ?? '';
  const status = only(15, all).flatMap(([, text]) => only(3, fields(text)));
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    name: one(5).toString(),
    attributes: attributes(only(9, all)),
    isError: status[0]?.[1] === 2n,
    startNs: one(7).readBigUInt64LE(),
    endNs: one(8).readBigUInt64LE(),
  };
}

const only = (number, all) => all.filter(([found]) => found === number);

function attributes(pairs) {
  return Object.fromEntries(pairs.map(([, pair]) => {
    const [[, key], [, value]] = [only(1, fields(pair))[0], only(2, fields(pair))[0]];
    const [[kind, given]] = fields(value);
    const read = { 1: () => given.toString(), 2: () => given === 1n, 3: () => Number(given), 4: () => given.readDoubleLE() };
    return [key.toString(), read[kind]()];
  }));
}

/** The fields of a protobuf message: `[number, value]`; numbers are BigInts, all else is bytes. */
function fields(bytes) {
  const found = [];
  let at = 0;
  const varint = () => {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error('a protobuf message that is cut off');
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length) => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const key = Number(varint());
    const wire = { 0: varint, 1: () => take(8), 2: () => take(Number(varint())), 5: () => take(4) }[key & 7];
    found.push([key >> 3, wire()]);
  }
  return found;
}
