// A daemon loses its connection in the middle of a long call and comes back on another replica: with rpc-resume the caller gets the
// result of the work that went on meanwhile, without it the field's answer.
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { resume } from '../../../../clients/js/index.mjs';
import { open } from '../../../clients/support/sockets.mjs';
import { within } from '../../../clients/support/waiting.mjs';
import { app, newUser } from '../../clients.mjs';

const DISCONNECTED = 'RPC target disconnected';

/** How long the work takes, when the connection is lost, and how long the daemon stays away; in milliseconds. */
const LONG = { workMs: 6_000, lostMs: 1_500, awayMs: 3_000 };
const SHORT = { workMs: 2_000, lostMs: 500, awayMs: 1_000 };

/** Which daemons: how each answers over reconnects. */
const KINDS = {
  'bare client': (socket, listener) => {
    socket.auth.capabilities = ['rpc-resume'];
    socket.on('rpc-request', (request, answer) => {
      const cameOn = socket.id;
      listener(request, async (result) => {
        if (socket.id === cameOn) return answer(result);
        if (!socket.connected) await once(socket, 'connect');
        socket.emit('rpc-result', { callId: request.callId, result }, () => {});
      });
    });
  },
  'clients/js': (socket, listener) => resume(socket, listener),
  'without the capability': (socket, listener) => socket.on('rpc-request', listener),
};

export default {
  name: 'rpc-resume',
  seed: 'RPC target disconnected',
  on: ['pointwork'],
  replicasMin: 3,
  async run(stage) {
    const fleet = await stage.fleet();
    const spans = stage.isShort ? SHORT : LONG;
    await judgeLoss(stage, fleet, spans, 'socket cut', (doors) => doors.forEach((door) => door.cut()));
    await judgeLoss(stage, fleet, spans, 'replica killed', () => fleet.replicas[1].kill());
  },
};

/** One daemon of each kind on the second replica, which its caller on the first one calls; then all of them lose their connection. */
async function judgeLoss(stage, fleet, spans, loss, lose) {
  const members = await Promise.all(Object.entries(KINDS).map(([kind, attach]) => member(stage, fleet, spans, kind, attach)));
  const answers = members.map(({ caller }) => stage.calls.make(caller, 'work'));
  await delay(spans.lostMs);
  const wereAtWork = members.filter(({ work }) => work.begun === 1 && work.done === 0).length;
  stage.all(`${loss}: daemons lost in the middle of their work`, wereAtWork, members.length);
  members.forEach(({ door }) => door.leadTo(2));
  const lostAt = performance.now();
  await lose(members.map(({ door }) => door));
  const ended = await Promise.all(answers);

  for (const [i, { kind, work, socket }] of members.entries()) {
    const { outcome, error, result, endedAt } = ended[i];
    const name = `${loss}, ${kind}`;
    const afterMs = endedAt - lostAt;
    if (kind === 'without the capability') {
      stage.holds(`${name}: "${DISCONNECTED}"`, error === DISCONNECTED);
      stage.atMost(`${name}: after`, afterMs, ' ms', { ours: 250 });
    } else {
      stage.holds(`${name}: the result${outcome === 'ok' ? '' : `, not ${error ?? outcome}`}`, outcome === 'ok' && result?.done === 1);
      // The work goes on meanwhile: the caller gets it when it is done, or the daemon is back.
      stage.atMost(`${name}: after`, afterMs, ' ms', { ours: Math.max(spans.workMs - spans.lostMs, spans.awayMs) + 500 });
    }
    if (!socket.connected) await within(once(socket, 'connect'), 20_000, 'the daemon to be back');
    stage.holds(`${name}: the handler ran once`, work.begun === 1);
  }
}

/** A caller and its daemon, which is away for so long after it has lost its connection. */
async function member(stage, fleet, { workMs, awayMs }, kind, attach) {
  const user = newUser();
  const [caller, door] = await Promise.all([app(fleet.replicas[0], user), fleet.door(1)]);
  const work = { begun: 0, done: 0 };
  const pause = { reconnectionDelay: awayMs, reconnectionDelayMax: awayMs, randomizationFactor: 0 };
  const auth = { clientType: 'machine-scoped', machineId: 'm' };
  const socket = open(door, { user, auth, reconnection: true, ...pause });
  attach(socket, async (request, answer) => {
    stage.calls.handled(request);
    work.begun += 1;
    await delay(workMs);
    work.done += 1;
    answer(work);
  });
  socket.on('connect', () => socket.emit('rpc-register', { method: 'work' }));
  await within(once(socket, 'rpc-registered'), 20_000, 'the registration');
  return { kind, caller, door, socket, work };
}
