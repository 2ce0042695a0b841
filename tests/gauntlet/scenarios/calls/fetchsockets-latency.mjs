// How soon a Node replica that joins the fleet is told by all others whom they have in a room.
import { median } from '../../../clients/support/calls.mjs';
import { app, newUser } from '../../clients.mjs';

const PROBES = 20;

export default {
  name: 'fetchsockets-latency',
  seed: '≤ 500 ms (its cap)',
  replicasMin: 2,
  async run(stage) {
    const fleet = await stage.fleet();
    const user = newUser();
    const sockets = await Promise.all(fleet.replicas.map((replica) => app(replica, user)));
    const expected = sockets.map(({ id }) => id).sort().join();
    const probe = await fleet.add('node');
    await fleet.agreed();
    const times = [];
    let right = 0;
    for (let i = 0; i < PROBES; i += 1) {
      const { status, text } = await probe.request(`/v1/sockets?room=${encodeURIComponent(`user:${user}`)}`);
      if (status !== 200) continue; // counted as not right
      const { ids, ms } = JSON.parse(text);
      times.push(ms);
      right += ids.sort().join() === expected;
    }
    stage.all('answers that name the sockets of all replicas', right, PROBES);
    if (times.length === 0) return;
    stage.atMost('median', median(times), ' ms', { ours: 25, seed: 100 });
    stage.atMost('slowest', Math.max(...times), ' ms', { ours: 250, seed: 500 });
  },
};
