// Joining, leaving, disconnecting and finding sockets of other servers, in both directions.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { createClient } from "redis";
import { until } from "../replica.mjs";
import { EVERYONE, reaches } from "./fleet.mjs";

/** What Node's callers read of a remote socket's handshake without a look whether it is there. */
const HANDSHAKE = ["address", "auth", "headers", "issued", "query", "secure", "time", "url", "xdomain"];

export function sockets(fleet) {
  const id = (name) => fleet().clients[name].id;

  for (const sender of [0, 1]) {
    const name = ["Rust", "Node"][sender];
    const side = () => fleet().sides[sender];

    test(`${name}: sockets everywhere join, are reached, and leave`, async () => {
      const rooms = [`lobby of ${name}`, `hall of ${name}`];
      await side().join({}, rooms);
      await reaches(fleet(), side(), { rooms: [rooms[1]] }, "joined", [], EVERYONE);
      await side().leave({ rooms: ["red"] }, rooms);
      await reaches(fleet(), side(), { rooms }, "left", [], ["r2", "b1"]);
      await side().leave({ except: ["red"] }, rooms);
      await reaches(fleet(), side(), { rooms }, "empty", [], []);
    });

    test(`${name}: single sockets join and leave by their ids`, async () => {
      const room = `single of ${name}`;
      await side().join({ rooms: [id("r1")] }, [room]);
      await side().join({ rooms: [id("b1")] }, [room]);
      await reaches(fleet(), side(), { rooms: [room] }, "both", [], ["r1", "b1"]);
      await side().leave({ rooms: [id("r1"), id("b1")] }, [room]);
      await reaches(fleet(), side(), { rooms: [room] }, "none", [], []);
    });

    test(`${name}: sockets of other servers are disconnected, and no others`, async () => {
      const { rust, a, b } = fleet();
      const doomed = await Promise.all([rust.client(), a.client(), b.client()]);
      const room = `doomed by ${name}`;
      await side().join({ rooms: doomed.map((socket) => socket.id) }, [room]);
      const gone = doomed.map((socket) => once(socket, "disconnect"));
      await side().disconnect({ rooms: [room] });
      for (const [reason] of await Promise.all(gone)) assert.match(reason, /io server disconnect|transport close/);
      await reaches(fleet(), side(), {}, "others", [], EVERYONE);
      doomed.forEach((socket) => socket.close());
    });
  }

  test("Node finds the sockets of the Rust server, with rooms, data and handshake", async () => {
    const found = await fleet().a.io.fetchSockets();
    assert.deepEqual(found.map((socket) => socket.id).sort(), EVERYONE.map(id).sort());
    const remote = found.find((socket) => socket.id === id("r1"));
    assert.deepEqual([...remote.rooms].sort(), [id("r1"), "red", "green"].sort());
    assert.deepEqual(Object.keys(remote.handshake).sort(), HANDSHAKE);
    assert.deepEqual(remote.handshake.auth, { name: "r1" });
    assert.match(remote.handshake.url, /^\/socket\.io\/\?/);
    assert.equal(remote.handshake.headers.upgrade, "websocket");
    assert.equal(typeof remote.handshake.issued, "number");
    assert.deepEqual(remote.data.auth, { name: "r1" });
    assert.deepEqual(remote.data.since, new Date(0));
    assert.deepEqual(Buffer.from(remote.data.key), Buffer.from([1, 2]));
  });

  test("Node finds them by room, and by namespace", async () => {
    const names = async (selected) => (await selected.fetchSockets()).map((socket) => socket.handshake.auth.name).sort();
    assert.deepEqual(await names(fleet().a.io.in("green")), ["b1", "r1"]);
    assert.deepEqual(await names(fleet().a.io.in(["red", "blue"]).except("green")), ["a1", "r2"]);
    assert.deepEqual(await names(fleet().a.io.in("nobody")), []);
    assert.deepEqual(await names(fleet().a.io.of("/second")), [...EVERYONE].sort());
  });

  test("Rust finds the sockets of Node's servers, with rooms, data and handshake", async () => {
    const { rust, a, b } = fleet();
    a.io.sockets.sockets.get(id("a1")).data = { since: new Date(0), key: Buffer.from([3]), name: "ä" };
    const { given, missing } = await rust.tell("sockets");
    assert.equal(missing, 0);
    const uids = [a, b].map(({ io }) => io.of("/").adapter.uid);
    assert.deepEqual(given.map(({ server }) => server).sort(), uids.sort());
    const [near, far] = [a, b].map(({ io }) => given.find(({ server }) => server === io.of("/").adapter.uid).sockets);
    assert.deepEqual([near, far].map((list) => list.map((socket) => socket.id)), [[id("a1")], [id("b1")]]);
    assert.deepEqual(near[0].rooms.sort(), [id("a1"), "red"].sort());
    assert.deepEqual(near[0].data, { since: new Date(0), key: Buffer.from([3]), name: "ä" });
    assert.deepEqual(Object.keys(near[0].handshake).sort(), HANDSHAKE);
    assert.deepEqual(near[0].handshake.auth, { name: "a1" });
  });

  test("Rust finds them by room, by namespace, and of one server alone", async () => {
    const { rust, b } = fleet();
    const names = ({ given }) => given.flatMap(({ sockets }) => sockets.map((socket) => socket.handshake.auth.name)).sort();
    assert.deepEqual(names(await rust.tell("sockets", { rooms: ["green"] })), ["b1"]);
    assert.deepEqual(names(await rust.tell("sockets", { nsp: "/second" })), ["a1", "b1"]);
    const [alone] = await rust.tell("sockets", { server: b.io.of("/").adapter.uid });
    assert.equal(alone.id, id("b1"));
    assert.equal(await rust.tell("sockets", { server: "00000000000000ff", timeout: 100 }), null);
  });

  test("a server that is silent costs Rust no answers of the others", async () => {
    const { rust, a, redis, names } = fleet();
    const silent = createClient({ url: redis.url });
    await silent.connect();
    const channel = `${names.channelPrefix ?? "socket.io"}#/#`;
    await (names.useShardedPubSub ? silent.sSubscribe(channel, () => {}) : silent.subscribe(channel, () => {}));
    assert.equal(await rust.tell("servers"), 4);
    const { given, missing } = await rust.tell("sockets", { timeout: 300 });
    assert.deepEqual([given.length, missing], [2, 1]);
    const answers = await rust.tell("server-side", { acked: true, event: "silent?", args: [], timeout: 300 });
    assert.equal(answers.missing, 3, "nobody of Node's listens to it either");
    await assert.rejects(a.io.timeout(300).fetchSockets(), /only 2 responses received out of 3/);
    silent.destroy();
    await until(async () => (await rust.tell("servers")) === 3, "it is gone");
  });
}
