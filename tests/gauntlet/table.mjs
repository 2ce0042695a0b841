// The figures of a run, as a table for people and as JSON for programs.

const HEAD = ['scenario', 'seed', 'what', 'measured', 'limit', ''];

/** `results`: `{name, seed, seconds, figures, error?, skipped?}` of each scenario. */
export function table(results) {
  const rows = results.flatMap(rowsOf);
  const widths = HEAD.map((head, column) => Math.max(...[HEAD, ...rows].map((row) => row[column].length)));
  const line = (row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd();
  return [line(HEAD), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

/** Whether every figure is within its limit and nothing broke. */
export const passed = ({ figures, error }) => !error && figures.every((figure) => figure.passed);

function rowsOf({ name, seed, seconds, figures, error, skipped }) {
  if (skipped) return [[name, seed, skipped, '', '', 'skipped']];
  const rows = figures.map(({ what, shown, limit, passed }) => ['', '', what, shown, limit, passed ? (limit ? 'pass' : '') : 'FAIL']);
  if (error) rows.push(['', '', error.split('\n')[0], '', '', 'FAIL']);
  rows.push(['', '', `(${seconds.toFixed(1)} s)`, '', '', '']);
  rows[0][0] = name;
  rows[0][1] = seed;
  return rows;
}
