// A Node replica: socket.io with the Redis Streams adapter on a port of its own, all in this process.

import { once } from "node:events";
import { createServer } from "node:http";
import { createAdapter } from "@socket.io/redis-streams-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";
import { io as connect } from "socket.io-client";

// Starts a replica whose adapter is subscribed to its two channels.
export async function startReplica(url, options = {}) {
  const redis = createClient({ url });
  redis.on("error", () => {}); // it reconnects by itself
  await redis.connect();
  const http = createServer();
  const io = new Server(http, { adapter: createAdapter(redis, { blockTimeInMs: 100, ...options }) });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const privateChannel = `${options.channelPrefix ?? "socket.io"}#/#${io.of("/").adapter.uid}#`;
  const counts = () => (options.useShardedPubSub ? redis.pubSubShardNumSub(privateChannel) : redis.pubSubNumSub(privateChannel));
  const subscribed = async () => (await counts())[privateChannel] > 0;
  await until(subscribed, "the adapter subscribes");
  const client = (path = "/", auth = {}) => connectTo(`http://127.0.0.1:${http.address().port}${path}`, auth);
  const close = async () => {
    await io.close();
    redis.destroy();
  };
  return { io, client, close };
}

// A client that is connected.
export async function connectTo(address, auth = {}) {
  const socket = connect(address, { transports: ["websocket"], forceNew: true, auth });
  await once(socket, "connect");
  return socket;
}

// Asks `condition` again and again until it holds.
export async function until(condition, what, timeoutMs = 5000) {
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
