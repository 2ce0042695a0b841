// All metrics of several hosts: type, help, and which labels and values of labels there are.
import { parsed } from '../support/exposition.mjs';
import { masked } from './shape.mjs';

/** Labels whose values say which build or policy it is. */
const OF_BUILD = new Set(['digest', 'version', 'contract']);

/** What a host gives to Prometheus. */
export const scrape = async ({ admin }) => parsed(await (await fetch(`${admin}/metrics`)).text());

/** The lines of the snapshot: what any of the scrapes has. */
export function metricsLines(scrapes) {
  const families = new Map();
  for (const { families: found } of scrapes) {
    for (const [name, { type, help }] of found) families.set(name, { type, help, labels: families.get(name)?.labels ?? new Map() });
  }
  const isHistogram = (name) => families.get(name)?.type === 'histogram';
  const familyOf = (name) => [name.replace(/_(bucket|sum|count)$/, '')].find(isHistogram) ?? name;
  for (const { name, labels } of scrapes.flatMap(({ series }) => [...series.values()])) {
    const known = families.get(familyOf(name)).labels;
    for (const [label, value] of Object.entries(labels)) {
      const shown = OF_BUILD.has(label) ? '<text>' : masked(value);
      known.set(label, (known.get(label) ?? new Set()).add(shown));
    }
  }
  return [...families].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([name, { type, help, labels }]) => [
    `${name} ${type}: ${help}`,
    ...[...labels].sort(([a], [b]) => (a < b ? -1 : 1)).map(([label, values]) => `  ${label}: ${listed(values)}`),
  ]);
}

/** Numbers, as of buckets, by size; texts in order. */
function listed(values) {
  const number = (text) => Number(text.replace('+Inf', 'Infinity'));
  return [...values].sort((a, b) => number(a) - number(b) || (a < b ? -1 : a > b ? 1 : 0)).join(', ');
}
