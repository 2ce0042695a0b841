// All settings with their defaults, bounds and variables. The host itself names them: it lists what there is when a setting is unknown.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BINARY } from '../support/host.mjs';
import { masked } from './shape.mjs';

/** Variables of the field's deployments that the host understands beside its own; nothing that it prints lists them. */
const FIELD_NAMES = [
  'REDIS_URL', 'RPC_RECONNECT_GRACE_MS', 'RPC_RECONNECT_POLL_MS', 'RPC_PRESENCE_POLL_MS', 'RPC_PRESENCE_FETCH_TIMEOUT_MS',
  'RPC_CALL_TIMEOUT_MS', 'SESSION_SETTLE_MS', 'OFFLINE_DEBOUNCE_MS', 'HEARTBEAT_TIMEOUT_MS', 'CONNECT_RATE_WINDOW_MS',
  'CONNECT_RATE_MAX', 'ANONYMOUS_CONNECT_RATE_MAX', 'QUARANTINE_TRIPS', 'QUARANTINE_MS', 'RECONNECT_WINDOW_MS',
  'RECONNECT_BASE_MAX', 'RECONNECT_HARD_CEILING', 'RECONNECT_WARMUP_MS', 'RECONNECT_BASE_BACKOFF_MS',
];

/** Values that few settings take: what is said to them tells type and bounds. */
const PROBES = ['', 'nonsense'];

/** Settings that contradict each other, or are none. */
const WRONG = [
  ['admin.address=0.0.0.0:9090'],
  ['admin.address=0.0.0.0:9090', 'admin.token=short'],
  ['policy.source=cluster'],
  ['listen.tls.cert=cert.pem'],
  ['admin.tls.key=key.pem'],
  ['admin.client_cert=cert.pem'],
  ['policy.target.config.some=1'],
  ['listen.address'],
  ['listen=1'],
];

/** Commands that run at once. */
const AT_ONCE = 4;

/** What `pointwork config` prints with these flags and variables: standard output, or the error. */
function config(flags = [], variables = {}) {
  const { PATH, HOME } = process.env;
  return new Promise((resolve) => {
    execFile(BINARY, ['config', ...flags], { env: { PATH, HOME, ...variables }, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ isTaken: !error, text: (error ? masked(stderr) : stdout).trim() });
    });
  });
}

const set = (assignments) => config(assignments.flatMap((one) => ['--set', one]));

/** The results of `work` for each item, in order. */
async function each(items, work) {
  const results = [];
  const next = items.entries();
  const worker = async () => {
    for (const [at, item] of next) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return results;
}

const known = (text) => /; there are: (.+?)$/m.exec(text)?.[1].split(', ');
const unknownKey = 'no_such_setting';

/** The keys below a table, or undefined for a setting that is none; `name` is empty for the whole. */
async function keysOf(name) {
  const { text } = await set([name ? `${name}.${unknownKey}=1` : `${unknownKey}.x=1`]);
  return text.includes(`unknown setting \`${name ? `${name}.` : ''}${unknownKey}\``) ? known(text) : undefined;
}

/** The names of all settings below a table. */
async function settingsBelow(name) {
  const keys = await keysOf(name);
  if (!keys) return [name];
  return (await each(keys, (key) => settingsBelow(name ? `${name}.${key}` : key))).flat();
}

/** The default of each setting, by name, as TOML says it. */
function defaultsOf(toml) {
  const defaults = new Map();
  let table = '';
  for (const line of toml.split('\n')) {
    const [, name] = /^\[+([\w.]+)\]+$/.exec(line) ?? [];
    const [, key, value] = /^(\w+) = (.*)$/.exec(line) ?? [];
    if (name) table = name;
    else if (key) defaults.set(`${table}.${key}`, value);
  }
  return defaults;
}

const variableOf = (setting) => `POINTWORK_${setting.toUpperCase().replaceAll('.', '_')}`;

/** A setting's default, what is said to odd values of its variable, and so that the variable is known. */
async function described(setting, defaults, before) {
  const lines = [`${setting} = ${defaults.get(setting) ?? 'unset'}`];
  for (const value of PROBES) {
    const { isTaken, text } = await config([], { [variableOf(setting)]: value });
    lines.push(`  ${JSON.stringify(value)}: ${isTaken ? (changes(before, text).join('; ') || 'no change') : text}`);
  }
  return lines;
}

/** The lines that are only in the later text. */
function changes(before, after) {
  const old = new Set(before.split('\n'));
  return after.split('\n').filter((line) => line !== '' && !old.has(line));
}

/** What a file can have beyond flags and variables: a list of tables. */
async function filesLines(folder) {
  const file = join(folder, 'pointwork.toml');
  const files = [
    '[[rpc.method]]\nno_such_setting = 1\n',
    '[[rpc.method]]\nmatch = "a:*"\n',
    '[[rpc.method]]\nmatch = "other"\ntimeout_ms = 1\n',
    '[[rpc.method]]\nmatch = "a:*"\ntimeout_ms = 0\n',
    '[[rpc.method]]\nmatch = "a:*"\ntimeout_ms = 5\n',
    '[listen]\nping_interval_ms = "5"\n',
    'nonsense',
  ];
  const defaults = (await config()).text;
  const lines = [];
  for (const text of files) {
    await writeFile(file, text);
    const { isTaken, text: said } = await config(['--config', file]);
    lines.push(JSON.stringify(text), `  ${isTaken ? changes(defaults, said).join('; ') : said}`);
  }
  const missing = await config([], { POINTWORK_CONFIG: join(folder, 'missing.toml') });
  return [...lines, 'POINTWORK_CONFIG of no file', `  ${missing.text}`];
}

/** The lines of the snapshot. */
export async function settingsLines() {
  const { text: defaults } = await config();
  const settings = await settingsBelow('');
  const all = await each(settings, (setting) => described(setting, defaultsOf(defaults), defaults));
  const field = await each(FIELD_NAMES, async (name) => `${name}: ${(await config([], { [name]: 'nonsense' })).text}`);
  const fieldValues = await each(FIELD_NAMES, async (name) => {
    const { text } = await config([], { [name]: name === 'REDIS_URL' ? 'redis://127.0.0.1:6379' : '17' });
    return `${name}: ${changes(defaults, text).join('; ')}`;
  });
  const wrong = await each(WRONG, async (assignments) => `${assignments.join(' ')}: ${(await set(assignments)).text}`);
  const folder = await mkdtemp(join(tmpdir(), 'pointwork-settings-'));
  try {
    return [
      '# pointwork config, with nothing set', defaults,
      '', `# sections: ${(await keysOf('')).join(', ')}`,
      '', '# Each setting with its default, and what is said to odd values of its variable', ...all.flat(),
      '', '# Variables of other deployments, with the value nonsense', ...field,
      '', '# The same with a good value', ...fieldValues,
      '', '# Settings that contradict each other, or are none', ...wrong,
      '', '# Files', ...(await filesLines(folder)),
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}
