// Everything that users and clients see, against snapshots in surface/: help, settings, contract, events, routes, metrics.
// POINTWORK_UPDATE_SNAPSHOT=1 writes the snapshots anew.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startCluster, stopCluster } from './fleet/cluster.mjs';
import { DEFAULT_POLICIES, startHost } from './support/host.mjs';
import { closeSockets } from './support/sockets.mjs';
import * as calls from './surface/calls.mjs';
import * as capabilities from './surface/capabilities.mjs';
import { cliLines } from './surface/cli.mjs';
import * as cluster from './surface/cluster.mjs';
import * as devices from './surface/devices.mjs';
import { metricsLines, scrape } from './surface/metrics.mjs';
import { Recorder } from './surface/recorder.mjs';
import * as routes from './surface/routes.mjs';
import { settingsLines } from './surface/settings.mjs';
import { assertSnapshot } from './surface/snapshot.mjs';
import { witLines } from './surface/wit.mjs';
import { ed25519Pair, pem } from './support/tokens.mjs';

const { LIMITS } = calls;
const NEVER_MS = 600_000;
const TOKEN = 'a token of sixteen characters or more';
/** Of the hosts that replay broadcasts: half of it is how many are replayed. */
const BUFFER_PACKETS = 64;

/** On a busy machine, too, no decision is to be the native rule's. */
const DEADLINES = Object.fromEntries(Object.keys(DEFAULT_POLICIES).map((slot) => [`policy.${slot}.deadline_ms`, 1_000]));

/** Nothing happens to a device because the machine is slow. */
const PATIENT_DEVICES = { 'device.reconnect_warmup_ms': NEVER_MS, 'device.reconnect_hard_ceiling': 1_000, 'device.connect_rate_max': 1_000 };

/** Alone, with native rules: nothing waits, and limits are low. */
const promptHost = () => startHost({
  policies: {},
  config: '[[rpc.method]]\nmatch = "short:*"\ntimeout_ms = 200\n',
  settings: {
    'admin.token': TOKEN,
    'listen.connections_per_user_max': LIMITS.sockets,
    'rpc.grace_ms': 0,
    'rpc.calls_per_user_max': LIMITS.calls,
    'rpc.methods_per_socket_max': LIMITS.methods,
    'rpc.method_bytes_max': LIMITS.methodBytes,
    'rpc.params_bytes_max': LIMITS.paramsBytes,
    'device.settle_ms': 0,
    'device.register_timeout_ms': 3_000,
    'device.reconnect_warmup_ms': 0,
    'device.reconnect_window_ms': NEVER_MS,
    'device.reconnect_base_max': devices.RATES.reconnects,
    'device.connect_rate_max': devices.RATES.connects,
  },
});

/** Alone, with policies: calls wait, sessions stay with their holder. */
const patientHost = () => startHost({
  configs: { grace: { grace_ms: NEVER_MS }, presence: { resume_ms: NEVER_MS } },
  settings: {
    ...DEADLINES,
    ...PATIENT_DEVICES,
    'listen.max_buffer_packets': BUFFER_PACKETS,
    'rpc.grace_ms': NEVER_MS,
    'rpc.calls_per_user_max': 32,
    'rpc.waiting_per_method_max': LIMITS.waiting,
    'device.settle_ms': NEVER_MS,
    'device.offline_debounce_ms': 100,
  },
});

/** Alone, with a public key and no secret. */
async function keylessHost(folder) {
  const file = join(folder, 'key.pem');
  await writeFile(file, pem(ed25519Pair()));
  return startHost({ policies: {}, hs256: false, settings: { 'auth.public_key_file': file } });
}

/** Two replicas whose policies are the cluster's. */
const twoReplicas = () => startCluster(2, {
  settings: { ...DEADLINES, ...PATIENT_DEVICES, 'policy.source': 'cluster', 'listen.max_buffer_packets': BUFFER_PACKETS, 'rpc.calls_per_user_max': 32 },
  settingsOf: (index) => ({ 'drain.settle_ms': index === 0 ? cluster.SETTLE_MS : 0 }),
});

/** Runs scripts on a recorder of their own, and gives its lines. */
async function recorded(run) {
  const recorder = new Recorder();
  try {
    await run(recorder);
  } finally {
    recorder.close();
    closeSockets();
  }
  return recorder.lines;
}

test('the help of every command', async () => assertSnapshot('cli', await cliLines()));
test('the settings', async () => assertSnapshot('settings', await settingsLines()));
test('the contract of policies', async () => assertSnapshot('wit', await witLines()));

describe('on running hosts', () => {
  const scrapes = [];
  let folder;
  let prompt;
  let patient;
  let keyless;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pointwork-surface-'));
    [prompt, patient, keyless] = await Promise.all([promptHost(), patientHost(), keylessHost(folder)]);
  });
  after(async () => {
    for (const host of [prompt, patient, keyless]) await host?.stop();
    await rm(folder, { recursive: true });
  });

  test('routes that are asked for in vain', async () => {
    await assertSnapshot('routes-admin', await routes.adminMatrix(prompt, TOKEN));
    await assertSnapshot('routes-clients', await routes.clientsMatrix(prompt));
  });

  test('events of calls', async () => {
    const lines = await recorded(async (recorder) => {
      await calls.handshakes(recorder, prompt);
      await calls.registrations(recorder, prompt);
      await calls.calls(recorder, prompt);
      await calls.activity(recorder, prompt);
    });
    await assertSnapshot('events-calls', lines);
  });

  test('events of capabilities', async () => {
    const lines = await recorded(async (recorder) => {
      await capabilities.waiting(recorder, patient);
      await capabilities.resumption(recorder, patient);
      await capabilities.offsets(recorder, patient, BUFFER_PACKETS);
    });
    await assertSnapshot('events-capabilities', lines);
  });

  test('events of devices and dashboards', async () => {
    const lines = await recorded(async (recorder) => {
      await devices.dashboards(recorder, patient);
      await devices.session(recorder, patient);
      await devices.refusals(recorder, patient);
      await devices.pairing(recorder, patient);
      await devices.limits(recorder, prompt);
      await devices.keyless(recorder, keyless);
    });
    await assertSnapshot('events-devices', lines);
  });

  test('routes of operators', async () => {
    await assertSnapshot('routes-operators', await routes.operations(patient));
  });

  test('events and routes of a cluster', async () => {
    const fleet = await twoReplicas();
    try {
      const all = [await routes.rollouts(fleet.replicas[0])];
      const lines = await recorded(async (recorder) => {
        all.push(await cluster.withoutRedis(recorder, fleet));
        scrapes.push(...(await Promise.all(fleet.replicas.map(scrape))));
        all.push(await cluster.draining(recorder, fleet));
      });
      await assertSnapshot('events-cluster', lines);
      await assertSnapshot('routes-cluster', all.flat());
    } finally {
      await stopCluster(fleet, { mayLogErrors: true });
    }
  });

  test('metrics', async () => {
    scrapes.push(...(await Promise.all([prompt, patient, keyless].map(scrape))));
    await assertSnapshot('metrics', metricsLines(scrapes));
  });
});
