// What the application's backend and the tests ask of a replica: broadcasts, whom the cluster has in a room, readiness.

import { createServer } from "node:http";

/** GET /health/ready, GET /v1/sockets?room=R and POST /v1/emit `{rooms, except?, event, args?}`; not yet listening. */
export function adminServer(io, redis) {
  return createServer(async (request, response) => {
    try {
      const { status, body } = await answer(io, redis, request);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    } catch (error) {
      response.writeHead(500, { "content-type": "application/json" }).end(JSON.stringify({ error: error.message }));
    }
  });
}

async function answer(io, redis, request) {
  const url = new URL(request.url, "http://localhost");
  switch (`${request.method} ${url.pathname}`) {
    case "GET /health/ready":
      return ready(io, redis);
    case "GET /v1/sockets":
      return sockets(io, url.searchParams.get("room"));
    case "POST /v1/emit":
      return emit(io, JSON.parse(await text(request)));
    default:
      return { status: 404, body: { error: "no such endpoint" } };
  }
}

/** Ready once the adapter is subscribed to the channel that the other replicas answer on. */
async function ready(io, redis) {
  const { uid } = io.of("/").adapter;
  const channel = `socket.io#/#${uid}#`;
  const subscribers = (await redis.pubSubNumSub(channel))[channel];
  return { status: subscribers > 0 ? 200 : 503, body: { uid } };
}

async function sockets(io, room) {
  const started = performance.now();
  const found = await io.in(room).fetchSockets();
  return { status: 200, body: { ids: found.map(({ id }) => id), ms: performance.now() - started } };
}

function emit(io, { rooms, except = [], event, args = [] }) {
  if (!Array.isArray(rooms) || rooms.length === 0) return { status: 400, body: { error: "rooms must name one" } };
  io.to(rooms).except(except).emit(event, ...args);
  return { status: 200, body: { ok: true } };
}

async function text(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
