// A daemon's connection is lost in the middle of a call, and the daemon comes back elsewhere: with rpc-resume the caller gets the
// result, without it the field's answer.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, afterEach, before, describe, test } from 'node:test';
import { resume } from '../../../clients/js/index.mjs';
import { startCluster, stopCluster } from '../fleet/cluster.mjs';
import { call, closeSockets, collect, connect, connected, failed, newUser, next, open, register, succeeded } from '../support/sockets.mjs';
import { until, within } from '../support/waiting.mjs';

const DISCONNECTED = failed('RPC target disconnected');
const NOT_AVAILABLE = failed('RPC method not available');
const TIMED_OUT = failed('operation has timed out');
const UNKNOWN = failed('Unknown call');
const UNREACHABLE = failed('RPC target unreachable');
const TAKEN = { ok: true };

/** Methods that begin so have little time. */
const CONFIG = '[[rpc.method]]\nmatch = "short:*"\ntimeout_ms = 2000\n';

const handIn = (socket, body) => within(socket.emitWithAck('rpc-result', body), undefined, 'the word on a result');

/** How a daemon answers requests over reconnects: `attach(socket, listener)` before it is connected; `told` gets the word on results. */
const KINDS = {
  bare(socket, listener, told) {
    socket.auth.capabilities = ['rpc-resume'];
    socket.on('rpc-request', (request, answer) => {
      const cameOn = socket.id;
      listener(request, async (result) => {
        if (socket.id === cameOn) return answer(result);
        if (!socket.connected) await once(socket, 'connect');
        told.push(await handIn(socket, { callId: request.callId, result }));
      });
    });
  },
  'clients/js': (socket, listener) => resume(socket, listener),
  plain: (socket, listener) => socket.on('rpc-request', listener),
};

afterEach(closeSockets);

/** A daemon behind a door of its own that registers on every connect and comes back when `back` is called. */
class Daemon {
  /** `{request, answer}` of all requests. */
  asked = [];
  /** What was answered to its results, of the bare kind. */
  told = [];
  door;
  socket;
  #registered = [];

