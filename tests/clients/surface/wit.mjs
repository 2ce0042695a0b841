// The names of the policies' contract: packages, interfaces, functions, types, fields and cases, without comments.
import { readdir, readFile } from 'node:fs/promises';

const FOLDER = new URL('../../../wit/', import.meta.url);
const TOKEN = /->|[\w-]+(?:[:.@/][\w.-]+)*|\S/g;

/** The tokens of a file, without comments. */
const tokensOf = (text) => text.replace(/\/\/.*$/gm, '').replace(/\/\*[^]*?\*\//g, '').match(TOKEN) ?? [];

/** One statement a line, indented by its depth; what stands between two separators is a statement. */
function statements(tokens) {
  const lines = [];
  let depth = 0;
  let words = [];
  let nesting = 0;
  const end = () => {
    if (words.length > 0) lines.push('  '.repeat(depth) + joined(words));
    words = [];
  };
  for (const token of tokens) {
    if ('(<'.includes(token)) nesting += 1;
    if (')>'.includes(token)) nesting -= 1;
    if (token === '{') {
      end();
      depth += 1;
    } else if (token === '}') {
      end();
      depth -= 1;
    } else if (token === ';' || (token === ',' && nesting === 0)) end();
    else words.push(token);
  }
  end();
  return lines;
}

const joined = (words) => words.join(' ').replace(/ ([:,.)>])/g, '$1').replace(/([(<]) /g, '$1').replace(/ ([(<])/g, '$1');

/** The lines of the snapshot. */
export async function witLines() {
  const files = (await readdir(FOLDER, { recursive: true })).filter((name) => name.endsWith('.wit')).sort();
  const lines = await Promise.all(files.map(async (name) => {
    const text = await readFile(new URL(name, FOLDER), 'utf8');
    return [`# ${name}`, ...statements(tokensOf(text))];
  }));
  return lines.flat();
}
