// Waiting with a bound: for a promise, or for a condition. No test waits for time to pass.
import { setTimeout as delay } from 'node:timers/promises';

/** The bound where a test names none: far beyond what anything takes on a busy machine. */
export const PATIENCE_MS = 20_000;

/** The promise's result, or an error that names what did not come. */
export async function within(promise, ms = PATIENCE_MS, what = 'something') {
  const stop = new AbortController();
  const late = delay(ms, undefined, { signal: stop.signal }).then(() => {
    throw new Error(`waited ${ms} ms in vain for ${typeof what === 'function' ? what() : what}`);
  });
  late.catch(() => {}); // aborted below
  try {
    return await Promise.race([promise, late]);
  } finally {
    stop.abort();
  }
}

/** Asks until the answer is truthy, and gives it. */
export async function until(condition, ms = PATIENCE_MS, what = 'a condition') {
  const deadline = performance.now() + ms;
  for (;;) {
    const answer = await condition();
    if (answer) return answer;
    if (performance.now() > deadline) {
      throw new Error(`waited ${ms} ms in vain for ${typeof what === 'function' ? what() : what}`);
    }
    await delay(5);
  }
}