  static async start(fleet, at, { kind, user, methods = ['m'] }) {
    const daemon = new Daemon();
    daemon.door = await fleet.door(at);
    daemon.socket = open(daemon.door, { user, auth: { clientType: 'machine-scoped', machineId: 'm' } });
    KINDS[kind](daemon.socket, (request, answer) => daemon.asked.push({ request, answer }), daemon.told);
    daemon.socket.on('connect', () => methods.forEach((method) => daemon.socket.emit('rpc-register', { method })));
    daemon.#registered = collect(daemon.socket, 'rpc-registered');
    await connected(daemon.socket);
    await until(() => daemon.#registered.length >= methods.length, undefined, 'the registration');
    return daemon;
  }

  /** Waits for so many requests. */
  has(times = 1) {
    return until(() => this.asked.length >= times, undefined, `request ${times}`);
  }

  /** Its connection is cut; it knows. */
  async cut() {
    const gone = next(this.socket, 'disconnect');
    this.door.cut();
    await gone;
  }

  /** It connects again, to this replica. */
  async back(at) {
    this.door.leadTo(at);
    this.#registered.length = 0;
    this.socket.connect();
    await connected(this.socket);
    await until(() => this.#registered.length > 0, undefined, 'the registration after the return');
  }
}

describe('with time to come back', () => {
  let fleet;
  let replicas;
  before(async () => {
    fleet = await startCluster(3, { graceMs: 60_000, config: CONFIG });
    ({ replicas } = fleet);
  });
  after(() => stopCluster(fleet));

  /** A caller on the first replica with a call in flight to a daemon on the second. */
  async function inFlight(kind, { method = 'm' } = {}) {
    const user = newUser();
    const daemon = await Daemon.start(fleet, 1, { kind, user, methods: [method] });
    const caller = await connect(replicas[0], { user });
    const answer = call(caller, method, { a: 1 });
    await daemon.has();
    const { callId } = daemon.asked[0].request;
    return { user, daemon, caller, answer, callId };
  }

  const losses = {
    'is cut': ({ daemon }) => daemon.cut(),
    'ends with its replica': async ({ daemon }) => {
      const gone = next(daemon.socket, 'disconnect');
      await replicas[1].kill();
      await gone;
    },
  };
  for (const [loss, lose] of Object.entries(losses)) {
    describe(`a connection that ${loss}`, () => {
      afterEach(async () => replicas[1].isUp || (await replicas[1].start()));

      for (const kind of ['bare', 'clients/js']) {
        for (const at of [2, 0]) {
          test(`a ${kind} daemon finishes while away, and hands in on replica ${at}`, async () => {
            const { daemon, answer } = await inFlight(kind);
            await lose({ daemon });
            daemon.asked[0].answer({ sum: 2 });
            await daemon.back(at);
            assert.deepEqual(await answer, succeeded({ sum: 2 }));
            assert.equal(daemon.asked.length, 1, 'the handler ran once');
            if (kind === 'bare') await until(() => daemon.told.length === 1);
            assert.deepEqual(daemon.told, kind === 'bare' ? [TAKEN] : []);
          });
        }

        test(`a ${kind} daemon comes back and finishes then`, async () => {
          const { daemon, answer, caller } = await inFlight(kind);
          await lose({ daemon });
          await daemon.back(2);
          // It serves others meanwhile: by another method, which nobody can take for one of its old socket.
          await register(daemon.socket, 'n');
          const other = call(caller, 'n');
          await daemon.has(2);
          daemon.asked[1].answer('other');
          assert.deepEqual(await other, succeeded('other'));
          daemon.asked[0].answer('at last');
          assert.deepEqual(await answer, succeeded('at last'));
          if (kind === 'bare') await until(() => daemon.told.length === 1);
          assert.equal(daemon.asked.length, 2, 'each handler ran once');
        });
      }

      test('a plain daemon has lost its call', async () => {
        const { daemon, answer, callId } = await inFlight('plain');
        assert.equal(callId, undefined);
        await lose({ daemon });
        assert.deepEqual(await answer, DISCONNECTED);
      });
    });
  }

  test('many calls are handed in, each to its own caller', async () => {
    const user = newUser();
    const daemon = await Daemon.start(fleet, 1, { kind: 'clients/js', user });
    const callers = await Promise.all(replicas.map((replica) => connect(replica, { user })));
    const answers = Array.from({ length: 60 }, (_, i) => call(callers[i % 3], 'm', i));
    await daemon.has(60);
    await daemon.cut();
    for (const { request, answer } of daemon.asked) answer(request.params * 2);
    await daemon.back(2);
    assert.deepEqual(await Promise.all(answers), answers.map((_, i) => succeeded(i * 2)));
    assert.equal(daemon.asked.length, 60);
    assert.equal(new Set(daemon.asked.map(({ request }) => request.callId)).size, 60);
  });

  test('two losses in a row lose nothing', async () => {
    const { daemon, answer } = await inFlight('clients/js');
    for (const at of [2, 0, 1]) {
      await daemon.cut();
      await daemon.back(at);
    }
    await daemon.cut();
    daemon.asked[0].answer('in the end');
    await daemon.back(2);
    assert.deepEqual(await answer, succeeded('in the end'));
    assert.equal(daemon.asked.length, 1);
  });

  test('a result may be handed in while the server still takes the old connection for alive', async () => {
    const { user, daemon, answer, callId } = await inFlight('bare');
    daemon.door.blackhole();
    const back = await connect(replicas[2], { user });
    assert.deepEqual(await handIn(back, { callId, result: 'over another way' }), TAKEN);
    assert.deepEqual(await answer, succeeded('over another way'));
    daemon.door.heal();
    daemon.asked[0].answer('the old way');
    assert.deepEqual(await within(daemon.socket.emitWithAck('ping')), {});
  });

  test('a request that was lost on its way to the daemon ends when the daemon is back', async () => {
    const user = newUser();
    const daemon = await Daemon.start(fleet, 1, { kind: 'clients/js', user });
    const caller = await connect(replicas[0], { user });
    const kept = call(caller, 'm', 'kept');
    await daemon.has();
    daemon.door.blackhole();
    const lost = call(caller, 'm', 'lost');
    assert.deepEqual(await within(caller.emitWithAck('ping')), {});
    // The client gives its connection up; what it was sent meanwhile never comes.
    const gone = next(daemon.socket, 'disconnect');
    daemon.socket.io.engine.close();
    await gone;
    daemon.door.heal();
    await daemon.back(2);
    assert.deepEqual(await lost, DISCONNECTED);
    daemon.asked[0].answer('kept');
    assert.deepEqual(await kept, succeeded('kept'));
    assert.deepEqual(daemon.asked.map(({ request }) => request.params), ['kept']);
  });

  test('what a daemon says of requests harms nobody else’s', async () => {
    const { user, daemon, answer, callId } = await inFlight('bare');
    const former = daemon.socket.id;
    const stranger = await connect(replicas[2], { user: newUser(), auth: { capabilities: ['rpc-resume'] } });
    const says = (socket, body) => within(socket.emitWithAck('rpc-resumed', body), undefined, 'the word on rpc-resumed');
    for (const callIds of [[], [callId]]) await says(stranger, { socket: former, callIds });
    for (const body of [null, 7, [], {}, { socket: former }, { callIds: [] }, { socket: 7, callIds: [] }, { socket: '', callIds: [] }]) {
      const word = await says(stranger, body);
      assert.deepEqual([word.ok, typeof word.error], [false, 'string'], JSON.stringify(body));
    }
    stranger.emit('rpc-resumed', null);
    stranger.emit('rpc-resumed');
    assert.equal(daemon.socket.connected, true);
    const back = await connect(replicas[2], { user });
    await says(back, { socket: former, callIds: [callId, 'nonsense', 7, null] });
    assert.deepEqual(await handIn(back, { callId, result: 'done' }), TAKEN);
    assert.deepEqual(await answer, succeeded('done'));
  });

  test('the former socket is ended where it still stands, and nobody takes that for the end of the machine', async () => {
    const { user, daemon, answer, callId } = await inFlight('bare');
    const app = await connect(replicas[0], { user });
    const activities = collect(app, 'ephemeral');
    const former = daemon.socket.id;
    const auth = { clientType: 'machine-scoped', machineId: 'm', capabilities: ['rpc-resume'] };
    const back = await connect(replicas[2], { user, auth });
    const gone = next(daemon.socket, 'disconnect');
    await within(back.emitWithAck('rpc-resumed', { socket: former, callIds: [callId] }), undefined, 'the word on rpc-resumed');
    await gone;
    assert.deepEqual(await handIn(back, { callId, result: 'done' }), TAKEN);
    assert.deepEqual(await answer, succeeded('done'));
    // What is told of the old connection is told before this, for both replicas have to do with it.
    for (const socket of [await connect(replicas[1], { user }), back]) {
      socket.emit('session-alive', { sid: socket.id, time: Date.now(), mode: 'local' });
      await until(() => activities.some(([{ id }]) => id === socket.id), undefined, 'the fence');
    }
    assert.deepEqual(activities.map(([event]) => event).filter(({ type, active }) => type === 'machine-activity' && !active), []);
  });

  test('a live daemon with the capability acknowledges as ever', async () => {
    for (const kind of ['bare', 'clients/js']) {
      const { daemon, answer, callId } = await inFlight(kind);
      assert.equal(typeof callId, 'string');
      daemon.asked[0].answer(1);
      assert.deepEqual(await answer, succeeded(1));
      assert.deepEqual(await handIn(daemon.socket, { callId, result: 2 }), UNKNOWN);
    }
  });

  test("another user's result is of no call, and harms nothing", async () => {
    const { user, daemon, answer, callId } = await inFlight('bare');
    const strangers = [newUser(), `${user}:m`, `${user}%3Am`];
    for (const stranger of strangers) {
      for (const replica of replicas) {
        const socket = await connect(replica, { user: stranger, auth: { capabilities: ['rpc-resume'] } });
        assert.deepEqual(await handIn(socket, { callId, result: 'forged' }), UNKNOWN);
      }
    }
    await daemon.cut();
    for (const replica of replicas) {
      assert.deepEqual(await handIn(await connect(replica, { user: strangers[0] }), { callId, result: 'forged' }), UNKNOWN);
    }
    daemon.asked[0].answer('true');
    await daemon.back(2);
    assert.deepEqual(await answer, succeeded('true'));
  });

  test('a second result is of no call', async () => {
    const { user, daemon, answer, callId } = await inFlight('bare');
    await daemon.cut();
    const sockets = await Promise.all(replicas.map((replica) => connect(replica, { user })));
    const words = await Promise.all(sockets.map((socket, i) => handIn(socket, { callId, result: i })));
    assert.deepEqual(words.filter(({ ok }) => ok), [TAKEN], 'exactly one was taken');
    assert.deepEqual(words.filter(({ ok }) => !ok), [UNKNOWN, UNKNOWN]);
    assert.deepEqual(await answer, succeeded(words.findIndex(({ ok }) => ok)));
    for (const socket of sockets) assert.deepEqual(await handIn(socket, { callId, result: 'again' }), UNKNOWN);
  });

  test('a result of a call that ended, or whose caller left, is of no call', async () => {
    const { daemon, answer } = await inFlight('bare', { method: 'short:m' });
    await daemon.cut();
    assert.deepEqual(await answer, TIMED_OUT);
    daemon.asked[0].answer('late');
    await daemon.back(2);
    await until(() => daemon.told.length === 1);
    assert.deepEqual(daemon.told, [UNKNOWN]);

    const left = await inFlight('bare');
    left.answer.catch(() => {}); // its connection ends
    await left.daemon.cut();
    left.caller.disconnect();
    await left.daemon.back(2);
    const word = async () => (await handIn(left.daemon.socket, { callId: left.callId, result: 1 })).error;
    assert.equal(await word(), UNKNOWN.error);
  });

  test('a daemon that is back and hands nothing in has until the deadline', async () => {
    const { daemon, answer } = await inFlight('bare', { method: 'short:m' });
    await daemon.cut();
    await daemon.back(2);
    assert.deepEqual(await answer, TIMED_OUT);
  });

  test('a daemon that closes its socket has given its calls up', async () => {
    const { daemon, answer, user, callId } = await inFlight('bare');
    daemon.socket.disconnect();
    assert.deepEqual(await answer, DISCONNECTED);
    assert.deepEqual(await handIn(await connect(replicas[2], { user }), { callId, result: 1 }), UNKNOWN);
  });

  test('what makes no sense is answered', async () => {
    const { user, daemon, answer, callId } = await inFlight('bare');
    const socket = await connect(replicas[2], { user });
    const texts = ['', ' ', 'x', '0', '-', ':', '::', '0-0', '0.0', 'ü', '\u0000', 'f'.repeat(32), 'x'.repeat(50_000), `${callId}0`, ` ${callId}`];
    const ids = [undefined, null, 7, true, [callId], {}, ...texts];
    for (const body of [null, 7, 'x', [], [callId], ...ids.map((id) => ({ callId: id, result: 'nonsense' }))]) {
      const { ok, error } = await handIn(socket, body);
      assert.equal(ok, false, JSON.stringify(body));
      assert.equal(typeof error, 'string');
    }
    assert.equal((await within(socket.emitWithAck('rpc-result'))).ok, false);
    socket.emit('rpc-result', { callId: 'x' });
    socket.emit('rpc-result');
    assert.deepEqual(await within(socket.emitWithAck('ping')), {});
    // Without an acknowledgement it is taken all the same.
    socket.emit('rpc-result', { callId, result: { nested: [Buffer.from('binary')] } });
    assert.deepEqual(await answer, succeeded({ nested: [Buffer.from('binary')] }));
    daemon.asked[0].answer('too late');
  });

  test('a result that cannot be passed on is refused or an error, and not lost in silence', async () => {
    const { user, answer, callId } = await inFlight('bare');
    const socket = await connect(replicas[2], { user });
    const attachments = Array.from({ length: 11 }, () => Buffer.from('x'));
    const word = await handIn(socket, { callId, result: attachments });
    if (!word.ok) assert.deepEqual(await handIn(socket, { callId, result: 1 }), TAKEN);
    const { ok, result, error } = await answer;
    assert.ok(ok ? !word.ok && result === 1 : error === 'Internal error', JSON.stringify({ word, ok, error }));
  });

  // The last: the first replica is another process afterwards.
  test('the caller’s replica is gone: the daemon is told so', async () => {
    const { daemon, answer, callId } = await inFlight('bare');
    answer.catch(() => {}); // its connection ends
    await daemon.cut();
    await replicas[0].kill();
    await daemon.back(2);
    const word = await handIn(daemon.socket, { callId, result: 1 });
    assert.ok([UNKNOWN.error, UNREACHABLE.error].includes(word.error), JSON.stringify(word));
    await replicas[0].start();
    const after = await handIn(daemon.socket, { callId, result: 1 });
    assert.ok([UNKNOWN.error, UNREACHABLE.error].includes(after.error), JSON.stringify(after));
  });
});

describe('with little time to come back', () => {
  let fleet;
  before(async () => (fleet = await startCluster(2, { graceMs: 400, settings: { 'rpc.presence_poll_ms': 50 } })));
  after(() => stopCluster(fleet));

  test('a daemon that does not come back has lost its call', async () => {
    const user = newUser();
    const daemon = await Daemon.start(fleet, 1, { kind: 'clients/js', user });
    const caller = await connect(fleet.replicas[0], { user });
    const answer = call(caller, 'm');
    await daemon.has();
    await daemon.cut();
    assert.deepEqual(await answer, DISCONNECTED);
    // What it has is of no call any more, and new ones are served.
    daemon.asked[0].answer('late');
    await daemon.back(0);
    const other = call(caller, 'm');
    await daemon.has(2);
    daemon.asked[1].answer('new');
    assert.deepEqual(await other, succeeded('new'));
  });

  test('a daemon that was back before its loss was known counts as back', async () => {
    const user = newUser();
    const daemon = await Daemon.start(fleet, 1, { kind: 'bare', user });
    const caller = await connect(fleet.replicas[0], { user, auth: { capabilities: ['rpc-waiting'] } });
    const answer = call(caller, 'm');
    await daemon.has();
    daemon.door.blackhole();
    const back = await connect(fleet.replicas[0], { user, auth: { capabilities: ['rpc-resume'] } });
    await register(back, 'm');
    const held = next(caller, 'rpc-waiting');
    daemon.door.cut();
    await held;
    // Longer than it would be kept for a daemon that is away.
    const fence = await connect(fleet.replicas[0], { user });
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await call(fence, 'never'), NOT_AVAILABLE);
    assert.deepEqual(await handIn(back, { callId: daemon.asked[0].request.callId, result: 'kept' }), TAKEN);
    assert.deepEqual(await answer, succeeded('kept'));
  });

  test('once another has registered the method meanwhile, the call is kept', async () => {
    const user = newUser();
    const daemon = await Daemon.start(fleet, 1, { kind: 'bare', user });
    const other = await connect(fleet.replicas[0], { user });
    const caller = await connect(fleet.replicas[0], { user, auth: { capabilities: ['rpc-waiting'] } });
    const answer = call(caller, 'm');
    await daemon.has();
    const held = next(caller, 'rpc-waiting');
    await daemon.cut();
    await held;
    await register(other, 'm');
    // Longer than it would be kept for the daemon alone.
    const fence = await connect(fleet.replicas[0], { user });
    for (let times = 0; times < 2; times += 1) assert.deepEqual(await call(fence, 'never'), NOT_AVAILABLE);
    daemon.asked[0].answer('kept');
    await daemon.back(0);
    assert.deepEqual(await answer, succeeded('kept'));
  });
});
