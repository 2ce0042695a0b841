// The text format of Prometheus, and the names in its queries.
import assert from 'node:assert/strict';

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LABEL = '([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\\\\n]|\\\\["\\\\n])*)"';
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (\\+Inf|-?[0-9.]+(?:e[+-]?[0-9]+)?)$`);
const KINDS = ['counter', 'gauge', 'histogram'];

/**
 * What a scrape gives: `{series, families}`: each series by its text to `{name, labels, value}`, each family by its name to
 * `{help, type}`. Fails for a line that Prometheus would not take, for a series that is there twice, and for one without HELP and TYPE.
 */
export function parsed(text) {
  const families = new Map();
  const series = new Map();
  for (const line of text.split('\n').filter(Boolean)) {
    const [, what, name, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (what === 'HELP') {
      assert.ok(!families.has(name), `explained twice: ${line}`);
      families.set(name, { help: rest });
    } else if (what === 'TYPE') {
      assert.ok(families.get(name)?.help && KINDS.includes(rest), `no help, or no such type: ${line}`);
      families.get(name).type = rest;
    } else {
      const sample = SAMPLE.exec(line);
      assert.ok(sample, `no sample: ${line}`);
      assert.ok(families.get(familyOf(sample[1], families))?.type, `not explained: ${line}`);
      const key = `${sample[1]}{${sample[2] ?? ''}}`;
      assert.ok(!series.has(key), `twice: ${line}`);
      const labels = Object.fromEntries([...(sample[2] ?? '').matchAll(new RegExp(LABEL, 'g'))].map(([, label, value]) => [label, value]));
      series.set(key, { name: sample[1], labels, value: Number(sample.at(-1).replace('+Inf', 'Infinity')) });
    }
  }
  return { series, families };
}

function familyOf(name, families) {
  const base = name.replace(/_(bucket|sum|count)$/, '');
  return families.get(base)?.type === 'histogram' ? base : name;
}

const WORDS = new Set(['and', 'or', 'unless', 'on', 'ignoring', 'by', 'without', 'group_left', 'group_right', 'bool', 'offset']);

/** What a query selects: `[{name, labels}]`, the labels being those that its matchers name. */
export function selected(expr) {
  const bare = expr.replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ').replace(/\[[^\]]*\]|\boffset\s+\w+/g, ' ');
  const found = [...bare.matchAll(new RegExp(`"(?:[^"\\\\]|\\\\.)*"|(${NAME})\\s*(\\(|\\{(?:[^}"]|"[^"]*")*\\})?`, 'g'))];
  return found
    .filter(([, name, after]) => name && after !== '(' && !WORDS.has(name))
    .map(([, name, matchers = '']) => ({ name, labels: [...matchers.matchAll(/([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label) }));
}
