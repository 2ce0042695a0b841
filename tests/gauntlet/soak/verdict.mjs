// What is judged once the load has ended: calls, messages, logs, processes and their memory.
import { isCallExplained, isWarningExplained } from './explained.mjs';
import { SPARED } from './troubles.mjs';

/** Of each kind of finding so many are printed. */
const SHOWN_MAX = 40;

/** From here on memory is flat: allocators and caches are warm, and each slot has its former generations. */
const WARM_UP_MS = 300_000;
/** A shorter run shows what memory does, and is not judged by it. */
const JUDGED_FROM_MINUTES = 15;

/** A replica may grow by so much: what an allocator scatters, and the former generations of four slots. */
const GROWTH_MAX_MIB = 5;
/** Policies are read and compiled on threads that come and go. */
const THREADS_GROWTH_MAX = 4;
const FILES_GROWTH_MAX = 4;

/** Judges a stand at rest; what is beyond its limit is printed with what went on meanwhile. */
export function judge(stage, stand) {
  const times = tally(stand.timeline.troubles, ({ kind }) => kind);
  stage.note(`--seed ${stage.options.seed}; troubles: ${times}`);
  judgeCalls(stage, stand);
  judgeMessages(stage, stand);
  judgeVisitors(stage, stand);
  judgeLogs(stage, stand);
  judgeEnds(stage, stand);
  judgeVitals(stage, stand);
}

function judgeCalls(stage, { calls, timeline }) {
  const made = calls.all;
  const quiet = made.filter(({ startedAt, endedAt }) => timeline.isQuiet(startedAt, endedAt));
  const bad = quiet.filter(({ outcome }) => outcome !== 'ok');
  stage.atLeast('calls away from all troubles', quiet.length, '', { ours: Math.ceil(made.length / 10) });
  stage.atMost('of those, that did not succeed', bad.length, '', { ours: 0 });
  const unexplained = made.filter((record) => !isCallExplained(timeline, record));
  stage.atMost(`calls whose end is not explained, of ${made.length}`, unexplained.length, '', { ours: 0 });
  for (const record of unexplained.slice(0, SHOWN_MAX)) console.error(shownCall(timeline, record));
  const foreign = made.filter(({ outcome, result, id }) => outcome === 'ok' && result?.call !== id);
  stage.atMost("calls with another call's result", foreign.length, '', { ours: 0 });
  stage.note(`ends: ${tally(made, ({ error, outcome }) => error ?? outcome)}`);
}

function shownCall(timeline, { id, method, outcome, error, startedAt, ms, path, party, isVisit }) {
  const meanwhile = timeline.during(startedAt, startedAt + ms).map((trouble) => timeline.line(trouble));
  const who = party?.name ?? (isVisit ? 'a visit' : 'a last look');
  const when = `${timeline.shown(startedAt)} (${new Date(performance.timeOrigin + startedAt).toISOString()})`;
  const end = `${error ?? outcome} after ${ms?.toFixed()} ms`;
  return `unexplained: call ${id} of ${who}, ${method}, ${when}: ${end}; path ${[...(path ?? [])].join()}; meanwhile ${meanwhile.join(' | ') || 'nothing'}`;
}

function judgeMessages(stage, { messages, timeline }) {
  const { judged, lost, repeated, gaps, disorders, refused, told } = messages.judged(timeline);
  const what = { 'did not come': lost, 'came more than once': repeated, 'came out of order to a follower': disorders };
  for (const [name, number] of Object.entries(what)) stage.atMost(`messages that ${name}, of ${judged}`, number, '', { ours: 0 });
  stage.atMost('gaps that followers were told of with Redis there', gaps, '', { ours: 0 });
  stage.atMost('broadcasts that were refused away from all troubles', refused, '', { ours: 0 });
  if (told.length > 0) console.error(told.join('\n'));
}

function judgeVisitors(stage, { visitors: { visits, failed, nonsense }, timeline }) {
  const inQuiet = (list) => list.filter(({ from, to }) => timeline.isQuiet(from, to));
  stage.atLeast('visits', visits, '', { ours: 1 });
  stage.atMost('visits that failed away from all troubles', inQuiet(failed).length, '', { ours: 0 });
  stage.atLeast('nonsense that was met as it should be', nonsense.answered, '', { ours: 1 });
  stage.atMost('nonsense that was not, away from all troubles', inQuiet(nonsense.wrong).length, '', { ours: 0 });
  const found = [...inQuiet(failed), ...inQuiet(nonsense.wrong)];
  for (const { from, why } of found.slice(0, SHOWN_MAX)) console.error(`${timeline.shown(from)}: ${why}`);
}

/** Of all processes that there were. */
function judgeLogs(stage, { fleet, timeline }) {
  const processes = fleet.replicas.flatMap(({ logs, options }) => logs.map((log) => ({ log, index: options.index })));
  const lines = processes.flatMap(({ log, index }) => log.map((line) => ({ line, index })));
  const faults = lines.filter(({ line }) => typeof line === 'string' || line.level === 'ERROR');
  stage.atMost('panics and errors in the logs', faults.length, '', { ours: 0 });
  const warnings = lines.filter(({ line }) => line.level === 'WARN');
  const unexplained = warnings.filter(({ line }) => !isWarningExplained(timeline, line));
  stage.atMost(`warnings that are not explained, of ${warnings.length}`, unexplained.length, '', { ours: 0 });
  for (const { line, index } of [...faults, ...unexplained].slice(0, SHOWN_MAX)) {
    console.error(`replica ${index}: ${typeof line === 'string' ? line : JSON.stringify(line)}`);
  }
}

function judgeEnds(stage, { supervisor: { ends, failures } }) {
  const asked = ends.filter(({ signal }) => signal === 'SIGTERM');
  const unasked = ends.filter(({ signal }) => !signal).length + failures.length;
  stage.atMost('processes that ended by themselves, or did not start', unasked, '', { ours: 0 });
  stage.all('processes that ended with 0 when they were asked to', asked.filter(({ code }) => code === 0).length, asked.length);
}

function judgeVitals(stage, { fleet, vitals }) {
  const { minutes } = stage.options;
  const isJudged = minutes >= JUDGED_FROM_MINUTES;
  const warmUpMs = Math.min(WARM_UP_MS, minutes * 15_000);
  const limit = (ours) => (isJudged ? { ours } : {});
  for (const index of fleet.replicas.keys()) {
    for (const { pid, looks, from, to, peak } of vitals.moves(index, warmUpMs)) {
      const who = `replica ${index}, process ${pid}, ${looks} looks`;
      stage.note(`${who}: ${from.mib.toFixed(1)} MiB, then ${to.mib.toFixed(1)} MiB, at most ${peak.mib.toFixed(1)} MiB`);
      stage.atMost(`${who}: growth`, to.mib - from.mib, ' MiB', limit(GROWTH_MAX_MIB));
      stage.atMost(`${who}: threads more`, to.threads - from.threads, '', limit(THREADS_GROWTH_MAX));
      stage.atMost(`${who}: files other than sockets more`, to.files - from.files, '', limit(FILES_GROWTH_MAX));
    }
  }
  if (isJudged) stage.atLeast(`lives of replica ${SPARED} that were long enough`, vitals.moves(SPARED, warmUpMs).length, '', { ours: 1 });
}

/** What there is and how often: `3 kill, 1 cut`. */
function tally(list, nameOf) {
  const times = new Map();
  for (const one of list) times.set(nameOf(one), (times.get(nameOf(one)) ?? 0) + 1);
  return [...times].map(([name, n]) => `${n} x ${name}`).join(', ');
}
