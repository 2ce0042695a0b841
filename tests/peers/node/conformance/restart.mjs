// Redis goes away and comes back empty: what goes on meanwhile, and that everything works again.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../replica.mjs";
import { counted, EVERYONE, reaches } from "./fleet.mjs";

export function restart(fleet) {
  test("without Redis local sockets are served, and what is asked of others fails fast", async () => {
    const { rust, redis, clients, b } = fleet();
    await redis.stop();
    await until(() => rust.told.some((line) => line.told === "link" && !line.up), "the link is down");
    const got = (name, event) => clients[name].got.some(([what]) => what === event);
    await rust.tell("emit", { event: "alone", args: [1] });
    await until(() => got("r1", "alone") && got("r2", "alone"), "local sockets get it");
    assert.deepEqual(await rust.tell("ack", { rooms: [clients.r1.id], timeout: 5000, event: "ask", args: ["still"] }), ["still"]);
    await rust.tell("join", { rooms: [clients.r2.id], names: ["shelter"] });
    await rust.tell("emit", { rooms: ["shelter"], event: "in the shelter", args: [] });
    await until(() => got("r2", "in the shelter"), "the room is there");
    const started = performance.now();
    const ask = { server: b.io.of("/").adapter.uid, socket: clients.b1.id, event: "ask", args: [], timeout: 30_000 };
    assert.deepEqual(await rust.tell("request", ask), [{ error: "the link to the other server was lost" }]);
    await assert.rejects(rust.tell("sockets"), /not connected/);
    assert.ok(performance.now() - started < 2500, "fast");
  });

  test("with Redis back, and empty, all is as it was", async () => {
    const { rust, redis, sides, clients } = fleet();
    await redis.start();
    const back = performance.now();
    await until(async () => (await rust.tell("standing")).linked, "the link is up", 10_000);
    assert.ok(performance.now() - back < 2000, `linked after ${performance.now() - back} ms`);
    await counted(fleet());
    for (const side of sides) await reaches(fleet(), side, {}, "again", [1], EVERYONE);
  });

  for (const sender of [0, 1]) {
    const name = ["Rust", "Node"][sender];
    const side = () => fleet().sides[sender];
    test(`${name}: everything again, in short`, async () => {
      const { clients } = fleet();
      await reaches(fleet(), side(), { rooms: ["red", "green"] }, "rooms", ["é", Buffer.from([1])], ["r1", "a1", "b1"]);
      await reaches(fleet(), side(), { except: [clients.b1.id] }, "except", [], ["r1", "r2", "a1"]);
      await reaches(fleet(), side(), { nsp: "/second", volatile: true }, "second", [], EVERYONE);
      await side().join({}, [`new of ${name}`]);
      await reaches(fleet(), side(), { rooms: [`new of ${name}`] }, "joined", [], EVERYONE);
      await side().leave({}, [`new of ${name}`]);
      await reaches(fleet(), side(), { rooms: [`new of ${name}`] }, "left", [], []);
      assert.deepEqual(await side().acks({ timeout: 5000 }, "ask", 1), [1, 1, 1, 1]);
      assert.equal(await side().ackOfOne(clients[["b1", "r1"][sender]].id, "ask", "you"), "you");
      await side().emitMany(100, `again by ${name}`);
      const numbers = () => clients.a1.got.filter(([what]) => what === `again by ${name}`).map(([, number]) => number);
      await until(() => numbers().length === 100, "a hundred");
      assert.deepEqual(numbers(), [...Array(100).keys()]);
    });
  }

  test("servers find each other's sockets and answer each other again", async () => {
    const { rust, a } = fleet();
    assert.equal((await a.io.fetchSockets()).length, 4);
    assert.equal((await rust.tell("sockets")).missing, 0);
    assert.equal((await a.io.serverSideEmitWithAck("asked")).length, 2);
    assert.equal((await rust.tell("server-side", { event: "sum", args: [1, 2], acked: true })).given.length, 2);
  });
}
