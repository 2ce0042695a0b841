// Records the adapter's test corpus: runs two Node replicas on the Redis at REDIS_URL (its database is flushed), has them
// exchange every kind of message, and writes each stream entry and each PUB/SUB message to a file of its own.
//
//   REDIS_URL=redis://127.0.0.1:6399 node capture.mjs ../../../host/crates/adapter/tests/corpus

import crypto from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "redis";
import { startReplica, until } from "./replica.mjs";

const url = process.env.REDIS_URL;
const target = process.argv[2];
if (!url || !target) throw new Error("usage: REDIS_URL=... node capture.mjs CORPUS_DIR");

// Server and request ids are eight random bytes: counted up instead, so that a new capture differs as little as possible.
let ids = 0;
const { randomBytes } = crypto;
crypto.randomBytes = (size, ...rest) => (size === 8 ? Buffer.from((++ids).toString(16).padStart(16, "0"), "hex") : randomBytes(size, ...rest));

const redis = createClient({ url });
await redis.connect();
await redis.flushDb();
const listener = redis.duplicate();
await listener.connect();
const heard = [];
await listener.pSubscribe("socket.io#*", (payload, channel) => heard.push({ payload, channel: channel.toString() }), true);

const leapDay = new Date(Date.UTC(2024, 1, 29, 12, 30, 45, 678));

const a = await startReplica(url);
const b = await startReplica(url);
const near = await a.client();
const far = await b.client();
const far2 = await b.client();
const nearSocket = a.io.sockets.sockets.get(near.id);
const farSocket = b.io.sockets.sockets.get(far.id);
farSocket.data = { user: "u-1", since: leapDay, key: Buffer.from([1, 2, 3]), gone: undefined };
for (const client of [near, far, far2]) {
  client.on("ask", (...args) => args.at(-1)({ heard: args[0] }));
  client.on("ask-binary", (...args) => args.at(-1)(Buffer.from([0, 255, 7])));
  client.on("ask-nothing", (...args) => args.at(-1)());
}
b.io.on("sum", (x, y, done) => done?.(x + y));
b.io.on("blob", (done) => done({ at: new Date(0), bytes: Buffer.from("hi") }));
b.io.on("quiet", (done) => done());

// Runs a step and saves the messages of it. When they are several, their files are numbered in the order of their arrival.
let offset = "-";
const channels = {};
const record = async (name, step, expected) => {
  heard.length = 0;
  await step();
  const entries = async () => redis.xRange("socket.io", offset, "+");
  await until(async () => (await entries()).length + heard.length >= expected, `${expected} messages of ${name}`);
  const found = await entries();
  if (found.length + heard.length !== expected) throw new Error(`${name}: ${found.length} + ${heard.length}, not ${expected}`);
  const numbered = (i) => (expected === 1 ? name : `${name}-${i + 1}`);
  found.forEach(({ message }, i) => save("stream", `${numbered(i)}.json`, JSON.stringify(message, null, 2) + "\n"));
  heard.forEach(({ payload, channel }, i) => {
    save("pubsub", `${numbered(found.length + i)}.msgpack`, payload);
    channels[numbered(found.length + i)] = channel;
  });
  if (found.length > 0) offset = "(" + found.at(-1).id;
};
const save = (dir, file, content) => {
  mkdirSync(join(target, dir), { recursive: true });
  writeFileSync(join(target, dir, file), content);
};
const values = [null, true, -1, 200, -40000, 5e9, -5e9, 2 ** 53, 0.1, -2.5, "", "é ☃ 😀 \u0001 \"\\/", [], {}, { n: { m: [1, [2, [3]]] } }];

await record("broadcast-all", () => a.io.emit("hello", { a: 1 }, "x"), 1);
await record("broadcast-rooms-except", () => a.io.to(["r1", "r2"]).except("r3").emit("hello"), 1);
await record("broadcast-volatile-compress", () => a.io.volatile.compress(false).emit("tick", 1), 1);
await record("broadcast-from-socket", () => nearSocket.broadcast.emit("from", "me"), 1);
await record("broadcast-values", () => a.io.emit("values", ...values), 1);
await record("broadcast-values-binary", () => a.io.emit("values", Buffer.alloc(0), ...values), 1);
await record("broadcast-date", () => a.io.emit("at", leapDay, undefined, { gone: undefined, at: leapDay }), 1);
await record("broadcast-binary-dates", () => a.io.emit("at", Buffer.from([0, 1, 254, 255]), leapDay, new Date(1000), new Date(-1), undefined, { gone: undefined }), 1);
await record("broadcast-binary-long", () => a.io.to("r1").emit("blob", Buffer.alloc(300, 7), "s".repeat(40), "t".repeat(300), Array(20).fill(1)), 1);
await record("broadcast-lone-surrogate", () => a.io.emit("cut", "\ud83d", "ok\\ud83d"), 1);
await record("broadcast-lone-surrogate-binary", () => a.io.emit("cut", "\ud83d", Buffer.from([1])), 1);
await record("broadcast-custom-namespace", async () => {
  a.io.of("/admin").emit("hello", "admins");
}, 1);
await record("sockets-join", () => a.io.in(far.id).socketsJoin(["r1", "r2"]), 1);
await record("sockets-leave", () => a.io.in("r2").except("r9").socketsLeave("r2"), 1);
await record("local-broadcast-is-not-published", () => {
  a.io.local.emit("here");
  a.io.emit("everywhere");
}, 1);

await record("fetch-sockets", () => a.io.fetchSockets(), 2);
await record("fetch-sockets-nobody", () => a.io.in("nobody").timeout(700).fetchSockets(), 2);
await record("server-side-emit", () => a.io.serverSideEmit("sum", 1, "two"), 1);
await record("server-side-emit-ack", () => a.io.serverSideEmitWithAck("sum", 1, 2), 2);
await record("server-side-emit-ack-binary", () => a.io.serverSideEmitWithAck("blob"), 2);
await record("server-side-emit-ack-nothing", () => a.io.serverSideEmitWithAck("quiet"), 2);
await record("broadcast-ack-nobody", () => a.io.to("nobody").timeout(300).emitWithAck("ask", 1), 2);
await record("broadcast-ack-one", () => a.io.to(far.id).timeout(2000).emitWithAck("ask", "q"), 3);
await record("broadcast-ack-several", () => a.io.timeout(2000).emitWithAck("ask", "all"), 4);
await record("broadcast-ack-binary", () => a.io.to(far.id).timeout(2000).emitWithAck("ask-binary", Buffer.from([9, 8])), 3);
await record("broadcast-ack-nothing", () => a.io.to(far.id).timeout(2000).emitWithAck("ask-nothing"), 3);
heard.length = 0;
const [remote] = await a.io.in(far.id).fetchSockets();
await until(() => heard.length === 2, "the fetch is over");
await record("remote-socket-ack", () => remote.timeout(2000).emitWithAck("ask", "one"), 3);
await record("disconnect-sockets", async () => {
  a.io.in(far2.id).disconnectSockets();
  await once(far2, "disconnect");
}, 1);
await record("disconnect-sockets-close", async () => {
  a.io.in(far.id).disconnectSockets(true);
  await once(far, "disconnect");
}, 1);

save(".", "channels.json", JSON.stringify(channels, null, 2) + "\n");
near.close();
await Promise.all([a.close(), b.close()]);
listener.destroy();
redis.destroy();
process.exit(0);
