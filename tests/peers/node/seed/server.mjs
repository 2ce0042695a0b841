// What the Node servers have in common: socket.io as the field sets it up, who is let in, and the line that says where they listen.

import { once } from "node:events";
import { createServer } from "node:http";
import { createAdapter } from "@socket.io/redis-streams-adapter";
import { createClient } from "redis";
import { Server } from "socket.io";
import { handleActivity, machineActivity } from "./activity.mjs";
import { adminServer } from "./admin.mjs";
import { identify, roomsOf } from "./identity.mjs";

/** How long connections may take to end after SIGTERM. */
const CLOSING_MAX_MS = 2_000;

/**
 * Serves until SIGTERM. REDIS_URL, AUTH_HS256_SECRET and PORT come from the environment; one line of JSON on stdout says where it
 * listens, as the host's does. `streamLenMax`: the adapter's `maxLen`; `handleRpc(io, socket, redis)`: the routing of calls.
 */
export async function serve({ streamLenMax, handleRpc }) {
  const { REDIS_URL, AUTH_HS256_SECRET, PORT = "0" } = process.env;
  if (!REDIS_URL || !AUTH_HS256_SECRET) {
    console.error("REDIS_URL and AUTH_HS256_SECRET must be set");
    process.exit(2);
  }
  // The adapter does not look at what becomes of a PUBLISH: one that fails would end the process.
  process.on("unhandledRejection", (error) => console.error(error));

  const redis = createClient({ url: REDIS_URL });
  redis.on("error", () => {}); // the client reconnects by itself, for ever
  await redis.connect();
  const http = createServer();
  const io = new Server(http, {
    path: "/socket.io",
    pingInterval: 15_000,
    pingTimeout: 45_000,
    connectTimeout: 20_000,
    cors: { origin: true, credentials: true },
    adapter: createAdapter(redis, { maxLen: streamLenMax }),
  });
  io.use((socket, next) => {
    try {
      socket.data.identity = identify(socket.handshake.auth, AUTH_HS256_SECRET);
      next();
    } catch (error) {
      next(error);
    }
  });
  io.on("connection", (socket) => {
    const { identity } = socket.data;
    socket.join(roomsOf(identity));
    handleRpc(io, socket, redis);
    handleActivity(io, socket, identity);
    machineActivity(io, identity, true);
    socket.on("disconnect", () => machineActivity(io, identity, false));
  });

  const listening = {
    socketio: `${await listen(http, Number(PORT))}/socket.io`,
    admin: await listen(adminServer(io, redis), 0),
  };
  console.log(JSON.stringify({ listening }));
  process.once("SIGTERM", async () => {
    setTimeout(() => process.exit(0), CLOSING_MAX_MS);
    await io.close();
    process.exit(0);
  });
}

/** Listens on loopback; gives the URL. */
async function listen(server, port) {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}
