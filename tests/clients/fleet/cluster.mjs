// Replicas behind one Redis, for the tests of what holds between them. They are the gauntlet's.
import assert from 'node:assert/strict';
import { Fleet } from './fleet.mjs';
import { closeSockets } from '../support/sockets.mjs';

/** Starts so many replicas; options as of `Fleet.start`. */
export const startCluster = (replicas, options) => Fleet.start(Array.from({ length: replicas }, () => 'pointwork'), options);

/**
 * Ends it in order and fails the test for any error in a log, or a replica that ended by itself. `mayLogErrors`: errors are to be
 * expected, panics are not.
 */
export async function stopCluster(fleet, { mayLogErrors = false } = {}) {
  closeSockets();
  const crashed = fleet.replicas.filter(({ hasCrashed }) => hasCrashed).map(({ options }) => options.index);
  await fleet.close();
  const faults = fleet.replicas.flatMap((replica) => replica.faults).filter((line) => !(mayLogErrors && line.startsWith('{')));
  assert.deepEqual({ crashed, faults }, { crashed: [], faults: [] });
}

/**
 * What a metric of a replica says, over all labels that hold what `labels` does; 0 before any of those is first counted. A value below
 * zero, which a fault of the host would be, adds to the sum and takes nothing from it. Fails for a name that has no sample at all.
 */
export async function counted(replica, name, labels = '') {
  const { text } = await replica.request('/metrics');
  const samples = [...text.matchAll(new RegExp(`^${name}(?:\\{([^}]*)\\})? (-?[\\d.]+)$`, 'gm'))];
  assert.ok(samples.length > 0, `no metric is called ${name}`);
  return samples.filter(([, found = '']) => found.includes(labels)).reduce((sum, [, , value]) => sum + Math.abs(Number(value)), 0);
}
