// A daemon that is away for a moment, and one that never comes back.
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../clients/support/waiting.mjs';
import { bad, count, shownFailures, slowest } from '../../../clients/support/calls.mjs';
import { app, collect, Daemon, newUser, pair } from '../../clients.mjs';

const AWAY_MS = 2_000;
const ROUNDS = 3;

export const briefDisconnect = {
  name: 'brief-disconnect',
  seed: '2011 ms',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const { replicas } = await stage.fleet();
    const records = [];
    const emittedMs = [];
    // It comes back to its own replica, to the caller's, and to a third one.
    for (let round = 0; round < ROUNDS; round += 1) {
      const { user, caller, daemon } = await pair(calls, replicas[0], replicas[1], { reconnection: false });
      await calls.make(caller, 'work');
      await leave(caller, daemon);
      const waiting = calls.make(caller, 'work');
      await delay(AWAY_MS);
      const back = await Daemon.start(replicas[(round + 1) % replicas.length], { user, method: 'work', calls });
      records.push(await waiting);
      if (back.requests.length > 0) emittedMs.push(back.requests[0].at - back.registeredAt);
    }
    stage.all('calls that succeeded', count(records, 'ok'), ROUNDS);
    if (bad(records).length > 0) stage.note(shownFailures(records));
    stage.atMost('slowest, with 2000 ms away', slowest(records), ' ms', { ours: AWAY_MS + 100, seed: AWAY_MS + 750 });
    stage.all('requests emitted to the daemon that returned', emittedMs.length, ROUNDS);
    if (emittedMs.length === 0) return;
    stage.atMost('slowest from rpc-register to the request', Math.max(...emittedMs), ' ms', { ours: 20, seed: 750 });
  },
};

export const longDisconnect = {
  name: 'long-disconnect',
  seed: '10542 ms',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const graceMs = stage.isShort ? 2_000 : 10_000;
    const { replicas } = await stage.fleet({ graceMs });
    const { caller, daemon } = await pair(calls, replicas[0], replicas[1], { reconnection: false });
    const stranger = await app(replicas[0], newUser());
    await leave(caller, daemon);
    const answers = await Promise.all([calls.make(caller, 'work'), calls.make(stranger, 'never-registered')]);

    const notAvailable = answers.filter(({ error }) => error === 'RPC method not available');
    stage.all('calls answered "RPC method not available"', notAvailable.length, answers.length);
    const times = answers.map(({ ms }) => ms);
    stage.atLeast('soonest', Math.min(...times), ' ms', { ours: graceMs - 5, seed: graceMs - 5 });
    stage.atMost('latest', Math.max(...times), ' ms', { ours: graceMs + 250, seed: graceMs + 1_500 });
  },
};

/** The daemon leaves, and the cluster knows: a call finds nobody, rather than a socket that is just dying. */
async function leave(caller, daemon) {
  const activities = collect(caller, 'ephemeral');
  daemon.socket.disconnect();
  const isGone = () => activities.some(([{ type, active }]) => type === 'machine-activity' && !active);
  await until(isGone, undefined, 'word that the machine is away');
}
