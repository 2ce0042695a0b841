// Experiments as operators have them: by the command `pointwork exp`, against the admin API of a replica.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { BINARY } from '../support/host.mjs';
import { admin } from '../devices/devices.mjs';
import { PATIENCE_MS, until } from '../support/waiting.mjs';

const run = promisify(execFile);

/** Runs `pointwork exp …` against a replica; gives what it prints. Fails with its stderr. */
export async function exp(place, ...words) {
  const { PATH, HOME } = process.env;
  const { stdout } = await run(BINARY, ['exp', ...words, '--admin-url', place.admin], { env: { PATH, HOME } });
  return stdout;
}

/** What `pointwork exp …` says when it fails. */
export const failing = (place, ...words) => exp(place, ...words).then((said) => Promise.reject(new Error(said)), ({ stderr }) => stderr);

/** What a replica says of an experiment. */
export async function experiment(place, name) {
  const { status, body } = await admin(place, `/v1/experiments/${name}`);
  if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`);
  return body;
}

/** The report of an experiment, its figures. */
export const report = async (place, name) => JSON.parse(await exp(place, 'report', name, '--json'));

/** Waits until every replica has an experiment decide, or none of them. */
export const decides = (places, name, isDeciding = true) =>
  Promise.all(places.map((place) => until(
    async () => (await experiment(place, name)).here.decides === isDeciding,
    PATIENCE_MS,
    `${name} ${isDeciding ? '' : 'not '}to decide everywhere`,
  )));

/** Waits until an experiment is as `expected` says; gives it. */
export async function becomes(place, name, expected) {
  let last;
  const seen = async () => expected((last = await experiment(place, name))) && last;
  return until(seen, PATIENCE_MS, () => `${name}; it is ${JSON.stringify(last)}`);
}
