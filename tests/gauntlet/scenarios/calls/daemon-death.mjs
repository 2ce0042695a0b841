// A daemon's socket dies with a call in flight: by its own word, and by its connection.
import { pair } from '../../clients.mjs';

const ROUNDS = 5;

export default {
  name: 'daemon-death',
  seed: 'about 1 s',
  replicasMin: 2,
  async run(stage) {
    const { calls } = stage;
    const fleet = await stage.fleet();
    const deaths = { disconnect: ({ daemon }) => daemon.socket.disconnect(), cut: ({ door }) => door.cut() };
    for (const [where, from] of [['on the same replica', 1], ['across replicas', 0]]) {
      for (const [name, die] of Object.entries(deaths)) {
        let slowestMs = 0;
        let told = 0;
        for (let round = 0; round < ROUNDS; round += 1) {
          const door = await fleet.door(1);
          const options = { handle: () => undefined, reconnection: false };
          const { caller, daemon } = await pair(calls, fleet.replicas[from], door, options);
          const inFlight = calls.make(caller, 'work');
          await daemon.received(1);
          const diedAt = performance.now();
          die({ daemon, door });
          const { error, endedAt } = await inFlight;
          told += error === 'RPC target disconnected';
          slowestMs = Math.max(slowestMs, endedAt - diedAt);
        }
        stage.all(`${name} ${where}: told so`, told, ROUNDS);
        stage.atMost(`${name} ${where}: slowest answer`, slowestMs, ' ms', { ours: 50, seed: 2_500 });
      }
    }
  },
};
