// Writes a value as its shape: fixed texts and booleans as they are, whatever differs from run to run as its type.

const DIGIT = '[0-9a-f]';
/** What a text holds that differs from run to run, and what is written instead; the first that matches counts. */
const VOLATILE = [
  [/eyJ[\w-]+\.[\w-]+\.[\w-]*/g, '<token>'],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'],
  [/\b\d{10,}-\d+\b/g, '<offset>'],
  [new RegExp(`\\b${DIGIT}{8}(?:-${DIGIT}{4}){3}-${DIGIT}{12}\\b`, 'g'), '<uuid>'],
  [new RegExp(`\\b${DIGIT}{64}\\b`, 'g'), '<digest>'],
  [new RegExp(`\\b${DIGIT}{16}-\\d+`, 'g'), '<call id>'],
  [new RegExp(`\\b${DIGIT}{16}/\\d+`, 'g'), '<decision>'],
  [new RegExp(`\\b${DIGIT}{16}\\b`, 'g'), '<uid>'],
  [new RegExp(`\\b(?=${DIGIT}*\\d)${DIGIT}{12}\\b`, 'g'), '<short digest>'],
  [/127\.0\.0\.1:\d+/g, '127.0.0.1:<port>'],
  [/xhr (?:post|poll) error/g, 'xhr error'],
  [/(?<=Redis is away: )[^;]+/g, '<reason>'],
  [/\/tmp\/[\w./-]+/g, '<file>'],
];
/** Keys whose texts are ids, whatever they look like. */
const IDS = new Set(['socket', 'sid', 'replica', 'processId', 'callId', 'device_token', 'mac']);

/** Longer texts are the scripts' own, made to be too long. */
const LONG = 1_000;

/** A text without what differs from run to run. */
export const masked = (text) => VOLATILE.reduce((all, [pattern, type]) => all.replace(pattern, type), text);

/** A JSON value as a text on one line, keys in order. */
export function shape(value, key) {
  if (value === undefined) return 'undefined';
  if (value === null || typeof value === 'boolean') return String(value);
  if (key === 'deadlineMs' && value === 0) return '0'; // that a call is held no more
  if (typeof value === 'number' || typeof value === 'bigint') return '<number>';
  if (typeof value === 'string' && value.length > LONG) return '<long text>';
  if (typeof value === 'string') return IDS.has(key) ? '<id>' : JSON.stringify(masked(value));
  if (Buffer.isBuffer(value) || value instanceof ArrayBuffer) return '<binary>';
  if (typeof value === 'function') return '<acknowledgement>';
  if (Array.isArray(value)) return `[${runs(value.map((item) => shape(item))).join(', ')}]`;
  const fields = Object.entries(value).map(([name, field]) => `${masked(name)}: ${shape(field, name)}`);
  return `{${[...new Set(fields)].sort().join(', ')}}`;
}

/** Equal neighbours once. */
const runs = (shapes) => shapes.filter((one, at) => one !== shapes[at - 1]);

/** A JSON value as lines, one a leaf: `path: shape`; items of a list are merged into `[]`. */
export function leaves(value, path = '', key = '') {
  if (Array.isArray(value) && value.length > 0) return unique(value.flatMap((item) => leaves(item, `${path}[]`)));
  if (value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0) {
    return unique(Object.entries(value).flatMap(([name, field]) => leaves(field, path ? `${path}.${masked(name)}` : masked(name), name)));
  }
  return [`${path || 'body'}: ${shape(value, key)}`];
}

const unique = (lines) => [...new Set(lines)].sort();
