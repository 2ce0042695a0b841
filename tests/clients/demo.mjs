// Two daemons and a caller, all of them unmodified clients: prints over and over which daemon got the calls. Run by
// `cargo xtask demo`, which passes on where `cargo xtask up` listens.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { io } from 'socket.io-client';
import { hs256 } from './support/tokens.mjs';

const { POINTWORK_AUTH_HS256_SECRET: secret, POINTWORK_SOCKETIO: socketio, POINTWORK_ADMIN: admin } = process.env;
const DAEMONS = ['north', 'south'];
const CALLS = 20;

if (!secret || !socketio || !admin) {
  console.error('start `cargo xtask up`, then run this by `cargo xtask demo`');
  process.exit(2);
}
const { origin, pathname } = new URL(socketio);
const token = hs256(secret, { sub: 'dev' });

async function connect(auth) {
  const socket = io(origin, { path: pathname, transports: ['websocket'], forceNew: true, reconnection: false, auth: { token, ...auth } });
  socket.on('connect_error', (error) => end(`cannot connect to ${origin}: ${error.message}`));
  socket.on('disconnect', (reason) => end(`the host is gone (${reason})`));
  await once(socket, 'connect');
  return socket;
}

function end(why) {
  console.error(why);
  process.exit(1);
}

/** A machine that does a little work for each request. */
async function startDaemon(name) {
  const socket = await connect({ clientType: 'machine-scoped', machineId: name });
  socket.on('rpc-request', async (request, answer) => {
    await delay(20);
    answer({ by: name });
  });
  socket.emit('rpc-register', { method: 'demo:who' });
  await once(socket, 'rpc-registered');
}

async function servingPolicy() {
  const { policies } = await (await fetch(`${admin}/v1/policies`)).json();
  const { name, version } = policies.find(({ slot }) => slot === 'target');
  return name ? `${name} ${version ?? ''}`.trim() : 'native rule';
}

for (const name of DAEMONS) await startDaemon(name);
const caller = await connect({ clientType: 'user-scoped' });
console.log(`${CALLS} calls a second to \`demo:who\`, which ${DAEMONS.join(' and ')} have registered. Ctrl-C ends it.`);
for (;;) {
  const policy = await servingPolicy();
  const call = () => caller.emitWithAck('rpc-call', { method: 'demo:who', params: {} });
  const answers = await Promise.all(Array.from({ length: CALLS }, call));
  const count = (wanted) => answers.filter(({ ok, result }) => ok && result.by === wanted).length;
  const failures = answers.filter(({ ok }) => !ok).map(({ error }) => error);
  const shares = DAEMONS.map((name) => `${name} ${String(count(name)).padStart(2)}`).join('   ');
  const failed = failures.length ? `   failed: ${failures.join(', ')}` : '';
  console.log(`${new Date().toLocaleTimeString()}   ${policy.padEnd(28)} ${shares}${failed}`);
  await delay(1_000);
}
