// The operators' command line, and what a host says of the policies of its cluster.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { BINARY } from './host.mjs';
import { until } from './waiting.mjs';

/** Runs `pointwork ARGUMENTS`, at the host at `admin` if there is one: `{code, said, told}`, standard output and error. */
export function pointwork(admin, ...args) {
  const { PATH, HOME } = process.env;
  const all = admin ? [...args, '--admin-url', admin] : args;
  return new Promise((resolve) => {
    execFile(BINARY, all, { env: { PATH, HOME }, timeout: 60_000 }, (error, said, told) => {
      resolve({ code: error ? error.code : 0, said, told });
    });
  });
}

/** What a replica says of a slot. */
export async function slotAt(replica, slot) {
  const { text } = await replica.request('/v1/policies');
  return JSON.parse(text).policies.find((policy) => policy.slot === slot);
}

/** A replica's own uid. */
export async function uidOf(replica) {
  const { replicas } = await slotAt(replica, 'target');
  return Object.keys(replicas).find((uid) => replicas[uid].this);
}

/** Waits until every replica says that all serve `digest` in a slot; null: the native rule. */
export async function converged(replicas, slot, digest) {
  const isSo = async (replica) => {
    const policy = await slotAt(replica, slot);
    return policy.converged && policy.digest === digest && policy.pointer.current === digest;
  };
  const all = async () => (await Promise.all(replicas.map(isSo))).every(Boolean);
  const last = () => Promise.all(replicas.map((replica) => slotAt(replica, slot)));
  await until(all, 20_000, `${digest} everywhere`).catch(async (error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await last(), null, 1)}`);
  });
}

/** A hostile guest. */
export const guestFile = (name) => join(BINARY, '../../guests', `${name}.wasm`);
