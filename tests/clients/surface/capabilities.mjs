// What clients get that ask for capabilities: word of held calls, results over reconnects, offsets of broadcasts.
import { LIMITS } from './calls.mjs';

const RESUMABLE = { clientType: 'user-scoped', capabilities: ['rpc-resume'] };

/** rpc-waiting, on a host with grace. */
export async function waiting(recorder, host) {
  const user = 'eve';
  const caller = await recorder.client('caller', host, { user, auth: { capabilities: ['rpc-waiting'] } }).connected();
  const plain = await recorder.client('plain', host, { user }).connected();
  const daemon = await recorder.client('daemon', host, { user }).connected();
  daemon.socket.on('rpc-request', (_, answer) => answer('done'));
  await recorder.step('rpc-waiting: a call is held until a daemon registers its method', async () => {
    const answers = [caller.ask('rpc-call', { method: 'm' })];
    await caller.told('rpc-waiting');
    answers.push(plain.ask('rpc-call', { method: 'm' }));
    await plain.fence();
    daemon.send('rpc-register', { method: 'm' });
    await Promise.all(answers);
  });
  await recorder.step('rpc-call: more calls wait for one method than there may be', async () => {
    const held = Array.from({ length: LIMITS.waiting }, () => caller.ask('rpc-call', { method: 'n' }));
    await caller.told('rpc-waiting', LIMITS.waiting);
    await plain.ask('rpc-call', { method: 'n' });
    daemon.send('rpc-register', { method: 'n' });
    await Promise.all(held);
  });
  await recorder.step('rpc-call: the socket that waits registers the method itself', async () => {
    const answer = plain.ask('rpc-call', { method: 'own' });
    await plain.fence();
    plain.send('rpc-register', { method: 'own' });
    await answer;
  });
  await recorder.step('rpc-call: its time is over while it waits', () => caller.ask('rpc-call', { method: 'nobody', timeoutMs: 50 }));
  recorder.close();
}

/** rpc-result and rpc-resumed, on a host with grace. */
export async function resumption(recorder, host) {
  const user = 'fay';
  const caller = await recorder.client('caller', host, { user, auth: { capabilities: ['rpc-waiting'] } }).connected();
  const old = await recorder.client('old daemon', host, { user, auth: RESUMABLE }).connected();
  await recorder.step('rpc-request of a daemon with rpc-resume', async () => {
    old.send('rpc-register', { method: 'm' });
    await old.told('rpc-registered');
  });
  const ids = [];
  const former = old.socket.id;
  const answers = [];
  await recorder.step('two calls are in flight', async () => {
    for (const params of [1, 2]) {
      answers.push(caller.ask('rpc-call', { method: 'm', params }));
      const [{ callId }] = await old.told('rpc-request', params);
      ids.push(callId);
    }
  });
  await recorder.step('the connection breaks: both are held', async () => {
    old.break();
    await caller.told('rpc-waiting', 2);
  });
  const plain = await recorder.client('plain', host, { user }).connected();
  const back = await recorder.client('daemon', host, { user, auth: RESUMABLE }).connected();
  await recorder.step('rpc-resumed and rpc-result that make no sense', async () => {
    await plain.ask('rpc-resumed', { socket: former, callIds: [] });
    await back.ask('rpc-resumed');
    for (const body of [null, {}, { socket: former }, { callIds: [] }, { socket: 7, callIds: [] }]) await back.ask('rpc-resumed', body);
    await back.ask('rpc-result');
    for (const body of [null, {}, { callId: 7 }, { callId: 'nonsense', result: 1 }]) await back.ask('rpc-result', body);
    await back.ask('rpc-result', { callId: ids[0], result: Array.from({ length: 11 }, () => Buffer.from('x')) });
  });
  await recorder.step('the daemon is back with one of the two', async () => {
    await back.ask('rpc-resumed', { socket: former, callIds: [ids[1]] });
    await answers[0];
    await back.ask('rpc-result', { callId: ids[1], result: { handed: 'in' } });
    await answers[1];
    await back.ask('rpc-result', { callId: ids[1], result: 'again' });
  });
  recorder.close();
}

/** Offsets, gaps and broadcasts of the backend; `backlogMax`: as many missed broadcasts are replayed. */
export async function offsets(recorder, host, backlogMax) {
  const user = 'gil';
  const options = (lastOffset) => ({ user, auth: { capabilities: ['offsets'], ...(lastOffset !== undefined && { lastOffset }) } });
  const emit = (...args) => host.emit({ rooms: [`user:${user}`], event: 'update', args });
  const follower = await recorder.client('follower', host, options()).connected();
  const plain = await recorder.client('plain', host, { user }).connected();
  await recorder.step('offsets: a client that begins', () => follower.told('offset'));
  let last;
  await recorder.step('offsets: broadcasts', async () => {
    await emit({ a: 1 }, 'two');
    await emit();
    last = (await follower.told('update', 2)).at(-1);
    await plain.told('update', 2);
  });
  follower.leave();
  await follower.ended();
  await emit('missed');
  await recorder.step('offsets: a client that was away', async () => {
    const back = await recorder.client('follower', host, options(last)).connected();
    await back.told('recovered');
    back.leave();
  });
  await recorder.step('offsets: a place that is none', async () => {
    await (await recorder.client('follower', host, options('nonsense')).connected()).told('gap');
  });
  recorder.close();
  for (let n = 0; n <= backlogMax; n += 1) await emit(n);
  await recorder.step('offsets: more was missed than is replayed', async () => {
    await (await recorder.client('follower', host, options(last)).connected()).told('gap');
  });
  recorder.close();
}
