// One Rust and two Node replicas on a Redis of their own, with clients that write down what they get.

import assert from "node:assert/strict";
import { startReplica, until } from "../replica.mjs";
import { startRedis } from "./redis.mjs";
import { startRust } from "./rust.mjs";
import { nodeSide, rustSide } from "./sides.mjs";

/** Who is in which room: clients r1 and r2 are on the Rust replica, a1 and b1 on Node's. */
export const ROOMS = { red: ["r1", "a1"], blue: ["r2", "b1"], green: ["r1", "b1"] };
export const EVERYONE = ["r1", "r2", "a1", "b1"];

export async function startFleet(names = {}) {
  const redis = await startRedis();
  const [a, b, rust] = await Promise.all([startNode(redis.url, names), startNode(redis.url, names), startRust(redis.url, names)]);
  const fleet = { redis, rust, a, b, names, sides: [rustSide(rust), nodeSide(a)], clients: {}, second: {} };
  const servers = { r1: rust, r2: rust, a1: a, b1: b };
  for (const [name, server] of Object.entries(servers)) {
    fleet.clients[name] = record(await server.client("/", { name }));
    fleet.second[name] = record(await server.client("/second", { name }));
  }
  for (const [room, members] of Object.entries(ROOMS)) {
    for (const name of members) joinHere(fleet, servers[name], name, room);
  }
  await counted(fleet);
  await reading(fleet);
  fleet.close = async () => {
    for (const client of [...Object.values(fleet.clients), ...Object.values(fleet.second)]) client.socket.close();
    await rust.close();
    // Node's adapter waits for its blocking read, which ends with Redis.
    await Promise.all([a.close(), b.close()]);
    await redis.stop();
  };
  return fleet;
}

async function startNode(url, names) {
  // As 0.3.1 has it by default; other tests have it read in shorter turns.
  const node = await startReplica(url, { blockTimeInMs: 5000, ...names });
  node.io.of("/second");
  return node;
}

function joinHere(fleet, server, name, room) {
  const { id } = fleet.clients[name].socket;
  if (server === fleet.rust) return void server.tell("join", { rooms: [id], local: true, names: [room] });
  server.io.sockets.sockets.get(id).join(room);
}

function record(socket) {
  const client = { socket, id: socket.id, got: [] };
  socket.onAny((event, ...args) => client.got.push([event, ...args]));
  socket.on("ask", (...args) => args.at(-1)(args.length > 1 ? args[0] : undefined));
  return client;
}

/** Waits until everybody knows that there are three servers in each namespace: three subscriptions, not one more. */
export async function counted({ sides }) {
  for (const side of sides) {
    for (const nsp of ["/", "/second"]) await until(async () => (await side.servers(nsp)) === 3, `${side.name} counts three in ${nsp}`);
  }
}

// Node's cursor is `$` until the first entry: entries are sent until one arrives.
async function reading(fleet) {
  const all = Object.values(fleet.clients);
  const ready = () => all.every(({ got }) => ["Rust", "Node"].every((name) => got.some(([event]) => event === `start ${name}`)));
  await until(async () => {
    if (ready()) return true;
    for (const side of fleet.sides) await side.emit({}, `start ${side.name}`);
    return false;
  }, "the stream is read everywhere", 10_000);
}

let fences = 0;

/**
 * Has `send` emit `event`, and asserts that exactly `expected` get it, once, with `args`. What is emitted later by the
 * same server arrives later, so whoever has the fence and not the event will not get it.
 */
export async function reaches(fleet, side, to, event, args, expected, got = args) {
  const clients = to.nsp === "/second" ? fleet.second : fleet.clients;
  const fence = `fence ${++fences}`;
  const unique = `${event} ${fences}`;
  await side.emit(to, unique, ...args);
  await side.emit({ nsp: to.nsp ?? "/" }, fence);
  const all = Object.entries(clients);
  await until(() => all.every(([, client]) => client.got.some(([name]) => name === fence)), `${fence} after ${event} of ${side.name}`);
  const reached = all.flatMap(([name, client]) => client.got.filter(([what]) => what === unique).map(() => name));
  assert.deepEqual(reached.sort(), [...expected].sort(), `${side.name}: ${event} to ${JSON.stringify(to)}`);
  for (const name of expected) {
    const [, ...values] = clients[name].got.find(([what]) => what === unique);
    assert.deepEqual(values, got, `${side.name}: what ${name} gets`);
  }
}
