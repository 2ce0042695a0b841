// Sends HTTP requests, and writes their answers as lines: status, headers, and the shape of the body.
import { once } from 'node:events';
import { request } from 'node:http';
import { PATIENCE_MS, within } from '../support/waiting.mjs';
import { leaves, masked } from './shape.mjs';

/** Headers that say nothing of the host, or differ from run to run. */
const UNSEEN = new Set(['date', 'content-length', 'connection', 'keep-alive', 'transfer-encoding', 'sec-websocket-accept']);

/** Sends exactly this: `{status, headers, body}`, the body as bytes. */
export async function send(base, { method = 'GET', path, headers = {}, body }) {
  const { hostname, port, host } = new URL(base);
  const sent = request({ hostname, port, path, method, headers: { host, ...headers }, agent: false });
  sent.end(body);
  const [response] = await within(Promise.race([once(sent, 'response'), once(sent, 'upgrade')]), PATIENCE_MS, `${method} ${path}`);
  const { statusCode: status } = response;
  if (status === 101) {
    response.destroy();
    return { status, headers: response.headers, body: Buffer.alloc(0) };
  }
  const chunks = await within(response.toArray(), PATIENCE_MS, `the body of ${method} ${path}`);
  return { status, headers: response.headers, body: Buffer.concat(chunks) };
}

/** JSON to send. */
export const json = (value) => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) });

/** What is sent, on one line. */
function shown({ method = 'GET', path, headers = {}, body }) {
  const said = Object.entries(headers).map(([name, value]) => ` [${name}: ${value}]`).join('');
  const sent = body === undefined ? '' : Buffer.isBuffer(body) ? ' <module>' : body.length > 200 ? ' <long body>' : ` ${body}`;
  return masked(`${method} ${path}${said}${sent}`);
}

/** A report for people: figures and widths differ from run to run. */
const figureless = (text) => text.replace(/[-+]?\d[\d.,]*/g, '#').replace(/ +/g, ' ');

function bodyLines({ headers, body }) {
  const type = headers['content-type'] ?? '';
  if (body.length === 0) return [];
  if (type.startsWith('application/json')) {
    const value = JSON.parse(body);
    if (typeof value?.text === 'string') value.text = figureless(value.text);
    return leaves(value);
  }
  const text = body.toString();
  if (type === 'application/x-ndjson') return leaves(text.split('\n').filter(Boolean).map((line) => JSON.parse(line)));
  if (type === 'application/wasm') return ['<module>'];
  if (text.startsWith('# HELP')) return ['<metrics>'];
  return masked(text.replace(/"sid":"[^"]+"/, '"sid":"<id>"').replace(/^\d+:/, '')).split('\n');
}

/** The lines of an answer. */
export function answerLines(answer) {
  const { status, headers } = answer;
  const seen = Object.entries(headers).filter(([name]) => !UNSEEN.has(name)).sort();
  return [`  ${status}`, ...seen.map(([name, value]) => `  ${name}: ${masked(String(value))}`), ...bodyLines(answer).map((line) => `    ${line}`)];
}

/** Sends requests to one listener and keeps the lines. */
export class Requests {
  lines = [];
  #base;

  constructor(base) {
    this.#base = base;
  }

  title(text) {
    this.lines.push('', `# ${text}`);
  }

  /** Sends one and records it; gives its answer with `json`, the body parsed. */
  async send(what) {
    const answer = await send(this.#base, what);
    this.lines.push(shown(what), ...answerLines(answer));
    const isJson = answer.headers['content-type']?.startsWith('application/json');
    return { ...answer, json: isJson && answer.body.length > 0 ? JSON.parse(answer.body) : undefined };
  }

  get = (path, headers) => this.send({ path, headers });
  post = (path, value, headers = {}) => {
    const sent = value === undefined ? {} : json(value);
    return this.send({ method: 'POST', path, ...sent, headers: { ...sent.headers, ...headers } });
  };
}
