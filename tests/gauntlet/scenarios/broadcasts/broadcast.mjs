// A broadcast reaches the sockets of its room on every replica, once each, and nobody else.
import { until } from '../../../clients/support/waiting.mjs';
import { app, collect, newUser } from '../../clients.mjs';

const MEMBERS = 20;
const STRANGERS = 5;

export default {
  name: 'broadcast',
  seed: '20/20, 5/5 unaffected',
  replicasMin: 2,
  async run(stage) {
    const { replicas } = await stage.fleet();
    const [user, other] = [newUser(), newUser('stranger')];
    const at = (i) => replicas[i % replicas.length];
    const sockets = (n, of) => Promise.all(Array.from({ length: n }, (_, i) => app(at(i), of)));
    const [members, strangers] = await Promise.all([sockets(MEMBERS, user), sockets(STRANGERS, other)]);
    const told = members.map((socket) => collect(socket, 'update'));
    const untold = strangers.map((socket) => collect(socket, 'update'));
    const fences = [...members, ...strangers].map((socket) => collect(socket, 'fence'));

    let slowestMs = 0;
    for (const [i, replica] of replicas.entries()) {
      const emittedAt = performance.now();
      await replica.emit({ rooms: [`user:${user}`], event: 'update', args: [{ from: i }] });
      // What does not come is seen by the figures below.
      await until(() => told.every((list) => list.length > i), 10_000, 'the update').catch(() => {});
      slowestMs = Math.max(slowestMs, performance.now() - emittedAt);
      // From the same replica, and so after the update, wherever that should not have gone.
      await replica.emit({ rooms: [`user:${user}`, `user:${other}`], event: 'fence' });
      await until(() => fences.every((list) => list.length > i), 10_000, 'the fence').catch(() => {});
    }
    const wanted = replicas.map((_, i) => i).join();
    const got = (list) => list.map(([{ from }]) => from).join();
    stage.all('sockets that got each update once, in order', told.filter((list) => got(list) === wanted).length, MEMBERS);
    stage.all('sockets outside the room unaffected', untold.filter((list) => list.length === 0).length, STRANGERS);
    stage.all('sockets that got each fence once', fences.filter((list) => list.length === replicas.length).length, fences.length);
    stage.atMost('slowest to reach all', slowestMs, ' ms', { ours: 250, seed: 1_000 });
  },
};
