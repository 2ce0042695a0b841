// A replica with thousands of devices is restarted, in order and by SIGKILL: all of them are back within seconds, and none is held off.
import { readFile } from 'node:fs/promises';
import { counted } from '../../../clients/fleet/cluster.mjs';
import { admin, DeviceSocket, registration } from '../../../clients/devices/devices.mjs';
import { until } from '../../../clients/support/waiting.mjs';
import { newUser } from '../../clients.mjs';

const AT_ONCE = 100;
const PAGE = 500;

/** Within seconds, however often it was refused meanwhile. */
const RECONNECTION = { reconnection: true, reconnectionDelay: 200, reconnectionDelayMax: 1_000 };

const RESTARTS = {
  SIGTERM: (replica) => replica.restart(),
  SIGKILL: async (replica) => {
    await replica.kill();
    await replica.start();
  },
};

export default {
  name: 'device-restart',
  seed: '—',
  on: ['pointwork'],
  replicasMin: 1,
  async run(stage) {
    const number = stage.isShort ? 300 : 2_000;
    const { replicas: [replica] } = await stage.fleet({}, ['pointwork']);
    const sockets = [];
    while (sockets.length < number) {
      const batch = Array.from({ length: Math.min(AT_ONCE, number - sockets.length) }, () =>
        DeviceSocket.register(replica, registration(replica, newUser('device')), RECONNECTION));
      await Promise.all(batch.map((socket) => socket.registered()));
      sockets.push(...batch);
    }
    const times = (socket) => socket.all('device:registered').length;
    let restarts = 0;
    for (const [how, restart] of Object.entries(RESTARTS)) {
      restarts += 1;
      const isBack = (socket) => socket.isOpen && times(socket) > restarts;
      await restart(replica);
      const readyAt = performance.now();
      const shown = () => `all to be back; of ${number} are back ${sockets.filter(isBack).length}`;
      await until(() => sockets.every(isBack), 30_000, shown);
      stage.atMost(`${how}: all ${number} back after`, performance.now() - readyAt, ' ms', { ours: 5_000 });
      stage.atMost(`${how}: resident memory`, await residentMib(replica), ' MiB', {});
      const quarantined = await counted(replica, 'pointwork_device_sessions_total', 'reason="quarantined"');
      stage.atMost(`${how}: registers met by a quarantine`, quarantined, '', { ours: 0 });
      await judgeRecords(stage, how, replica, number);
    }
    const held = sockets.filter((socket) => socket.all('device:throttled').length > 0);
    stage.atMost('devices that were told to come back later', held.length, '', { ours: 0 });
    const refused = sockets.filter((socket) => socket.all('device:auth-error').length > 0);
    stage.atMost('devices that were not let in', refused.length, '', { ours: 0 });
  },
};

/** What the admin API says of all of them. */
async function judgeRecords(stage, how, replica, number) {
  const records = [];
  for (let after = ''; records.length <= number; ) {
    const { body } = await admin(replica, `/v1/devices?limit=${PAGE}${after && `&after=${encodeURIComponent(after)}`}`);
    records.push(...body.devices);
    if (!body.next) break;
    after = body.next;
  }
  const held = records.filter(({ status, holder }) => status === 'online' && holder);
  stage.all(`${how}: records that say online, with a holder`, held.length, number);
  const flips = records.reduce((sum, record) => sum + record.flips, 0);
  // Whoever is killed says nothing: those who are back before its death is known take the session from a socket that may live.
  stage.atMost(`${how}: flips`, flips, '', how === 'SIGTERM' ? { ours: 0 } : {});
}

async function residentMib(replica) {
  const status = await readFile(`/proc/${replica.pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]) / 1_024;
}
