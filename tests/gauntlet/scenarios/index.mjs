// All scenarios, in the order in which they run.
import broadcast from './broadcast.mjs';
import burst from './burst.mjs';
import daemonDeath from './daemon-death.mjs';
import deviceHalfOpen from './device-half-open.mjs';
import deviceHolderKill from './device-holder-kill.mjs';
import deviceRestart from './device-restart.mjs';
import deviceStorm from './device-storm.mjs';
import { briefDisconnect, longDisconnect } from './disconnects.mjs';
import experiment from './experiment.mjs';
import fetchsocketsLatency from './fetchsockets-latency.mjs';
import hungPod from './hung-pod.mjs';
import inFlight from './in-flight.mjs';
import missedEvents from './missed-events.mjs';
import mixedFleet from './mixed-fleet.mjs';
import networkLoss from './network-loss.mjs';
import offsets from './offsets.mjs';
import { podKillMidRpc, uninvolvedPodKill } from './pod-kill.mjs';
import reconnectStorm from './reconnect-storm.mjs';
import redisLinkLoss from './redis-link-loss.mjs';
import { redisHang, redisRestart } from './redis-outage.mjs';
import replay from './replay.mjs';
import rollingRestart from './rolling-restart.mjs';
import rollout from './rollout.mjs';
import rpcResume from './rpc-resume.mjs';
import soak from './soak.mjs';
import steadyState from './steady-state.mjs';
import streamTrimLag from './stream-trim-lag.mjs';
import { ttlExpiry, ttlExpiryFast } from './ttl-expiry.mjs';
import writerCut from './writer-cut.mjs';

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
