// The field's own server as one Node process: the routing that Pointwork is measured against, on socket.io and its Redis
// Streams adapter.

import { handleRpc } from "./seed/rpc.mjs";
import { serve } from "./seed/server.mjs";

const { STREAM_LEN_MAX = "50000", GRACE_MS = "10000" } = process.env;

await serve({
  streamLenMax: Number(STREAM_LEN_MAX),
  handleRpc: (io, socket) => handleRpc(io, socket, socket.data.identity.user, Number(GRACE_MS)),
});
