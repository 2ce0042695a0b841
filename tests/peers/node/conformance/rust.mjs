// The Rust replica: the example `replica` of the crate socketioxide-redis-streams, whose path is in REPLICA.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { connectTo, until } from "../replica.mjs";

export async function startRust(url, { streamName, channelPrefix, useShardedPubSub } = {}) {
  const names = {
    ...(streamName && { STREAM_NAME: streamName }),
    ...(channelPrefix && { CHANNEL_PREFIX: channelPrefix }),
    ...(useShardedPubSub && { SHARDED: "1" }),
  };
  const child = spawn(process.env.REPLICA, { env: { ...process.env, REDIS_URL: url, ...names }, stdio: ["pipe", "pipe", "inherit"] });
  const waiting = new Map();
  const told = [];
  let ids = 0;
  let listening;
  createInterface({ input: child.stdout }).on("line", (text) => {
    const line = JSON.parse(text, revive);
    if (line.told) told.push(line);
    else if (line.listening) listening = line;
    else {
      const { resolve, reject } = waiting.get(line.id);
      waiting.delete(line.id);
      if (line.error === undefined) resolve(line.ok);
      else reject(new Error(line.error));
    }
  });
  await until(() => listening, "the Rust replica listens");
  // Does one of the example's commands.
  const tell = (command, options = {}) =>
    new Promise((resolve, reject) => {
      const id = ++ids;
      waiting.set(id, { resolve, reject });
      child.stdin.write(JSON.stringify({ id, do: command, ...plain(options) }) + "\n");
    });
  const counter = async (name) => {
    const lines = (await tell("metrics")).split("\n").filter((line) => line.startsWith(name + " ") || line.startsWith(name + "{"));
    return Object.fromEntries(lines.map((line) => [line.slice(name.length, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]));
  };
  const close = async () => {
    const ended = once(child, "exit");
    await tell("close");
    child.stdin.end();
    await ended;
  };
  // Ends it as a crash would, without a farewell.
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  const client = (path = "/", auth = {}) => connectTo(listening.listening + path, auth);
  await until(async () => (await tell("standing")).linked, "the Rust replica is linked");
  return { uid: listening.uid, told, tell, counter, client, close, kill };
}

// A value as the lines have it: bytes and dates are marked.
export function plain(value) {
  if (Buffer.isBuffer(value)) return { $bytes: value.toString("base64") };
  if (value instanceof Date) return { $date: value.getTime() };
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

function revive(_, value) {
  if (typeof value?.$bytes === "string") return Buffer.from(value.$bytes, "base64");
  if (typeof value?.$date === "number") return new Date(value.$date);
  return value;
}
