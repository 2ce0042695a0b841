// Compares a text with the snapshot file of its name, or rewrites the file when POINTWORK_UPDATE_SNAPSHOT is 1.
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';

const UPDATES = process.env.POINTWORK_UPDATE_SNAPSHOT === '1';
/** Unchanged lines that a difference shows before and after a changed one. */
const CONTEXT = 3;
/** Lines of a difference that are shown. */
const SHOWN_MAX = 200;

/** Fails with a difference by lines when `lines` are not those of `<name>.snapshot.txt`. */
export async function assertSnapshot(name, lines) {
  const file = new URL(`${name}.snapshot.txt`, import.meta.url);
  const actual = lines.flatMap((line) => line.split('\n')).map((line) => line.trimEnd());
  if (UPDATES) return writeFile(file, `${actual.join('\n')}\n`);
  const expected = (await readFile(file, 'utf8')).replace(/\n$/, '').split('\n');
  const changed = difference(expected, actual);
  if (changed.length === 0) return;
  const shown = changed.slice(0, SHOWN_MAX).join('\n');
  assert.fail(
    `surface/${name}.snapshot.txt differs from what the host shows (- snapshot, + host):\n${shown}\n` +
      'Users and clients see this. If the change is intended, run the test with POINTWORK_UPDATE_SNAPSHOT=1.',
  );
}

/** The changed lines of two texts with some context; empty when the texts are equal. */
export function difference(before, after) {
  const marked = [];
  let [i, j] = [0, 0];
  for (const [a, b] of [...common(before, after), [before.length, after.length]]) {
    while (i < a) marked.push(`-${before[i++]}`);
    while (j < b) marked.push(`+${after[j++]}`);
    if (a < before.length) marked.push(` ${before[i++]}`), (j += 1);
  }
  const isNear = (at) => marked.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => !line.startsWith(' '));
  return marked.flatMap((line, at) => (isNear(at) ? [line] : isNear(at - 1) ? ['...'] : []));
}

/** The pairs of indexes of a longest common subsequence. */
function common(before, after) {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = before[i] === after[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const pairs = [];
  for (let [i, j] = [0, 0]; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}
