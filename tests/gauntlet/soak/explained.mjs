// What may go wrong because of which trouble: errors of calls, and lines of logs. Anything else is unexplained.

const DISCONNECTED = 'RPC target disconnected';
const UNREACHABLE = 'RPC target unreachable';
const UNAVAILABLE = 'RPC method not available';

/** What a call may be told, by the trouble that its path was touched by. */
const CALL_ERRORS = {
  // Its daemon went in the middle of the work.
  kill: [DISCONNECTED, UNREACHABLE],
  cut: [DISCONNECTED],
  // Calls in flight end first.
  term: [],
  // A replica that was stopped holds its own absence against nobody.
  stop: [],
  'redis-restart': [UNREACHABLE],
  'redis-stop': [UNREACHABLE],
  swap: [],
  broken: [],
  trap: [],
};

/** A daemon that polls stays with its replica, and is away for as long as that one's restart takes: on a busy machine longer than the grace. */
const POLLING_ERRORS = { kill: [UNAVAILABLE], term: [UNAVAILABLE] };

/** A visitor's daemon does not come back: its caller is told so after the grace. */
const VISIT_ERRORS = [DISCONNECTED, UNREACHABLE, UNAVAILABLE];

/** Troubles by which a caller's own connection can end. */
const LOSES_CONNECTIONS = ['kill', 'term', 'cut'];

const REDIS = ['redis-restart', 'redis-stop'];
/** A replica that was stopped finds its timers late, and Redis silent. */
const REDIS_OR_STOP = [...REDIS, 'stop'];

/**
 * Warnings that are known: the beginning of their message, and by which troubles they are explained; 'input': by what clients send.
 */
const WARNINGS = [
  ['no connection to Redis', REDIS_OR_STOP],
  ['Redis does not do what it is asked', REDIS_OR_STOP],
  ['channels are not subscribed yet', REDIS_OR_STOP],
  ['the link to the cluster is down', REDIS_OR_STOP],
  ['Redis does not keep the records of devices', REDIS_OR_STOP],
  ['experiments cannot be read', REDIS_OR_STOP],
  ['other replicas were not told', REDIS_OR_STOP],
  ['a peer was not told', REDIS_OR_STOP],
  ['the stream is not the one that was read', ['redis-restart']],
  // Three daemons of one user have the same method.
  ['several sockets registered one method', ['input']],
  ['policy not loaded', ['broken', 'trap']],
  ['decision failed', ['trap']],
  ['policy given up', ['trap']],
  ['policy quarantined', ['trap']],
  ['a push failed', ['broken']],
  ['a policy of the cluster cannot be prepared here', ['broken']],
  ['Redis has forgotten what serves, and is told', ['redis-restart']],
  ['what the cluster says of policies cannot be read', REDIS_OR_STOP],
];

/** A line can come this long after all seemed whole again. */
const LATE_MS = 3_000;

/** Whether what became of a call is explained; `timeline` as of the run. */
export function isCallExplained(timeline, { outcome, error, startedAt, endedAt, path, party, isVisit }) {
  if (outcome === 'ok') return true;
  const touching = timeline.during(startedAt, endedAt).filter((trouble) => touches(trouble, path, party));
  if (outcome === 'lost') {
    return touching.some(({ kind }) => LOSES_CONNECTIONS.includes(kind) || (kind === 'stop' && (isVisit || party?.isPolling)));
  }
  if (outcome !== 'failed') return false;
  const polling = (kind) => (party?.isPolling && POLLING_ERRORS[kind]) || [];
  return touching.some(({ kind }) => (isVisit ? VISIT_ERRORS : [...CALL_ERRORS[kind], ...polling(kind)]).includes(error));
}

/** Whether a trouble has to do with a call that went between these replicas, the caller's first. */
function touches({ kind, replica, doors }, path, party) {
  if (!path) return true;
  if (kind === 'stop' && !party?.isPolling) return [...path][0] === replica;
  if (replica !== undefined) return path.has(replica);
  if (kind === 'cut') return party ? party.doors.some((door) => doors?.has(door)) : true;
  return REDIS.includes(kind) ? path.size > 1 : true;
}

/** Whether a warning is explained by what was going on. */
export function isWarningExplained(timeline, { message, timestamp }) {
  const [, by] = WARNINGS.find(([beginning]) => message.startsWith(beginning)) ?? [];
  if (!by) return false;
  if (by.includes('input')) return true;
  const at = Date.parse(timestamp) - performance.timeOrigin;
  return timeline.during(at - LATE_MS, at).some(({ kind }) => by.includes(kind));
}
