// An event during a short disconnect is lost on the socket: the app fetches it again by other means, as it does with the seed.
import { until } from '../../../clients/support/waiting.mjs';
import { app, collect, newUser } from '../../clients.mjs';

export default {
  name: 'missed-events',
  seed: 'lost on the socket',
  replicasMin: 2,
  async run(stage) {
    const fleet = await stage.fleet();
    const user = newUser();
    const door = await fleet.door(0);
    const socket = await app(door, user);
    const updates = collect(socket, 'update');
    const emit = (id) => fleet.replicas[1].emit({ rooms: [`user:${user}`], event: 'update', args: [{ id }] });
    const last = (id) => until(() => updates.at(-1)?.[0].id === id, 10_000, `the update ${id}`);
    await emit('before');
    await last('before');

    door.cut();
    await until(() => !socket.connected, 5_000, 'the disconnect');
    await emit('missed');
    await until(() => socket.connected, 20_000, 'the client to be back');
    const { recovered } = socket;
    await emit('after');
    await last('after');

    stage.holds('the event is lost on the socket', updates.map(([{ id }]) => id).join() === 'before,after');
    stage.holds('the socket says that it was not recovered', !recovered);
  },
};
