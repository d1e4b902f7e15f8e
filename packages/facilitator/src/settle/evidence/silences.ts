import {
  RpcClosedError,
  type RpcEndpointHandle,
  RpcError,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import type { SettlementContext } from "../context.ts";

/**
 * Subjects of a question that an endpoint may be silent about, from the widest: all that it is
 * asked (`head`), one kind of question, and one row or channel. Old data may be pruned, new not.
 */
export type Subjects = readonly string[];

/** A row of looks without an answer about one subject, by the clock. */
interface Silence {
  since: number;
  at: number;
  failures: number;
  warnedAt: number;
}

const maxSilenceMs = 600_000;
/** Looks may be rare: two that meet a moment's fault are not ten minutes of silence. */
const minFailures = 5;
/** Time between two looks without an answer that are one silence; of one without a say, a day. */
const maxGapMs = 1_800_000;
const maxGapOfLeftOutMs = 86_400_000;
const warnEveryMs = 600_000;
/** Of an endpoint. The oldest is forgotten first: its subject is waited for once more. */
const maxSilences = 10_000;

const silences = new WeakMap<RpcEndpointHandle, Map<string, Silence>>();

/** Notes that an endpoint has answered a question. */
export function noteAnswer(endpoint: RpcEndpointHandle, subjects: Subjects): void {
  const known = silences.get(endpoint);
  for (const subject of subjects) known?.delete(subject);
}

/**
 * Notes that an endpoint has not answered a question, and returns whether it may still do so. A
 * decision that cannot be taken back waits for it: one error is a moment's, and the others may lie.
 * By any error it is silent: a gateway may have asked a node without the block. After ten minutes
 * without an answer about one of the subjects, it has no say. One of another chain never has.
 *
 * @throws `error`, if it is no fault of a node
 */
export function isAwaited(
  { clock, logger }: Pick<SettlementContext, "clock"> & Partial<Pick<SettlementContext, "logger">>,
  silent: { network: string; endpoint: RpcEndpointHandle; subjects: Subjects; error: unknown },
): boolean {
  const { network, endpoint, subjects, error } = silent;
  if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
  if (error instanceof RpcClosedError) return true;
  if (error instanceof RpcUnavailableError && !error.retryable) return false;
  const now = clock.now();
  const all = subjects.map((subject) => noteSilence(endpoint, subject, now));
  const isSilent = all.some(isLeftOut);
  const [widest] = all;
  // The first failure alone may be a moment's.
  if (widest && widest.failures > 1 && now - widest.warnedAt >= warnEveryMs) {
    widest.warnedAt = now;
    logger?.warn(
      { network, endpoint: endpoint.endpoint, subject: subjects[0], error },
      isSilent
        ? "an endpoint has not answered for ten minutes; it has no say about money"
        : "a decision about money waits for an endpoint that does not answer",
    );
  }
  return !isSilent;
}

function isLeftOut({ since, at, failures }: Silence): boolean {
  return at - since >= maxSilenceMs && failures >= minFailures;
}

function noteSilence(endpoint: RpcEndpointHandle, subject: string, now: number): Silence {
  const ofEndpoint = silences.get(endpoint) ?? new Map<string, Silence>();
  silences.set(endpoint, ofEndpoint);
  const known = ofEndpoint.get(subject);
  const maxGap = known && isLeftOut(known) ? maxGapOfLeftOutMs : maxGapMs;
  const silence =
    known && now - known.at < maxGap
      ? { ...known, at: now, failures: known.failures + 1 }
      : { since: now, at: now, failures: 1, warnedAt: Number.NEGATIVE_INFINITY };
  ofEndpoint.delete(subject);
  ofEndpoint.set(subject, silence);
  const [oldest] = ofEndpoint.keys();
  if (ofEndpoint.size > maxSilences && oldest !== undefined) ofEndpoint.delete(oldest);
  return silence;
}
