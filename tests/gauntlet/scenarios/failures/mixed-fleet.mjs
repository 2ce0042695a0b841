// A Node replica among Pointwork's: calls, a daemon's death, broadcasts and fetchSockets, each in both directions.
import { until } from '../../../clients/support/waiting.mjs';
import { count, median, shownFailures } from '../../../clients/support/calls.mjs';
import { app, collect, newUser, pair } from '../../clients.mjs';

const PARALLEL = 20;
const SEQUENTIAL = 20;
const DISCONNECTED = 'RPC target disconnected';

export default {
  name: 'mixed-fleet',
  seed: 'all-Node',
  // Its fleet is its own, whatever that of the others.
  on: ['pointwork', 'mixed'],
  replicasMin: 3,
  async run(stage) {
    const fleet = await stage.fleet({}, ['pointwork', 'node', 'pointwork']);
    await judgeCalls(stage, fleet, 'Node to Pointwork', 1, 2);
    await judgeCalls(stage, fleet, 'Pointwork to Node', 0, 1);
    await judgeBroadcasts(stage, fleet);
    await judgeFetchSockets(stage, fleet);
  },
};

async function judgeCalls(stage, { replicas }, direction, from, to) {
  const { calls } = stage;
  const { caller, method } = await pair(calls, replicas[from], replicas[to]);
  const parallel = await Promise.all(Array.from({ length: PARALLEL }, () => calls.make(caller, method)));
  const sequential = [];
  for (let i = 0; i < SEQUENTIAL; i += 1) sequential.push(await calls.make(caller, method));
  const all = [...parallel, ...sequential];
  stage.all(`${direction}: calls`, count(all, 'ok'), all.length);
  if (count(all, 'ok') < all.length) stage.note(shownFailures(all));
  stage.atMost(`${direction}: median`, median(sequential.map(({ ms }) => ms)), ' ms', { ours: 50, seed: 50 });

  const dying = await pair(calls, replicas[from], replicas[to], { handle: () => undefined, reconnection: false });
  const inFlight = calls.make(dying.caller, dying.method);
  await dying.daemon.received(1);
  const diedAt = performance.now();
  dying.daemon.socket.disconnect();
  const { error, endedAt } = await inFlight;
  stage.holds(`${direction}: a daemon's death is told`, error === DISCONNECTED);
  stage.atMost(`${direction}: told after`, endedAt - diedAt, ' ms', { ours: 2_500, seed: 2_500 });
}

async function judgeBroadcasts(stage, { replicas }) {
  const user = newUser();
  const rooms = [`user:${user}:user-scoped`];
  const members = await Promise.all(replicas.map((replica) => app(replica, user)));
  const machineOf = (replica) => app(replica, user, { auth: { clientType: 'machine-scoped', machineId: 'm' } });
  const others = await Promise.all(replicas.map(machineOf));
  const updates = members.map((socket) => collect(socket, 'update'));
  const strays = others.map((socket) => collect(socket, 'update'));
  const fences = others.map((socket) => collect(socket, 'fence'));
  for (const [i, replica] of replicas.entries()) {
    await replica.emit({ rooms, event: 'update', args: [{ from: i }] });
    await replica.emit({ rooms: [`user:${user}`], event: 'fence' });
    const isThere = () => [...updates, ...fences].every((list) => list.length > i);
    await until(isThere, 5_000, 'update and fence').catch(() => {}); // judged below
  }
  const wanted = replicas.map((_, i) => i).join();
  const got = (list) => list.map(([{ from }]) => from).join();
  stage.all('broadcasts of each reach the room on all', updates.filter((list) => got(list) === wanted).length, members.length);
  stage.all('and nobody else', strays.filter((list) => list.length === 0).length, strays.length);
}

async function judgeFetchSockets(stage, fleet) {
  const user = newUser();
  const sockets = await Promise.all(fleet.replicas.map((replica) => app(replica, user)));
  const [node] = fleet.of('node');
  const { status, text } = await fleet.replicas[node].request(`/v1/sockets?room=${encodeURIComponent(`user:${user}`)}`);
  const wanted = sockets.map(({ id }) => id).sort().join();
  stage.holds("Node's fetchSockets names the sockets of all", status === 200 && JSON.parse(text).ids.sort().join() === wanted);
}
