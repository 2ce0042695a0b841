import type { Socket } from 'socket.io-client';

/** Word of a call that is held, or goes on. */
export interface Waiting {
  method: string;
  /** How long its daemon has been away, in milliseconds. */
  sinceMs: number;
  /** How long it is held at most from now on, in milliseconds; 0: it goes on. */
  deadlineMs: number;
}

export interface CallOptions {
  /** How long the daemon may take, in milliseconds; the server has a cap. */
  timeoutMs?: number;
  /** Told when a call to this method is held and when it goes on; `waiting` must have been added to the socket. */
  onWaiting?: (news: Waiting) => void;
}

export interface RpcRequest<P = any> {
  method: string;
  params?: P;
  /** Names the call; opaque. Absent where the server does not know `rpc-resume`. */
  callId?: string;
}

export interface ResumeOptions {
  /** How many results are kept while the server may not have them; 1,000 unless said. The oldest go first. */
  keepMax?: number;
  /** For how long, in milliseconds; 120,000 unless said. */
  keepMs?: number;
  /** The pause before one is handed in again, in milliseconds; 1,000 unless said. */
  retryMs?: number;
}

/** Why broadcasts are lost for good. */
export type GapReason = 'trimmed' | 'unknown' | 'too-many' | 'unreachable';

export interface OffsetsOptions {
  /** Broadcasts were lost: fetch your state again. */
  onGap: (reason: GapReason) => void;
  /** Where to begin: the `last` of an earlier run. */
  from?: string;
}

export interface Place {
  /** The offset up to which the socket has everything; undefined before it was first connected. */
  readonly last: string | undefined;
}

/** Has the server tell when calls of this socket are held. Throws when the socket is already connected. */
export function waiting(socket: Socket<any, any>, listener?: (news: Waiting) => void): void;

/** Calls a method. Rejects with the server's error as message, or when the connection ends first. */
export function call<R = any>(socket: Socket<any, any>, method: string, params?: unknown, options?: CallOptions): Promise<R>;

/**
 * Answers requests; an answer that comes when the connection is gone is handed in on the next one. To be added before the listener
 * that registers the methods. Throws when the socket is already connected.
 */
export function resume(
  socket: Socket<any, any>,
  listener: (request: RpcRequest, answer: (result?: unknown) => void) => void,
  options?: ResumeOptions,
): void;

/** Has the server send on a reconnect what was missed. Throws when the socket is already connected, or `onGap` is missing. */
export function offsets(socket: Socket<any, any>, options: OffsetsOptions): Place;
