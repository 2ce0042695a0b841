// The help of every command of the program, found by following the help's own lists of commands.
import { pointwork } from '../support/host.mjs';
import { masked } from './shape.mjs';

/** The names under `Commands:`. */
function subcommands(help) {
  const [, list = ''] = /^Commands:\n((?: .*\n|\n(?= ))*)/m.exec(help) ?? [];
  return [...list.matchAll(/^  (\S+)/gm)].map(([, name]) => name).filter((name) => name !== 'help');
}

const section = (words, { code, stdout, stderr }) => [`$ pointwork ${words.join(' ')}`, ...(code ? [`exit code ${code}`] : []), masked(stdout + stderr)];

async function helpOf(words) {
  const long = await pointwork(...words, '--help');
  const short = await pointwork(...words, '-h');
  const lines = section([...words, '--help'], long);
  if (short.stdout !== long.stdout) lines.push(...section([...words, '-h'], short));
  for (const name of subcommands(long.stdout)) lines.push(...(await helpOf([...words, name])));
  return lines;
}

/** What is said to a command line that is wrong. */
const WRONG = [
  ['nonsense'],
  ['policy', 'nonsense'],
  ['exp', 'nonsense'],
  ['--nonsense'],
  ['token'],
  ['token', '--sub', 'ada'],
  ['policy', 'push'],
  ['policy', 'check', 'no-such-file.wasm'],
  ['policy', 'undo', '--slot', 'nonsense'],
  ['policy', 'list', '--admin-url', 'nonsense'],
  ['policy', 'list', '--admin-url', 'http://127.0.0.1:1'],
  ['policy', 'simulate', '--list-scenarios'],
];

/** The lines of the snapshot. */
export async function cliLines() {
  const lines = [...section(['--version'], await pointwork('--version')), ...(await helpOf([]))];
  for (const words of WRONG) lines.push(...section(words, await pointwork(...words)));
  return lines;
}
