// All scenarios, in the order in which they run.
import broadcast from './broadcasts/broadcast.mjs';
import burst from './calls/burst.mjs';
import daemonDeath from './calls/daemon-death.mjs';
import deviceHalfOpen from './devices/device-half-open.mjs';
import deviceHolderKill from './devices/device-holder-kill.mjs';
import deviceRestart from './devices/device-restart.mjs';
import deviceStorm from './devices/device-storm.mjs';
import { briefDisconnect, longDisconnect } from './broadcasts/disconnects.mjs';
import experiment from './policies/experiment.mjs';
import fetchsocketsLatency from './calls/fetchsockets-latency.mjs';
import hungPod from './failures/hung-pod.mjs';
import inFlight from './calls/in-flight.mjs';
import missedEvents from './broadcasts/missed-events.mjs';
import mixedFleet from './failures/mixed-fleet.mjs';
import networkLoss from './failures/network-loss.mjs';
import offsets from './broadcasts/offsets.mjs';
import { podKillMidRpc, uninvolvedPodKill } from './failures/pod-kill.mjs';
import reconnectStorm from './failures/reconnect-storm.mjs';
import redisLinkLoss from './failures/redis-link-loss.mjs';
import { redisHang, redisRestart } from './failures/redis-outage.mjs';
import replay from './policies/replay.mjs';
import rollingRestart from './failures/rolling-restart.mjs';
import rollout from './policies/rollout.mjs';
import rpcResume from './calls/rpc-resume.mjs';
import soak from './soak.mjs';
import steadyState from './calls/steady-state.mjs';
import streamTrimLag from './broadcasts/stream-trim-lag.mjs';
import { ttlExpiry, ttlExpiryFast } from './calls/ttl-expiry.mjs';
import writerCut from './failures/writer-cut.mjs';

/**
 * `name`; `seed`: the field's own figure; `run(stage)`; `replicasMin`; `on`: the fleets where it makes sense, else all;
 * `isLong`: left out of a short run of all; `maxMs`: after how long it is taken to hang, or `maxMsOf(options)`; `mayLogErrors`: whether a replica has reason to log some.
 */
export const SCENARIOS = [
  steadyState,
  burst,
  broadcast,
  fetchsocketsLatency,
  missedEvents,
  offsets,
  daemonDeath,
  podKillMidRpc,
  uninvolvedPodKill,
  briefDisconnect,
  longDisconnect,
  rpcResume,
  inFlight,
  ttlExpiryFast,
  ttlExpiry,
  reconnectStorm,
  networkLoss,
  hungPod,
  rollingRestart,
  rollout,
  redisRestart,
  redisHang,
  redisLinkLoss,
  writerCut,
  streamTrimLag,
  mixedFleet,
  deviceStorm,
  replay,
  deviceHolderKill,
  deviceHalfOpen,
  deviceRestart,
  experiment,
  soak,
];
