// The field's routing of calls: a room for each method, fetchSockets to find who is in it, polls to see whether it still is.

import { setTimeout as delay } from "node:timers/promises";

/** Cadence of the looks for a daemon while a call waits. */
const RECONNECT_POLL_MS = 200;
/** Cadence of the looks whether the target of a call in flight is still there. */
const PRESENCE_POLL_MS = 1_000;
/** How long the other replicas may take to say whom they have. */
const PRESENCE_FETCH_TIMEOUT_MS = 500;
/** How long a daemon may take to answer. */
const CALL_TIMEOUT_MS = 30_000;

/** Handles a socket's rpc-register, rpc-unregister and rpc-call. */
export function handleRpc(io, socket, user, graceMs) {
  const roomOf = (method) => `rpc:${user}:${method}`;

  function change(type, done, membership) {
    socket.on(`rpc-${type}`, (body) => {
      const method = body?.method;
      if (!method || typeof method !== "string") {
        socket.emit("rpc-error", { type, error: "Invalid method name" });
        return;
      }
      membership(roomOf(method));
      socket.emit(done, { method });
    });
  }
  change("register", "rpc-registered", (room) => socket.join(room));
  change("unregister", "rpc-unregistered", (room) => socket.leave(room));

  socket.on("rpc-call", async (body, callback) => {
    const answer = typeof callback === "function" ? callback : () => {};
    try {
      answer(await call(body));
    } catch {
      answer({ ok: false, error: "Internal error" });
    }
  });

  async function call(body) {
    const { method, params } = body ?? {};
    if (!method || typeof method !== "string") {
      return { ok: false, error: "Invalid parameters: method is required" };
    }
    const room = roomOf(method);
    let [target] = await roomSockets(io, room);
    target ??= await waitForMember(io, room, graceMs);
    if (!target) return { ok: false, error: "RPC method not available" };
    if (target.id === socket.id) return { ok: false, error: "Cannot call RPC on the same socket" };
    const presence = { isWanted: true };
    try {
      const request = target.timeout(CALL_TIMEOUT_MS).emitWithAck("rpc-request", { method, params });
      return { ok: true, result: await Promise.race([request, absence(io, room, target.id, presence)]) };
    } catch (error) {
      return { ok: false, error: error instanceof Error ? error.message : "Internal error" };
    } finally {
      presence.isWanted = false;
    }
  }
}

/** Whom the replicas have in a room; nobody when one of them does not answer in time. */
async function roomSockets(io, room) {
  try {
    return await io.in(room).timeout(PRESENCE_FETCH_TIMEOUT_MS).fetchSockets();
  } catch {
    return [];
  }
}

/** The first to be in the room within the grace, if anyone. */
async function waitForMember(io, room, graceMs) {
  const deadline = performance.now() + graceMs;
  while (performance.now() < deadline) {
    await delay(RECONNECT_POLL_MS);
    const [member] = await roomSockets(io, room);
    if (member) return member;
  }
  return undefined;
}

/** Throws once the socket is not seen in the room; never ends otherwise, but for `presence.isWanted`. */
async function absence(io, room, id, presence) {
  while (presence.isWanted) {
    await delay(PRESENCE_POLL_MS);
    if (!presence.isWanted) break;
    const members = await roomSockets(io, room);
    if (!members.some((member) => member.id === id)) throw new Error("RPC target disconnected");
  }
  return new Promise(() => {});
}
