// A Redis of the test's own on a free port, which keeps nothing on disk and can be stopped and started again.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { until } from "../replica.mjs";

export async function startRedis() {
  const port = await freePort();
  let server;
  const start = async () => {
    server = spawn("redis-server", ["--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"], { stdio: "ignore" });
    await until(() => accepts(port), "Redis accepts connections", 10_000);
  };
  const stop = async () => {
    const ended = once(server, "exit");
    server.kill("SIGKILL");
    await ended;
  };
  process.once("exit", () => server.kill("SIGKILL")); // when a test stops half-way
  await start();
  return { url: `redis://127.0.0.1:${port}`, start, stop };
}

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}
