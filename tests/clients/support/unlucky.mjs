// Whom the guests of the tests trap for in the mode `trap-rarely`: those whose key 1,000 divides.
import { createHash } from 'node:crypto';

/** The first of a kind, `user` or `device`. */
export function unlucky(kind) {
  for (let n = 0; ; n += 1) {
    const id = `unlucky-${n}`;
    const hash = createHash('sha256').update(`pointwork key v1 ${kind}\0${id}`).digest();
    if (hash.readBigUInt64BE() % 1000n === 0n) return id;
  }
}
