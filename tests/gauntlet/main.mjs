// The gauntlet: real replicas behind a real Redis, real clients, and everything that goes wrong in the field.
//
//     node main.mjs [scenario ...] [--replicas N] [--with-node | --all-node] [--short] [--minutes N] [--seed N] [--json FILE]
import { randomInt } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { within } from '../clients/support/waiting.mjs';
import { closeSockets } from './clients.mjs';
import { SCENARIOS } from './scenarios/index.mjs';
import { Stage } from './stage.mjs';
import { passed, table } from './table.mjs';

/** Beyond what any scenario takes that does not name its own bound: one that hangs fails. */
const SCENARIO_MAX_MS = 300_000;

const REPLICAS_MAX = 16;

/** How long `soak` may be. */
const MINUTES_MAX = 24 * 60;

const SEED_MAX = 2 ** 32 - 1;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    replicas: { type: 'string', default: '3' },
    'with-node': { type: 'boolean', default: false },
    'all-node': { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: String(randomInt(SEED_MAX)) },
    json: { type: 'string' },
  },
});
const fleet = values['all-node'] ? 'node' : values['with-node'] ? 'mixed' : 'pointwork';
const options = { minutes: wholeOf('minutes', 1, MINUTES_MAX), seed: wholeOf('seed', 0, SEED_MAX) };
const kinds = kindsOf(fleet, Number(values.replicas));

const results = [];
for (const scenario of chosen()) {
  const why = unfit(scenario);
  const result = { name: scenario.name, seed: scenario.seed, ...(why ? { skipped: why, figures: [] } : await played(scenario)) };
  results.push(result);
  console.log(`${scenario.name}: ${why ? 'skipped' : passed(result) ? `passed, ${result.seconds.toFixed(1)} s` : 'FAILED'}`);
}
console.log(`\n== ${kinds.length} replicas (${fleet})${values.short ? ', short' : ''}\n${table(results)}`);
if (values.json) await writeFile(values.json, `${JSON.stringify({ fleet, kinds, short: values.short, results }, null, 2)}\n`);
const failures = results.filter((result) => !passed(result)).map(({ name }) => name);
console.log(failures.length === 0 ? 'all passed' : `FAILED: ${failures.join(', ')}`);
process.exit(failures.length === 0 ? 0 : 1);

/** One scenario, on a fleet of its own that is gone afterwards. */
async function played(scenario) {
  const stage = new Stage(kinds, values.short, options);
  const started = performance.now();
  const seconds = () => (performance.now() - started) / 1_000;
  try {
    const run = scenario.run(stage);
    run.catch(() => {}); // also told below, unless it is too late
    await within(run, scenario.maxMsOf?.(options) ?? scenario.maxMs ?? SCENARIO_MAX_MS, `the end of ${scenario.name}`);
    stage.judgeBook();
    stage.judgeReplicas(scenario.mayLogErrors);
    if (stage.figures.some((figure) => !figure.passed)) {
      stage.noteHoldUps();
      console.error(stage.shownLogs());
    }
    return { figures: stage.figures, seconds: seconds() };
  } catch (error) {
    console.error(`${error.stack}\n${stage.shownLogs()}`);
    return { figures: stage.figures, seconds: seconds(), error: error.message };
  } finally {
    closeSockets();
    await stage.close();
  }
}

function chosen() {
  const known = new Map(SCENARIOS.map((scenario) => [scenario.name, scenario]));
  const unknown = positionals.filter((name) => !known.has(name));
  if (unknown.length > 0) usage(`no scenario ${unknown.join(', ')}; there are ${[...known.keys()].join(', ')}`);
  const named = positionals.map((name) => known.get(name));
  for (const scenario of named) {
    const why = unfit(scenario);
    if (why) usage(`${scenario.name}: ${why}`);
  }
  if (named.length > 0) return named;
  return SCENARIOS.filter(({ isLong }) => !(values.short && isLong));
}

/** Why a scenario cannot be played on this fleet, if so. */
function unfit({ on, replicasMin }) {
  if (on && !on.includes(fleet)) return `not for a fleet that is ${fleet}`;
  return kinds.length < replicasMin ? `needs ${replicasMin} replicas` : undefined;
}

/** An option that is a whole number within bounds. */
function wholeOf(name, min, max) {
  const number = Number(values[name]);
  if (!Number.isInteger(number) || number < min || number > max) usage(`--${name} must be ${min} to ${max}`);
  return number;
}

/** A Node replica among others is the second: that is where most scenarios have their daemon. */
function kindsOf(fleet, n) {
  if (!Number.isInteger(n) || n < 1 || n > REPLICAS_MAX) usage(`--replicas must be 1 to ${REPLICAS_MAX}`);
  if (values['with-node'] && values['all-node']) usage('--with-node and --all-node exclude each other');
  if (fleet === 'mixed' && n < 2) usage('--with-node needs 2 replicas');
  return Array.from({ length: n }, (_, i) => (fleet === 'node' || (fleet === 'mixed' && i === 1) ? 'node' : 'pointwork'));
}

function usage(why) {
  console.error(why);
  process.exit(2);
}
