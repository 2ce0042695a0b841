// What clients of the root namespace send and are told: handshakes, registrations, calls, signs of life.
import { hs256, nowSeconds, unsigned } from '../support/tokens.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';

/** Sockets of one user of the prompt host, calls of one user, methods of one socket. */
export const LIMITS = { sockets: 6, calls: 4, methods: 3, paramsBytes: 10_000, methodBytes: 64, waiting: 2 };

const bare = { clientType: 'user-scoped' };

/** Handshakes that are refused, and some that are not. */
export async function handshakes(recorder, host) {
  const good = hs256(host.secret, { sub: 'ada' });
  const refused = [
    ['no auth', {}],
    ['an empty token', { token: '' }],
    ['a token of another type', { token: 7 }],
    ['a token that is none', { token: 'nonsense' }],
    ['another secret', { token: hs256('another', { sub: 'ada' }) }],
    ['an expired token', { token: hs256(host.secret, { sub: 'ada', exp: nowSeconds() - 3_600 }) }],
    ['a token of tomorrow', { token: hs256(host.secret, { sub: 'ada', nbf: nowSeconds() + 3_600 }) }],
    ['a token without a subject', { token: hs256(host.secret, {}) }],
    ['an unsigned token', { token: unsigned({ sub: 'ada' }) }],
    ['a device token', { token: hs256(host.secret, { sub: 'ada', scope: 'device' }) }],
    ['a session without an id', { token: good, clientType: 'session-scoped' }],
    ['a machine without an id', { token: good, clientType: 'machine-scoped' }],
  ];
  for (const [what, auth] of refused) {
    for (const transport of ['websocket', 'polling']) {
      await recorder.step(`handshake over ${transport}: ${what}`, () => recorder.client('client', host, { auth, transport }).ended());
    }
  }
  const accepted = [bare, { clientType: 'nonsense' }, { clientType: 'session-scoped', sessionId: 's' }, { clientType: 'machine-scoped', machineId: 'm' }];
  for (const auth of accepted) {
    await recorder.step(`handshake: ${JSON.stringify(auth)}`, () => recorder.client('client', host, { user: 'ada', auth }).connected());
    recorder.close();
  }
  await recorder.step('handshake: a namespace that is none', () => recorder.client('client', host, { user: 'ada', namespace: '/nope' }).ended());
  for (const transport of ['websocket', 'polling']) await tooMany(recorder, host, transport);
}

/** The connection of one socket too many is ended without a packet: the client tries again. */
async function tooMany(recorder, host, transport) {
  recorder.close();
  await recorder.step(`handshake over ${transport}: more sockets of a user than there may be`, async () => {
    const user = `many-${transport}`;
    for (let i = 0; i < LIMITS.sockets; i += 1) await recorder.client(`client ${i}`, host, { user, transport }).connected();
    const last = recorder.client('late', host, { user, transport });
    let reason;
    last.socket.io.on('close', (why) => (reason = why));
    await until(() => reason, PATIENCE_MS, 'the end of the connection');
    last.line(`<- connection closed ${JSON.stringify(reason)}`);
  });
  recorder.close();
}

/** Methods registered and taken back. */
export async function registrations(recorder, host) {
  const daemon = await recorder.client('daemon', host, { user: 'bea' }).connected();
  for (const type of ['register', 'unregister']) {
    await recorder.step(`rpc-${type}`, async () => {
      daemon.send(`rpc-${type}`, { method: 'm' });
      await daemon.told(`rpc-${type}ed`);
    });
    await recorder.step(`rpc-${type}: what is no method`, async () => {
      const odd = [[], [null], ['m'], [{}], [{ method: 7 }], [{ method: '' }], [{ method: 'x'.repeat(LIMITS.methodBytes + 1) }]];
      for (const args of odd) daemon.send(`rpc-${type}`, ...args);
    });
  }
  await recorder.step('rpc-register: too many methods', async () => {
    for (let i = 0; i <= LIMITS.methods; i += 1) daemon.send('rpc-register', { method: `m${i}` });
    await daemon.told('rpc-error');
  });
  await recorder.step('events that mean nothing', async () => {
    daemon.send('no-such-event', { a: 1 });
    daemon.send('ping');
    await daemon.ask('ping');
  });
  recorder.close();
}

