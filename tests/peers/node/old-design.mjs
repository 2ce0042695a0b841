// The field's server as it was before its routing by rooms: kept so that the tests of that design's bugs can be seen to fail.
// Which socket has a method is a Redis key that expires unless signs of life refresh it; nobody looks whether the socket lives.

import { serve } from "./seed/server.mjs";

const { REGISTRATION_TTL_MS = "60000", CALL_TIMEOUT_MS = "30000" } = process.env;

/** A key is changed only as long as it names the socket on whose behalf that is done. */
const REFRESH = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";
const FORGET = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

// As good as without MAXLEN, which the adapter always passes on.
await serve({ streamLenMax: Number.MAX_SAFE_INTEGER, handleRpc });

function handleRpc(io, socket, redis) {
  const { user } = socket.data.identity;
  const keyOf = (method) => `rpc:user:${user}:method:${method}`;
  const registered = new Set();

  const ofEach = (script) =>
    Promise.all([...registered].map((key) => redis.eval(script, { keys: [key], arguments: [socket.id, REGISTRATION_TTL_MS] })));
  for (const alive of ["session-alive", "machine-alive"]) socket.on(alive, () => ofEach(REFRESH));
  socket.on("disconnect", () => ofEach(FORGET));

  socket.on("rpc-register", async ({ method }) => {
    await redis.pSetEx(keyOf(method), Number(REGISTRATION_TTL_MS), socket.id);
    registered.add(keyOf(method));
    socket.emit("rpc-registered", { method });
  });

  socket.on("rpc-call", async (body, callback) => callback(await call(body)));

  async function call({ method, params }) {
    const target = await redis.get(keyOf(method));
    if (!target) return { ok: false, error: "RPC method not available" };
    try {
      const answers = await io.to(target).timeout(Number(CALL_TIMEOUT_MS)).emitWithAck("rpc-request", { method, params });
      return answers.length > 0 ? { ok: true, result: answers[0] } : { ok: false, error: "RPC target not reachable" };
    } catch (error) {
      return { ok: false, error: error.message };
    }
  }
}
