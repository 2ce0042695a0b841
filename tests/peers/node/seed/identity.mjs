// Who a connection is: the handshake's refusals and a user's rooms, in the field's words.

import { createHmac, timingSafeEqual } from "node:crypto";

/** `{user, scope, id}` of a handshake's auth; throws the refusal that the client is told. */
export function identify(auth, secret) {
  const { token, clientType, sessionId, machineId } = auth ?? {};
  if (!token) throw new Error("Missing authentication token");
  if (clientType === "session-scoped" && !sessionId) {
    throw new Error("Session ID required for session-scoped clients");
  }
  if (clientType === "machine-scoped" && !machineId) {
    throw new Error("Machine ID required for machine-scoped clients");
  }
  const user = subject(token, secret);
  if (!user) throw new Error("Invalid authentication token");
  if (clientType === "session-scoped") return { user, scope: "session", id: sessionId };
  if (clientType === "machine-scoped") return { user, scope: "machine", id: machineId };
  return { user, scope: "user" };
}

/** The rooms that a socket is in from the start. */
export function roomsOf({ user, scope, id }) {
  return [`user:${user}`, scope === "user" ? `user:${user}:user-scoped` : `user:${user}:${scope}:${id}`];
}

/** The `sub` of a token signed with HS256 by the secret, else undefined. */
function subject(token, secret) {
  try {
    const [header, claims, signature] = String(token).split(".");
    const decoded = (part) => JSON.parse(Buffer.from(part, "base64url"));
    if (decoded(header).alg !== "HS256") return undefined;
    const expected = createHmac("sha256", secret).update(`${header}.${claims}`).digest();
    const given = Buffer.from(signature, "base64url");
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    return decoded(claims).sub;
  } catch {
    return undefined;
  }
}
