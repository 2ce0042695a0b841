// Signs of life of sessions and machines, told to a user's apps.

/** A sign of life older than this is ignored. */
const STALE_MS = 10 * 60 * 1_000;

/** Handles a socket's ping, session-alive, session-end and machine-alive. */
export function handleActivity(io, socket, { user }) {
  socket.on("ping", (callback) => {
    if (typeof callback === "function") callback({});
  });
  const on = (event, idName, payload) =>
    socket.on(event, (body) => {
      const id = body?.[idName];
      const activeAt = clamped(body?.time);
      if (!id || typeof id !== "string" || activeAt === undefined) return;
      tell(io, user, { ...payload(body), id, activeAt });
    });
  on("session-alive", "sid", ({ thinking }) => ({ type: "activity", active: true, thinking: thinking === true }));
  on("session-end", "sid", () => ({ type: "activity", active: false, thinking: false }));
  on("machine-alive", "machineId", () => ({ type: "machine-activity", active: true }));
}

/** A machine's own connection says whether it is there. */
export function machineActivity(io, { user, scope, id }, active) {
  if (scope === "machine") tell(io, user, { type: "machine-activity", id, active, activeAt: Date.now() });
}

function tell(io, user, payload) {
  io.to(`user:${user}:user-scoped`).emit("ephemeral", payload);
}

/** The client's own time, no later than now; undefined when it is stale or none. */
function clamped(time) {
  if (typeof time !== "number" || !Number.isFinite(time)) return undefined;
  const now = Date.now();
  return time < now - STALE_MS ? undefined : Math.min(time, now);
}
