// Users for whom the hostile guest of the tests traps in the mode `trap-rarely`: those whose key 1,000 divides.
import { createHash } from 'node:crypto';

/** The first of them. */
export function unluckyUser() {
  for (let n = 0; ; n += 1) {
    const user = `unlucky-${n}`;
    const hash = createHash('sha256').update(`pointwork key v1 user\0${user}`).digest();
    if (hash.readBigUInt64BE() % 1000n === 0n) return user;
  }
}
