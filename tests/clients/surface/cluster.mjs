// What clients are told that a host alone never says: by a cluster whose Redis goes away, and by a replica that leaves.
import { PATIENCE_MS, until } from '../support/waiting.mjs';
import { unready } from './routes.mjs';

/** How long the replica stays that is asked while it drains: longer than the test, a second signal ends it. */
export const SETTLE_MS = 600_000;

const health = async (replica) => (await fetch(`${replica.admin}/health/ready`)).status;

/** Everything up to Redis' return; gives the lines of the routes. */
export async function withoutRedis(recorder, { redis, replicas: [near, far] }) {
  const options = (lastOffset) => ({ user: 'kim', auth: { capabilities: ['offsets'], lastOffset } });
  const emit = () => near.emit({ rooms: ['user:kim'], event: 'update' });
  const follower = await recorder.client('follower', near, options()).connected();
  let last;
  await recorder.step('offsets: broadcasts of a cluster', async () => {
    await follower.told('offset');
    await emit();
    [last] = await follower.told('update');
  });
  follower.leave();
  await follower.ended();
  // A replica that starts knows only what Redis has.
  await far.kill();
  const before = await redis.command('XLEN', 'socket.io');
  for (let times = 0; times < 3; times += 1) await emit();
  await until(async () => (await redis.command('XLEN', 'socket.io')) === before + 3, PATIENCE_MS, 'the broadcasts in the stream');
  await redis.command('XTRIM', 'socket.io', 'MAXLEN', 1);
  await far.start();
  await recorder.step('offsets: the stream was trimmed', async () => {
    const trimmed = await recorder.client('follower', far, options(last)).connected();
    await trimmed.told('gap');
    trimmed.leave();
    await trimmed.ended();
  });
  const caller = await recorder.client('caller', near, { user: 'jon' }).connected();
  const daemon = await recorder.client('daemon', far, { user: 'jon' }).connected();
  daemon.socket.on('rpc-request', (_, answer) => answer('far'));
  await recorder.step('a call across replicas', async () => {
    daemon.send('rpc-register', { method: 'm' });
    await daemon.told('rpc-registered');
    await caller.ask('rpc-call', { method: 'm' });
  });
  await redis.stop();
  await until(async () => (await health(near)) === 503 && (await health(far)) === 503, PATIENCE_MS, 'the link to be down');
  await recorder.step('a call across replicas while Redis is away', () => caller.ask('rpc-call', { method: 'm' }));
  await recorder.step('offsets: while Redis is away', async () => {
    await (await recorder.client('follower', near, options('1-0')).connected()).told('gap'); // before all that it remembers
  });
  recorder.close();
  const lines = await unready(near, 'while Redis is away');
  await redis.startEmpty();
  await until(async () => (await health(near)) === 200 && (await health(far)) === 200, PATIENCE_MS, 'both replicas to be ready');
  // Experiments are read again a little later.
  const experiments = async () => (await fetch(`${near.admin}/v1/experiments`)).json();
  await until(async () => (await experiments()).error === null, PATIENCE_MS, 'the experiments to be read again');
  return lines;
}

/**
 * One replica is asked while it drains, then the other leaves in order; gives the lines of the routes. A replica that is alone does not
 * settle, so the other one is there while the first drains.
 */
export async function draining(recorder, { replicas: [near, far] }) {
  const first = await recorder.client('app', near, { user: 'lea' }).connected();
  near.isUp = false;
  process.kill(near.pid, 'SIGTERM');
  await until(async () => (await health(near)) === 503, PATIENCE_MS, 'the replica to drain');
  const lines = await unready(near, 'while it drains');
  await recorder.step('a replica that drains is stopped at once', async () => {
    await near.end('SIGTERM');
    await first.ended();
  });
  await near.start();
  const app = await recorder.client('app', near, { user: 'lea' }).connected();
  const auth = { clientType: 'machine-scoped', machineId: 'm' };
  const machine = await recorder.client('machine', far, { user: 'lea', auth }).connected();
  await recorder.step('a machine connects to a replica', () => app.told('ephemeral'));
  await recorder.step('the replica leaves in order', async () => {
    far.isUp = false;
    await far.end('SIGTERM');
    await machine.ended();
    await app.told('ephemeral');
  });
  recorder.close();
  await near.kill(); // it would settle as long as it takes the other for alive
  return lines;
}
