// Another Rust replica comes beside those that are there, and goes: by a farewell, by SIGKILL, and for a moment.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "redis";
import { until } from "../replica.mjs";
import { counted, EVERYONE, reaches } from "./fleet.mjs";
import { startRust } from "./rust.mjs";

/** Far less than until a heartbeat is missed, which is 3 s. */
const SOON_MS = 1000;

export function replicas(fleet) {
  const start = async (t) => {
    const { rust, redis, names } = fleet();
    const other = await startRust(redis.url, names);
    t.after(other.kill);
    for (const replica of [rust, other]) {
      const isKnown = ({ complete, peers, foreign }) => complete && peers === 1 && foreign === 2;
      await until(async () => isKnown(await replica.tell("standing")), "all know all");
    }
    return other;
  };
  const lost = (peer) => fleet().rust.told.filter((line) => line.told === "lost" && line.peer === peer).map(({ loss }) => loss);

  test("another Rust replica is one of four servers, and leaves them", async (t) => {
    const { rust, a, sides, clients } = fleet();
    const other = await start(t);
    const client = await other.client("/", { name: "other" });
    for (const side of sides) assert.equal(await side.servers(), 4);
    assert.equal((await a.io.fetchSockets()).length, 5);
    const found = await rust.tell("fetch");
    assert.deepEqual(found.map(({ id }) => id).sort(), [clients.r1.id, clients.r2.id, client.id].sort());
    assert.equal(found.find(({ id }) => id === client.id).server, other.uid);
    client.on("ask", (value, ack) => ack({ value }));
    const ask = { server: other.uid, socket: client.id, event: "ask", args: [Buffer.from([1])], timeout: 20_000, count: 2000 };
    assert.deepEqual(await rust.tell("request", ask), Array(2000).fill({ value: Buffer.from([1]) }));
    for (const side of sides) assert.equal((await side.acks({ timeout: 5000 }, "ask", 1)).length, 5);
    client.close();
    await other.close();
    await until(() => lost(other.uid).length > 0, "it left", SOON_MS);
    assert.deepEqual(lost(other.uid), ["left"]);
    await counted(fleet());
  });

  test("a Rust replica that is killed is known to be dead, and nobody waits for it", async (t) => {
    const { a, sides } = fleet();
    const other = await start(t);
    await other.kill();
    await until(() => lost(other.uid).length > 0, "it is missed", SOON_MS);
    assert.deepEqual(lost(other.uid), ["killed"]);
    await counted(fleet());
    for (const side of sides) await reaches(fleet(), side, {}, "after a death", [], EVERYONE);
    assert.equal((await a.io.fetchSockets()).length, 4);
  });

  test("a Rust replica whose subscription breaks is reached again", async (t) => {
    const { rust, redis, sides } = fleet();
    const admin = createClient({ url: redis.url });
    await admin.connect();
    t.after(() => admin.destroy());
    const subscribed = async () => (await admin.sendCommand(["CLIENT", "LIST", "TYPE", "pubsub"])).match(/(?<=\bid=)\d+/g);
    const before = await subscribed();
    const other = await start(t);
    const links = () => other.told.filter((line) => line.told === "link").length;
    for (const breaks of [1, 2, 3]) {
      const [id] = (await subscribed()).filter((id) => !before.includes(id));
      await admin.sendCommand(["CLIENT", "KILL", "ID", id]);
      await until(() => links() === 1 + 2 * breaks, "the link was lost and is back");
      await until(async () => (await rust.tell("servers")) === 4, "its sockets can be reached again");
      before.push(id);
    }
    const ask = { server: other.uid, socket: "AAAAAAAAAAAAAAAA", event: "ask", args: [], timeout: 5000 };
    assert.deepEqual(await rust.tell("request", ask), [{ error: "the socket is not there" }]);
    await other.close();
    await counted(fleet());
    for (const side of sides) await reaches(fleet(), side, {}, "after breaks", [], EVERYONE);
  });
}
