// Acknowledgements across servers, in both directions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EVERYONE } from "./fleet.mjs";

/** Longer than anything takes, and not waited for unless an ack stays away. */
const timeout = 5000;

export function acks(fleet) {
  const id = (name) => fleet().clients[name].id;

  for (const sender of [0, 1]) {
    const name = ["Rust", "Node"][sender];
    const side = () => fleet().sides[sender];
    const own = [["r1"], ["a1"]][sender];

    test(`${name}: acks of nobody`, async () => {
      assert.deepEqual(await side().acks({ rooms: ["nobody"], timeout }, "ask", 1), []);
    });
    test(`${name}: the ack of one local socket`, async () => {
      assert.deepEqual(await side().acks({ rooms: [id(own[0])], timeout }, "ask", "here"), ["here"]);
    });
    for (const one of ["r2", "b1"]) {
      test(`${name}: the ack of one socket, ${one}, by the room of its id`, async () => {
        assert.deepEqual(await side().acks({ rooms: [id(one)], timeout }, "ask", "there"), ["there"]);
        assert.deepEqual(await side().acks({ rooms: [id(one)], timeout }, "ask"), [null]); // undefined is nil on the wire
      });
    }
    test(`${name}: acks of several sockets on several servers`, async () => {
      assert.deepEqual(await side().acks({ timeout }, "ask", { n: 1 }), EVERYONE.map(() => ({ n: 1 })));
      assert.deepEqual(await side().acks({ rooms: ["red", "green"], timeout }, "ask", 1), [1, 1, 1]);
      assert.deepEqual(await side().acks({ except: [id("r1")], timeout }, "ask", 1), [1, 1, 1]);
      assert.deepEqual(await side().acks({ nsp: "/second", timeout }, "ask", "second"), EVERYONE.map(() => "second"));
    });
    test(`${name}: acks with binary, long and odd values`, async () => {
      for (const value of [Buffer.from([0, 255]), { a: [Buffer.from([7])] }, "x".repeat(100_000), "é 😀", null, 0.5]) {
        assert.deepEqual(await side().acks({ rooms: ["green"], timeout }, "ask", value), [value, value]);
      }
    });
    for (const mute of ["r1", "b1"]) {
      test(`${name}: ${mute} never answers, the others' acks are there`, async () => {
        const event = `ask but ${mute} by ${name}`;
        for (const other of EVERYONE.filter((client) => client !== mute)) fleet().clients[other].socket.on(event, (ack) => ack(other));
        const acks = await side().acks({ timeout: 500 }, event);
        assert.deepEqual(acks.sort(), EVERYONE.filter((client) => client !== mute).sort());
      });
    }
    test(`${name}: the ack of one remote socket, asked as such`, async () => {
      const far = ["b1", "r1"][sender];
      assert.equal(await side().ackOfOne(id(far), "ask", "you"), "you");
      await assert.rejects(side().ackOfOne(id(far), "nobody listens to this"));
    });
  }

  test("Rust: requests to one server's socket", async () => {
    const { rust, a, b } = fleet();
    const [near, far] = [a, b].map(({ io }) => io.of("/").adapter.uid);
    const ask = (options) => rust.tell("request", { socket: id("b1"), server: far, event: "ask", args: [], timeout, ...options });
    assert.deepEqual(await ask({ args: ["é"] }), ["é"]);
    assert.deepEqual(await ask({ args: [Buffer.from([1, 2])] }), [Buffer.from([1, 2])]);
    assert.deepEqual(await ask({ args: [new Date(0)] }), ["1970-01-01T00:00:00.000Z"], "a client's JSON has no dates");
    assert.deepEqual(await ask({}), [null]);
    assert.deepEqual(await ask({ server: near }), [{ error: "the socket is not there" }]);
    assert.deepEqual(await ask({ event: "mute", timeout: 300 }), [{ error: "no answer" }]);
  });

  test("Rust: 2,000 requests at once, each is answered", async () => {
    const { rust, b } = fleet();
    const options = { server: b.io.of("/").adapter.uid, socket: id("b1"), event: "ask", args: ["q"], timeout: 20_000, count: 2000 };
    assert.deepEqual(await rust.tell("request", options), Array(2000).fill("q"));
    assert.equal(Object.values(await rust.counter("adapter_channel_missed_total")).length, 0);
  });
}
