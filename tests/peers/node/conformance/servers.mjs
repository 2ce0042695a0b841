// What servers tell and ask each other: server-side events, the emitter package's entries, what is unknown, what is broken.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { encode } from "@msgpack/msgpack";
import { createClient } from "redis";
import { until } from "../replica.mjs";
import { counted, EVERYONE, reaches } from "./fleet.mjs";

export function servers(fleet) {
  let redis;
  before(async () => {
    redis = createClient({ url: fleet().redis.url });
    redis.on("error", () => {}); // Redis is stopped in between
    await redis.connect();
  });
  after(() => redis.destroy());

  const stream = () => fleet().names.streamName ?? "socket.io";
  const channel = (nsp, uid) => `${fleet().names.channelPrefix ?? "socket.io"}#${nsp}#${uid ? uid + "#" : ""}`;
  const publish = (to, payload) => (fleet().names.useShardedPubSub ? redis.sPublish(to, payload) : redis.publish(to, payload));
  const heard = (event) => fleet().rust.told.filter((line) => line.told === "server-side" && line.event === event);
  // As socket.io-redis-streams-emitter appends it.
  const emitter = (type, data, nsp = "/") =>
    redis.xAdd(stream(), "*", { uid: "emitter", nsp, type: String(type), data: typeof data === "string" ? data : JSON.stringify(data) });
  const opts = (rooms = [], except = [], flags = {}) => ({ rooms, except, flags });

  test("everybody counts one subscription a server", () => counted(fleet()));

  test("Rust knows that the others are Node's", async () => {
    await until(async () => (await fleet().rust.tell("standing")).foreign === 2, "two of another kind");
    assert.deepEqual(await fleet().rust.tell("standing"), { linked: true, complete: true, peers: 0, foreign: 2 });
  });

  test("Node's server-side events get to Rust", async () => {
    const args = [1, "two", Buffer.from([3]), new Date(4), { five: [null] }];
    fleet().a.io.serverSideEmit("told", ...args);
    await until(() => heard("told").length > 0, "it is told");
    assert.deepEqual(heard("told"), [{ told: "server-side", nsp: "/", event: "told", args }]);
    fleet().a.io.of("/second").serverSideEmit("told second");
    await until(() => heard("told second").length > 0, "it is told");
    assert.equal(heard("told second")[0].nsp, "/second");
  });

  test("Node's server-side events are acknowledged by all", async () => {
    const args = [7, Buffer.from([1]), new Date(0)];
    fleet().b.io.on("asked", (...args) => args.at(-1)("from node"));
    const answers = await fleet().a.io.serverSideEmitWithAck("asked", ...args);
    assert.equal(answers.length, 2);
    assert.ok(answers.includes("from node"));
    const [, given] = answers.find((answer) => answer !== "from node");
    assert.deepEqual([given[0], Buffer.from(given[1]), given[2]], args);
  });

  test("Rust's server-side events get to Node and are acknowledged", async () => {
    const { rust, a, b } = fleet();
    const got = [];
    for (const [name, { io }] of Object.entries({ a, b })) {
      io.on("hello", (...args) => got.push([name, ...args]));
      io.on("sum", (x, y, ack) => ack({ sum: x + y, at: new Date(0) }));
    }
    await rust.tell("server-side", { event: "hello", args: ["é", new Date(5)] });
    await until(() => got.length === 2, "both are told");
    assert.deepEqual(got.sort(), [["a", "é", new Date(5)], ["b", "é", new Date(5)]]);
    const { given, missing } = await rust.tell("server-side", { event: "sum", args: [1, 2], acked: true });
    assert.equal(missing, 0);
    assert.deepEqual(given.map(({ answer }) => answer), [1, 2].map(() => ({ sum: 3, at: new Date(0) })));
    assert.deepEqual(given.map(({ server }) => server).sort(), [a, b].map(({ io }) => io.of("/").adapter.uid).sort());
  });

  test("the emitter's entries are done everywhere", async () => {
    const { clients, sides } = fleet();
    const got = (event) => EVERYONE.filter((name) => clients[name].got.some(([what]) => what === event));
    const event = async (data, to, names) => {
      await emitter(3, { packet: { type: 2, data }, opts: to });
      await until(() => got(data[0]).length === names.length, `${data[0]} gets to ${names}`);
      assert.deepEqual(got(data[0]).sort(), [...names].sort());
    };
    await event(["emitted", 1], opts(), EVERYONE);
    await event(["emitted to red"], opts(["red"]), ["r1", "a1"]);
    const binary = { packet: { type: 2, data: ["emitted bytes", Buffer.from([9])] }, opts: opts() };
    await emitter(3, Buffer.from(encode(binary)).toString("base64"));
    await until(() => got("emitted bytes").length === 4, "binary gets everywhere");
    assert.deepEqual(clients.r1.got.find(([what]) => what === "emitted bytes")[1], Buffer.from([9]));
    await emitter(4, { opts: opts(["red"]), rooms: ["pink"] });
    await event(["emitted to pink"], opts(["pink"]), ["r1", "a1"]);
    await emitter(5, { opts: opts(["pink"]), rooms: ["pink"] });
    await reaches(fleet(), sides[0], { rooms: ["pink"] }, "pink", [], []);
    await emitter(9, { packet: ["emitted to servers", 3] });
    await until(() => heard("emitted to servers").length === 1, "Rust is told");
    const gone = await Promise.all([fleet().rust.client(), fleet().b.client()]);
    await emitter(6, { opts: opts(gone.map((socket) => socket.id)), close: true });
    await until(() => gone.every((socket) => !socket.connected), "they are disconnected");
    gone.forEach((socket) => socket.close());
  });

  test("types that Node does not know pass it by", async () => {
    await emitter(101, { any: "thing" });
    await publish(channel("/"), Buffer.from(encode({ type: 100, uid: "00000000000000aa", nsp: "/", data: { any: "thing" } })));
    for (const side of fleet().sides) await reaches(fleet(), side, {}, "after unknown types", [], EVERYONE);
    assert.equal((await fleet().a.io.fetchSockets()).length, 4);
  });

  test("malformed entries are skipped and counted, and those after them arrive", async () => {
    const { rust } = fleet();
    const count = async () => (await rust.counter("adapter_malformed_total"))['{medium="stream"}'] ?? 0;
    const before = await count();
    const only = await rust.client("/rust");
    const got = [];
    only.onAny((event) => got.push(event));
    // In a namespace that Node's servers do not have: some of these would stop their readers for good.
    const packet = '"packet":{"type":2,"data":["x"]}';
    const opened = ["{", "{}", '{"packet":3,"opts":{}}', `{${packet}}`, `{${packet},"opts":{"except":[]}}`, `{${packet},"opts":{"rooms":[{}]}}`];
    const broken = [...opened, "null", "%%%", "AAAA", "wQ==", "[".repeat(100_000), '{"packet":'.repeat(20_000)];
    for (const data of broken) await emitter(3, data, "/rust");
    await emitter(4, { opts: opts() }, "/rust");
    await redis.xAdd(stream(), "*", { foo: "bar" });
    await redis.xAdd(stream(), "*", { uid: "emitter", nsp: "/rust", type: "three" });
    await redis.xAdd(stream(), "*", { uid: Buffer.from([0xff, 0xfe]), nsp: "/rust", type: "3" });
    await emitter(3, { packet: { type: 2, data: ["whole"] }, opts: opts() }, "/rust");
    await until(() => got.includes("whole"), "the one after them");
    assert.deepEqual(got, ["whole"]);
    assert.equal((await count()) - before, broken.length + 4);
    only.close();
    for (const side of fleet().sides) await reaches(fleet(), side, {}, "after broken entries", [], EVERYONE);
  });

  test("malformed messages by PUB/SUB are skipped and counted, and those after them arrive", async () => {
    const { rust, a } = fleet();
    const count = async () => (await rust.counter("adapter_malformed_total"))['{medium="channel"}'] ?? 0;
    const before = await count();
    const sender = { uid: "00000000000000aa", nsp: "/" };
    const maps = [{ type: 3 }, { type: 7, data: 1, ...sender }, { type: -1, ...sender }, { type: 3, data: {}, ...sender }];
    const broken = [Buffer.alloc(0), Buffer.from([0xc1]), Buffer.from("{}"), Buffer.alloc(50_000, 0x91), ...maps.map((map) => encode(map))];
    for (const payload of broken) await publish(channel("/", rust.uid), Buffer.from(payload));
    assert.equal((await a.io.fetchSockets()).length, 4);
    await until(async () => (await count()) - before === broken.length, "each is counted");
  });
}