/** Calls, answered and refused, on a host without grace. */
export async function calls(recorder, host) {
  const options = { user: 'cyd', auth: bare };
  const caller = await recorder.client('caller', host, options).connected();
  const daemon = await recorder.client('daemon', host, options).connected();
  const requests = [];
  daemon.socket.on('rpc-request', ({ params }, answer) => {
    if (params === 'keep') requests.push(answer);
    else if (params === 'many') answer(Array.from({ length: 11 }, () => Buffer.from('x')));
    else if (params === 'leave') daemon.leave();
    else if (params !== 'silence') answer({ answered: params });
  });
  for (const method of ['m', 'short:m']) await recorder.step(`a daemon registers ${method}`, () => (daemon.send('rpc-register', { method }), daemon.told('rpc-registered')));
  await recorder.step('rpc-call: answered', async () => {
    await caller.ask('rpc-call', { method: 'm', params: { a: [1, 'two', null] } });
    await caller.ask('rpc-call', { method: 'm' });
    await caller.ask('rpc-call', { method: 'm', params: Buffer.from('binary') });
    caller.send('rpc-call', { method: 'm', params: 'nobody listens' });
    await daemon.told('rpc-request', 4);
  });
  const refused = [
    ['what is no call', undefined, null, 'm', {}, { method: 7 }, { method: '' }],
    ['timeoutMs', ...[0, -1, '5', {}].map((timeoutMs) => ({ method: 'm', timeoutMs }))],
    ['a long method', { method: 'x'.repeat(LIMITS.methodBytes + 1) }],
    ['large parameters', { method: 'm', params: 'x'.repeat(LIMITS.paramsBytes + 1) }],
    ['many attachments', { method: 'm', params: Array.from({ length: 11 }, () => Buffer.from('x')) }],
    ['nobody has the method', { method: 'nobody' }],
  ];
  for (const [what, ...bodies] of refused) {
    await recorder.step(`rpc-call: ${what}`, async () => {
      for (const body of bodies) await (body === undefined ? caller.ask('rpc-call') : caller.ask('rpc-call', body));
    });
  }
  await recorder.step('rpc-call: to its own socket', () => daemon.ask('rpc-call', { method: 'm' }));
  await recorder.step('rpc-call: an answer with many attachments', () => caller.ask('rpc-call', { method: 'm', params: 'many' }));
  await recorder.step('rpc-call: no answer in time', () => caller.ask('rpc-call', { method: 'short:m', params: 'silence' }));
  await recorder.step('rpc-call: more calls of a user than there may be', async () => {
    const kept = Array.from({ length: LIMITS.calls }, () => caller.ask('rpc-call', { method: 'm', params: 'keep' }));
    await until(() => requests.length === LIMITS.calls, PATIENCE_MS, 'the requests');
    await caller.ask('rpc-call', { method: 'm' });
    for (const answer of requests.splice(0)) answer('at last');
    await Promise.all(kept);
  });
  await recorder.step('rpc-call: the daemon takes the method back', async () => {
    daemon.send('rpc-unregister', { method: 'short:m' });
    await daemon.told('rpc-unregistered');
    await caller.ask('rpc-call', { method: 'short:m' });
  });
  await recorder.step('rpc-call: the daemon leaves', () => caller.ask('rpc-call', { method: 'm', params: 'leave' }));
  recorder.close();
}

/** Signs of life, and what the apps are told of them. */
export async function activity(recorder, host) {
  const user = 'dee';
  const app = await recorder.client('app', host, { user }).connected();
  const session = await recorder.client('session', host, { user, auth: { clientType: 'session-scoped', sessionId: 's' } }).connected();
  const time = Date.now();
  await recorder.step('session-alive, session-end, machine-alive', async () => {
    session.send('session-alive', { sid: 's', time, thinking: true, mode: 'remote' });
    session.send('session-alive', { sid: 's', time, mode: 'local' });
    session.send('session-end', { sid: 's', time });
    session.send('machine-alive', { machineId: 'm', time });
    await app.told('ephemeral', 4);
  });
  await recorder.step('signs of life that are ignored', async () => {
    for (const body of [null, {}, { sid: 's', time }, { sid: 'old', time: 0 }, { machineId: 7, time }]) {
      for (const event of ['session-alive', 'machine-alive']) session.send(event, body);
    }
    session.send('session-end', null);
    session.send('session-alive', { sid: 'last', time });
    await app.told('ephemeral');
  });
  const auth = { clientType: 'machine-scoped', machineId: 'm' };
  for (const [how, leave] of [['closes', (machine) => machine.leave()], ['is cut off', (machine) => machine.break()]]) {
    await recorder.step(`a machine connects and ${how}`, async () => {
      const machine = await recorder.client('machine', host, { user, auth }).connected();
      await app.told('ephemeral');
      leave(machine);
      await app.told('ephemeral', 2);
    });
  }
  recorder.close();
}
