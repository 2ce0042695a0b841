// Node's own adapter reads what the Rust codec writes: a Rust server that is played by this test shares a Redis with a
// Node replica. MESSAGES is the output of `cargo run -p socketioxide-redis-streams --example write_messages`; the database
// at REDIS_URL is flushed.
//
//   REDIS_URL=redis://127.0.0.1:6399 MESSAGES=messages.jsonl node --test read.test.mjs

import assert from "node:assert/strict";
import crypto from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { after, before, beforeEach, test } from "node:test";
import { decode } from "@msgpack/msgpack";
import { createClient } from "redis";
import { startReplica, until } from "./replica.mjs";

const url = process.env.REDIS_URL;
const publicChannel = "socket.io#/#";
const rustChannel = "socket.io#/#00000000000000aa#";
const lines = readFileSync(process.env.MESSAGES, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const written = Object.fromEntries(lines.map((line) => [line.name, line]));

let redis, listener, node, client;
let answers = [];
let onRequest = () => {};

before(async () => {
  redis = createClient({ url });
  await redis.connect();
  await redis.flushDb();
  node = await startReplica(url);
  client = await node.client();
  listener = redis.duplicate();
  await listener.connect();
  await listener.subscribe(rustChannel, (payload) => answers.push(decode(payload)), true);
  // Being subscribed to the public channel is what makes it count as a server.
  await listener.subscribe(publicChannel, (payload) => onRequest(decode(payload)), true);
  const { randomBytes } = crypto;
  crypto.randomBytes = (size, ...rest) => (size === 8 ? Buffer.from("00000000000000ff", "hex") : randomBytes(size, ...rest));
  // Node's cursor is `$` until the first entry: entries are sent until one arrives.
  await add("unknown-entry");
  let arrived = false;
  client.once("text", () => (arrived = true));
  await until(async () => arrived || (await add("text"), false), "the stream is read");
});

beforeEach(() => {
  answers = [];
  onRequest = () => {};
});

after(async () => {
  client.close();
  await node.close();
  listener.destroy();
  redis.destroy();
});

const add = (name) => redis.xAdd("socket.io", "*", written[name].fields);
const publish = (name, channel = publicChannel) => redis.publish(channel, Buffer.from(written[name].payload, "base64"));
const nodeChannel = () => `socket.io#/#${node.io.of("/").adapter.uid}#`;
const answerWith = (type, ...names) => {
  onRequest = async (message) => {
    if (message.uid !== node.io.of("/").adapter.uid || message.type !== type) return;
    for (const name of names) await publish(name, nodeChannel());
  };
};
const values = [3, 0.5, "é 😀", null, "2024-02-29T12:30:45.678Z"];

test("a client gets an event of JSON and one of msgpack", async () => {
  const text = once(client, "text");
  await add("text");
  assert.deepEqual(await text, values);
  const binary = once(client, "binary");
  await add("binary");
  assert.deepEqual(await binary, [Buffer.from([0, 1, 254, 255]), ...values]);
});

test("sockets join, are reached in the room, and leave", async () => {
  const rooms = () => node.io.sockets.sockets.get(client.id).rooms;
  await add("join");
  await until(() => rooms().has("rust"), "the socket joins");
  const reached = once(client, "to-room");
  await add("to-room");
  await reached;
  await add("leave");
  await until(() => !rooms().has("rust"), "the socket leaves");
});

test("Node answers our broadcast with acks", async () => {
  client.once("ask", (bytes, ack) => ack(bytes));
  await publish("unknown-request");
  await publish("ask");
  await until(() => answers.length === 2, "two answers");
  assert.deepEqual(answers.map(({ type }) => type), [11, 12]);
  assert.deepEqual(answers[0].data, { requestId: "00000000000000ff", clientCount: 1 });
  assert.deepEqual(Buffer.from(answers[1].data.packet), Buffer.from([7]));
});

test("Node answers our fetch", async () => {
  await publish("fetch");
  await until(() => answers.length === 1, "an answer");
  assert.equal(answers[0].type, 8);
  assert.deepEqual(answers[0].data.sockets.map(({ id }) => id), [client.id]);
});

test("Node hears and answers our server-side events", async () => {
  let heard = 0;
  node.io.on("sum", (x, y, ack) => {
    heard += 1;
    ack?.(x + y);
  });
  await publish("server-side-emit");
  await publish("server-side-emit-ack");
  await until(() => answers.length === 1, "an answer");
  assert.equal(heard, 2);
  assert.deepEqual(answers[0].data, { requestId: "00000000000000ff", packet: 3 });
});

test("Node takes our answer to its fetch", async () => {
  answerWith(7, "fetched");
  const sockets = await node.io.timeout(2000).fetchSockets();
  const ours = sockets.find(({ id }) => id !== client.id);
  assert.equal(sockets.length, 2);
  assert.equal(ours.id, "AAAAAAAAAAAAAAAAAAAAAA");
  assert.deepEqual([...ours.rooms], ["AAAAAAAAAAAAAAAAAAAAAA", "rust"]);
  assert.equal(ours.handshake.url, "/socket.io/");
  assert.deepEqual(ours.data.since, new Date(0));
  assert.deepEqual(Buffer.from(ours.data.key), Buffer.from([1, 2]));
});

test("Node takes our ack of its server-side event", async () => {
  answerWith(9, "server-side-ack");
  assert.deepEqual(await node.io.serverSideEmitWithAck("sum", 1, 2), [42]);
});

test("Node takes our client's ack of its broadcast", async () => {
  answerWith(3, "client-count", "client-ack");
  client.once("ask", (bytes, ack) => ack("from node"));
  const acks = await node.io.timeout(2000).emitWithAck("ask", 1);
  assert.deepEqual(acks.sort(), ["from node", "from rust"]);
});

test("our disconnect closes a Node server's socket", async () => {
  const disconnected = once(client, "disconnect");
  await add("disconnect");
  await disconnected;
});
