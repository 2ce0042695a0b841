// Unmodified socket.io-client sockets, closed at the end of each test.
import { once } from 'node:events';
import { io } from 'socket.io-client';
import { hs256 } from './tokens.mjs';
import { PATIENCE_MS, within } from './waiting.mjs';

/** Every behaviour holds over each of them alone. */
export const TRANSPORTS = ['websocket', 'polling'];

const opened = new Set();
let users = 0;

/** A user that no other test has. */
export const newUser = (name = 'user') => `${name}-${++users}`;

/** For `afterEach`. */
export function closeSockets() {
  for (const socket of opened) socket.disconnect();
  opened.clear();
}

/** A socket that has begun to connect; `user` gets a token unless `auth` has one. */
export function open(host, { user, auth = {}, transport = 'websocket', namespace = '/', ...options } = {}) {
  const socket = io(host.url + namespace, {
    path: host.path,
    transports: [transport],
    forceNew: true,
    reconnection: false,
    auth: { ...(user !== undefined && { token: hs256(host.secret, { sub: user }) }), ...auth },
    ...options,
  });
  opened.add(socket);
  return socket;
}

/** A connected socket; rejects with the refusal's message. */
export async function connect(host, options) {
  const socket = open(host, options);
  await connected(socket);
  return socket;
}

/** Waits until the socket is connected; rejects with the refusal's message. */
export async function connected(socket) {
  if (socket.connected) return;
  const refused = new Promise((_, reject) => socket.once('connect_error', reject));
  await within(Promise.race([once(socket, 'connect'), refused]), PATIENCE_MS, 'a connection');
}

/** The message with which a connection is refused. */
export async function refusal(host, options) {
  const socket = open(host, options);
  const accepted = once(socket, 'connect').then(() => {
    throw new Error('the connection was accepted');
  });
  accepted.catch(() => {}); // closed unconnected at the end
  const [error] = await within(Promise.race([once(socket, 'connect_error'), accepted]), PATIENCE_MS, 'a refusal');
  return error.message;
}

/** The arguments of the next such event; listen before causing it. */
export async function next(socket, event, ms = PATIENCE_MS) {
  return within(once(socket, event), ms, `the event ${event}`);
}

/** All arguments lists of an event from now on. */
export function collect(socket, event) {
  const events = [];
  socket.on(event, (...args) => events.push(args));
  return events;
}

/** Registers a method and waits until it is. */
export async function register(socket, method) {
  const registered = next(socket, 'rpc-registered');
  socket.emit('rpc-register', { method });
  await registered;
}

/** Takes a method back and waits until it is. */
export async function unregister(socket, method) {
  const unregistered = next(socket, 'rpc-unregistered');
  socket.emit('rpc-unregister', { method });
  await unregistered;
}

/** A connected daemon that answers requests by `handler(request)`, or, if that gives undefined, not at all. */
export async function daemon(host, { methods = [], handler, ...options }) {
  const socket = await connect(host, { ...options, auth: { clientType: 'machine-scoped', machineId: 'm', ...options.auth } });
  socket.on('rpc-request', async (request, answer) => {
    const result = await handler(request);
    if (result !== undefined) answer(result);
  });
  for (const method of methods) await register(socket, method);
  return socket;
}

/** An rpc-call's answer. */
export const call = (socket, method, params, ms = PATIENCE_MS) =>
  within(socket.emitWithAck('rpc-call', { method, params }), ms, `the answer of ${String(method).slice(0, 40)}`);

/** The answer of a call that failed. */
export const failed = (error) => ({ ok: false, error });

/** The answer of a call that succeeded. */
export const succeeded = (result) => ({ ok: true, result });
