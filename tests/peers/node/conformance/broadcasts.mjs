// Broadcasts in both directions, to whom and with what.

import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../replica.mjs";
import { EVERYONE, reaches } from "./fleet.mjs";

const LONG = "x".repeat(100_000);
const LEAP_DAY = new Date(Date.UTC(2024, 1, 29, 12, 30, 45, 678));
const VALUES = [null, true, -1, 5e9, -2.5, 2 ** 53, "", [], {}, { n: { m: [1, [2, [3]]] } }];

const WHOM = [
  ["everyone", () => ({}), EVERYONE],
  ["a room", () => ({ rooms: ["red"] }), ["r1", "a1"]],
  ["several rooms, each socket once", () => ({ rooms: ["red", "green"] }), ["r1", "a1", "b1"]],
  ["all but a room", () => ({ except: ["red"] }), ["r2", "b1"]],
  ["a room but not another", () => ({ rooms: ["green"], except: ["red"] }), ["b1"]],
  ["all but a socket of the Rust server", (ids) => ({ except: [ids.r1] }), ["r2", "a1", "b1"]],
  ["all but a socket of a Node server", (ids) => ({ except: [ids.b1] }), ["r1", "r2", "a1"]],
  ["the room of a Rust socket's own id", (ids) => ({ rooms: [ids.r2] }), ["r2"]],
  ["the room of a Node socket's own id", (ids) => ({ rooms: [ids.b1] }), ["b1"]],
  ["a room without members", () => ({ rooms: ["nobody"] }), []],
  ["everyone, volatile", () => ({ volatile: true }), EVERYONE],
  ["a room, volatile", () => ({ rooms: ["blue"], volatile: true }), ["r2", "b1"]],
];

const WHAT = [
  ["no arguments", []],
  ["values", VALUES],
  ["binary", [Buffer.from([0, 1, 254, 255])]],
  ["nested binary", [{ a: [{ key: Buffer.from([1, 2]) }], b: Buffer.alloc(0) }, "between", [Buffer.alloc(70_000, 7)]]],
  ["unicode", ["é ☃ 😀 \u0001 \"\\/\u2028", { "schlüssel 😀": "値" }]],
  ["100 KB", [LONG, { LONG }]],
];

export function broadcasts(fleet) {
  const ids = () => Object.fromEntries(Object.entries(fleet().clients).map(([name, { id }]) => [name, id]));
  for (const sender of [0, 1]) {
    const name = ["Rust", "Node"][sender];
    const side = () => fleet().sides[sender];
    for (const [whom, to, expected] of WHOM) {
      test(`${name}: to ${whom}`, () => reaches(fleet(), side(), to(ids()), whom, [whom], expected));
    }
    for (const [what, args] of WHAT) {
      test(`${name}: ${what}`, () => reaches(fleet(), side(), {}, what, args, EVERYONE));
    }
    const [own, sent] = [["r1", "r2"], ["a1"]].map((names, at) => (at === sender ? names : null));
    const here = own ?? sent;
    test(`${name}: a local broadcast stays there`, () => reaches(fleet(), side(), { local: true }, "local", [], here));
    test(`${name}: a local broadcast to a room stays there`, () =>
      reaches(fleet(), side(), { local: true, rooms: ["red"] }, "local", [], here.filter((client) => client !== "r2")));
    test(`${name}: a socket to all others`, () =>
      reaches(fleet(), side(), { from: ids()[here[0]] }, "others", [1], EVERYONE.filter((client) => client !== here[0])));
    test(`${name}: a socket to the others of its room`, () =>
      reaches(fleet(), side(), { from: ids()[here[0]], rooms: ["red"] }, "others", [1], ["r1", "a1"].filter((client) => client !== here[0])));
    test(`${name}: the second namespace has its own sockets and rooms`, async () => {
      await reaches(fleet(), side(), { nsp: "/second" }, "second", [{ n: 2 }], EVERYONE);
      await reaches(fleet(), side(), { nsp: "/second", rooms: ["red"] }, "second", [], []);
      assert.ok(Object.values(fleet().clients).every(({ got }) => !got.some(([event]) => event.startsWith("second"))));
    });
    test(`${name}: 1,000 broadcasts arrive in order`, async () => {
      const event = `numbered by ${name}`;
      await side().emitMany(1000, event);
      const numbers = ({ got }) => got.filter(([what]) => what === event).map(([, number]) => number);
      const clients = Object.entries(fleet().clients);
      await until(() => clients.every(([, client]) => numbers(client).length >= 1000), "a thousand");
      for (const [client, log] of clients) assert.deepEqual(numbers(log), [...Array(1000).keys()], client);
    });
  }
  test("Node: dates are text to every client", () =>
    reaches(fleet(), fleet().sides[1], {}, "date", [LEAP_DAY, { at: LEAP_DAY }], EVERYONE, [LEAP_DAY.toISOString(), { at: LEAP_DAY.toISOString() }]));
  test("Node: dates beside binary are text to every client", () => {
    const bytes = Buffer.from([1]);
    return reaches(fleet(), fleet().sides[1], {}, "date", [bytes, LEAP_DAY], EVERYONE, [bytes, LEAP_DAY.toISOString()]);
  });
}
