import {
  RpcClosedError,
  RpcEndpointError,
  type RpcEndpointHandle,
  RpcError,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import type { SettlementContext, SettlementNetwork } from "../context.ts";

/**
 * Subjects of a question that an endpoint may be silent about, from the widest: all that it is
 * asked (`head`), one kind of question, and one row or channel. Old data may be pruned, new not.
 */
export type Subjects = readonly string[];

/** Endpoints that are asked together. */
interface Siblings extends Pick<SettlementNetwork, "network"> {
  rpc: Pick<SettlementNetwork["rpc"], "endpoints">;
}

/** A row of looks without an answer about one subject, by the clock. */
interface Silence {
  since: number;
  at: number;
  /** Time between looks that counts. */
  silentMs: number;
  /** Answers of the other endpoints until the last look. */
  answersOfOthers: number;
  warnedAt: number;
}

const maxSilenceMs = 600_000;
/** Counts of the time between two looks, at most: two moments' faults are not ten minutes. */
const maxStepMs = 150_000;
/** Time between two looks without an answer that are one silence; of one without a say, a day. */
const maxGapMs = 1_800_000;
const maxGapOfLeftOutMs = 86_400_000;
const warnEveryMs = 600_000;
/** Of an endpoint. The oldest is forgotten first: its subject is waited for once more. */
const maxSilences = 10_000;

const silences = new WeakMap<RpcEndpointHandle, Map<string, Silence>>();
/** Number of answers. */
const answersOf = new WeakMap<RpcEndpointHandle, number>();

/** Notes that an endpoint has answered a question. */
export function noteAnswer(endpoint: RpcEndpointHandle, subjects: Subjects): void {
  answersOf.set(endpoint, (answersOf.get(endpoint) ?? 0) + 1);
  const known = silences.get(endpoint);
  for (const subject of subjects) known?.delete(subject);
}

/**
 * Notes that an endpoint has not answered a question, and returns whether it may still do so. A
 * decision that cannot be taken back waits for it: one error is a moment's, and the others may lie.
 * By any error it is silent: a gateway may have asked a node without the block. After ten minutes
 * without an answer about one of the subjects, it has no say. Nor has one that serves another chain
 * for as long: a gateway may have sent one request elsewhere.
 *
 * Time counts only while another endpoint answers. Else an outage of this machine would take every
 * endpoint's say: the first one to come back would decide alone. Nor does it count where this
 * process's own limits held the request back.
 *
 * @throws `error`, if it is no fault of a node
 */
export function isAwaited(
  { clock, logger }: Pick<SettlementContext, "clock"> & Partial<Pick<SettlementContext, "logger">>,
  silent: { network: Siblings; endpoint: RpcEndpointHandle; subjects: Subjects; error: unknown },
): boolean {
  const { network, endpoint, subjects, error } = silent;
  if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
  if (error instanceof RpcClosedError) return true;
  const now = clock.now();
  const others = network.rpc.endpoints.filter((each) => each !== endpoint);
  const answersOfOthers = others.reduce((sum, each) => sum + (answersOf.get(each) ?? 0), 0);
  const look = { at: now, answersOfOthers, wasSent: !isBusy(error) };
  const all = subjects.map((subject) => noteSilence(endpoint, subject, look));
  const isSilent = all.some(isLeftOut);
  const [widest] = all;
  // The first failure alone may be a moment's.
  if (widest && now > widest.since && now - widest.warnedAt >= warnEveryMs) {
    widest.warnedAt = now;
    logger?.warn(
      { network: network.network, endpoint: endpoint.endpoint, subject: subjects[0], error },
      isSilent
        ? "an endpoint has not answered for ten minutes; it has no say about money"
        : "a decision about money waits for an endpoint that does not answer",
    );
  }
  return !isSilent;
}

function isBusy(error: unknown): boolean {
  if (!(error instanceof RpcUnavailableError)) return false;
  return error.failures.some((each) => each instanceof RpcEndpointError && each.kind === "busy");
}

function isLeftOut({ silentMs }: Silence): boolean {
  return silentMs >= maxSilenceMs;
}

function noteSilence(
  endpoint: RpcEndpointHandle,
  subject: string,
  look: { at: number; answersOfOthers: number; wasSent: boolean },
): Silence {
  const { at, answersOfOthers, wasSent } = look;
  const ofEndpoint = silences.get(endpoint) ?? new Map<string, Silence>();
  silences.set(endpoint, ofEndpoint);
  const known = ofEndpoint.get(subject);
  const maxGap = known && isLeftOut(known) ? maxGapOfLeftOutMs : maxGapMs;
  let silence: Silence = {
    since: at,
    at,
    silentMs: 0,
    answersOfOthers,
    warnedAt: Number.NEGATIVE_INFINITY,
  };
  if (known && at - known.at < maxGap) {
    const counts = wasSent && answersOfOthers > known.answersOfOthers;
    const stepMs = counts ? Math.min(at - known.at, maxStepMs) : 0;
    silence = { ...known, at, silentMs: known.silentMs + stepMs, answersOfOthers };
  }
  ofEndpoint.delete(subject);
  ofEndpoint.set(subject, silence);
  const [oldest] = ofEndpoint.keys();
  if (ofEndpoint.size > maxSilences && oldest !== undefined) ofEndpoint.delete(oldest);
  return silence;
}
