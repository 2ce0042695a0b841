// What devices and dashboards send and are told.
import { hs256 } from '../support/tokens.mjs';
import { admin, deviceToken, registration } from '../devices/devices.mjs';

/** Registers of one device that its replica bears in a row: the pace, then the number. */
export const RATES = { reconnects: 2, connects: 5 };

const device = (recorder, name, host) => recorder.client(name, host, { namespace: '/device' }).connected();
const dashboard = (recorder, name, host, claims) =>
  recorder.client(name, host, { namespace: '/dashboard', auth: { token: hs256(host.secret, claims) } }).connected();
const operate = (host, id, what) => admin(host, `/v1/devices/${id}/${what}`, {});

/** Sends a register as JSON tokens are not recorded, and waits for its answer. */
async function register(client, words, answer = 'device:registered') {
  client.send('device:register', words);
  return client.told(answer);
}

/** Refusals of the namespace `/dashboard`. */
export async function dashboards(recorder, host) {
  const refused = [
    ['no auth', {}],
    ['an empty token', { token: '' }],
    ['a token that is none', { token: 'nonsense' }],
    ['a device token', { token: deviceToken(host, 'd') }],
  ];
  for (const [what, auth] of refused) {
    await recorder.step(`handshake of /dashboard: ${what}`, () => recorder.client('dashboard', host, { namespace: '/dashboard', auth }).ended());
  }
}

/** One device's session: registers, heartbeats, refusals, operators; on a host whose sessions stay with their holder. */
export async function session(recorder, host) {
  const id = 'device-1';
  const words = registration(host, id, { user: 'hal' });
  const watcher = await dashboard(recorder, 'dashboard', host, { sub: 'hal' });
  const one = await device(recorder, 'device', host);
  const offline = async () => {
    let status;
    for (let times = 1; status !== 'offline'; times += 1) [{ status }] = await watcher.told('dashboard:device-status', times);
  };
  await recorder.step('device:register', async () => {
    await register(one, words);
    await watcher.told('dashboard:device-status');
  });
  await recorder.step('device:register again on the same connection', () => register(one, words));
  await recorder.step('device:register of another device on the same connection', () => register(one, registration(host, 'device-2'), 'device:auth-error'));
  await recorder.step('device:heartbeat', async () => {
    one.send('device:heartbeat', { device_id: id, telemetry: { battery: 50 } });
    for (const body of [null, {}, { device_id: 7 }]) one.send('device:heartbeat', body);
    one.send('device:no-such-event', {});
  });
  const stranger = await device(recorder, 'stranger', host);
  await recorder.step('device:heartbeat of a socket that does not hold the session', async () => {
    for (const device_id of [id, 'unknown']) stranger.send('device:heartbeat', { device_id });
  });
  await recorder.step('device:register while another socket holds the session', async () => {
    await register(stranger, words, 'device:throttled');
    await stranger.ended();
  });
  const late = await dashboard(recorder, 'late dashboard', host, { sub: 'hal' });
  await recorder.step('a dashboard that comes later', () => late.told('dashboard:device-status'));
  late.leave();
  await recorder.step('an operator disconnects the device', async () => {
    await operate(host, id, 'disconnect');
    await one.ended();
    await offline();
  });
  const back = await device(recorder, 'device', host);
  await recorder.step('it comes back', async () => {
    await register(back, words);
    await watcher.told('dashboard:device-status');
  });
  await recorder.step('an operator blocks the device', async () => {
    await operate(host, id, 'block');
    await back.ended();
    await offline();
  });
  const blocked = await device(recorder, 'device', host);
  await recorder.step('device:register of a blocked device', async () => {
    await register(blocked, words, 'device:auth-error');
    await blocked.ended();
  });
  await recorder.step('an operator unblocks the device', async () => {
    await operate(host, id, 'unblock');
    await watcher.told('dashboard:device-status');
  });
  const leaving = await device(recorder, 'device', host);
  await recorder.step('the device connects and leaves', async () => {
    await register(leaving, words);
    await watcher.told('dashboard:device-status');
    leaving.leave();
    await watcher.told('dashboard:device-status', 2);
  });
  recorder.close();
}

/** Registers that prove nothing. */
export async function refusals(recorder, host) {
  const words = { device_info: {}, fingerprint: 'f' };
  const refused = [
    ['nothing', undefined],
    ['no credentials', {}],
    ['an id alone', { ...words, device_id: 'device-3' }],
    ['a token that is none', { ...words, device_id: 'device-3', device_token: 'nonsense' }],
    ['a token of another device', { ...words, device_id: 'device-3', device_token: deviceToken(host, 'device-4') }],
    ['a token of a user', { ...words, device_token: hs256(host.secret, { sub: 'hal' }) }],
    ['a code without a fingerprint', { pairing_code: 'code-0' }],
  ];
  for (const [what, body] of refused) {
    await recorder.step(`device:register with ${what}`, async () => {
      const one = await device(recorder, 'device', host);
      await register(one, body, 'device:auth-error');
      await one.ended();
    });
  }
  recorder.close();
}

/** A device that is paired by a code. */
export async function pairing(recorder, host) {
  const watcher = await dashboard(recorder, 'dashboard', host, { sub: 'ida' });
  const words = { pairing_code: 'code-1', fingerprint: 'print-1', device_info: {} };
  const one = await device(recorder, 'device', host);
  await recorder.step('device:register with a pairing code', () => register(one, words));
  await recorder.step('the device is paired', async () => {
    await admin(host, '/v1/devices/pair', { pairing_code: 'code-1', owner: 'user:ida' });
    await one.told('device:paired');
    await watcher.told('dashboard:device-status');
  });
  await recorder.step('device:register with the code of a paired device', async () => {
    const again = await device(recorder, 'other', host);
    await register(again, words, 'device:auth-error');
    await again.ended();
  });
  recorder.close();
}

/** Moves and limits, on a host that settles at once and limits soon. */
export async function limits(recorder, host) {
  const words = registration(host, 'device-5');
  const sockets = [];
  for (let times = 1; times <= RATES.connects + 1; times += 1) {
    await recorder.step(`device:register on connection ${times} of a device`, async () => {
      const one = await device(recorder, `device ${times}`, host);
      sockets.push(one);
      const isTaken = times <= RATES.reconnects;
      await register(one, words, isTaken ? 'device:registered' : 'device:throttled');
      if (times > 1 && isTaken) await sockets.at(-2).ended();
      if (!isTaken) await one.ended();
    });
  }
  await recorder.step('a device that does not register in time', async () => (await device(recorder, 'silent', host)).ended());
  recorder.close();
}

/** A host without a secret to sign with. */
export async function keyless(recorder, host) {
  await recorder.step('device:register with a pairing code, on a host that can sign nothing', async () => {
    const one = await device(recorder, 'device', host);
    await register(one, { pairing_code: 'code-2', fingerprint: 'print-2' }, 'device:auth-error');
    await one.ended();
  });
  recorder.close();
}
