// One Rust and two Node replicas are one Socket.IO server to real clients: the Rust crate's adapter against the real npm
// packages, in both directions. REPLICA is the example `replica` of the crate socketioxide-redis-streams, built; Redis
// servers are started and stopped here.
//
//   REPLICA=target/debug/examples/replica node --test conformance.test.mjs

import { after, before, describe } from "node:test";
import { acks } from "./conformance/acks.mjs";
import { broadcasts } from "./conformance/broadcasts.mjs";
import { startFleet } from "./conformance/fleet.mjs";
import { replicas } from "./conformance/replicas.mjs";
import { restart } from "./conformance/restart.mjs";
import { servers } from "./conformance/servers.mjs";
import { sockets } from "./conformance/sockets.mjs";

for (const [title, names] of [
  ["with Node's default options", {}],
  ["with names of their own", { streamName: "own.stream", channelPrefix: "own.channels" }],
  ["with sharded channels", { useShardedPubSub: true }],
]) {
  describe(title, () => {
    let fleet;
    before(async () => (fleet = await startFleet(names)));
    after(() => fleet.close());
    for (const suite of [broadcasts, sockets, acks, servers, replicas, restart]) suite(() => fleet);
  });
}
