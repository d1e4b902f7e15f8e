import {
  type BlockHeader,
  blockByNumber,
  parseBlockHeader,
  RpcClosedError,
  type RpcEndpointHandle,
  RpcError,
  RpcUnavailableError,
} from "@coinslot/chain";
import * as z from "zod";
import type { SettlementContext, SettlementNetwork } from "../settle/context.ts";
import { isStuck } from "../settle/evidence/is-stuck.ts";

/** Nodes of a chain, and the clocks by which they are old or silent. */
export interface Electorate {
  network: Pick<SettlementNetwork, "network"> & {
    rpc: Pick<SettlementNetwork["rpc"], "endpoints">;
  };
  context: Pick<SettlementContext, "clock" | "logger"> & {
    ledger: Pick<SettlementContext["ledger"], "now">;
  };
}

/** Fact of the chain that a vote is about. A node may answer one kind of them, and another not. */
export type Question = "use" | "no use" | "events" | "payment" | "no EIP-3009";

/** Decision of the endpoints: all the same, not all the same, or some have not come to it. */
export type Vote = "confirmed" | "denied" | "disputed" | "undecided";

/**
 * Word of one endpoint about a fact of the chain. `behind`: its chain has not come to the block.
 * `undefined`: it has no say, since it lacks the data.
 */
type Word = boolean | "behind" | undefined;

/** Wait for an endpoint that does not answer. */
const maxSilenceMs = 600_000;
/**
 * Time between two votes without an answer that are one silence. Votes may be rare, and each asks
 * for the head.
 */
const maxGapMs = { head: 86_400_000, question: maxSilenceMs };
const warnEveryMs = 600_000;

/** The first and the last vote in a row without an answer, and the last warning, by the clock. */
interface Silence {
  since: number;
  at: number;
  warnedAt: number;
}

const silences = new WeakMap<RpcEndpointHandle, Map<Question | "head", Silence>>();

/**
 * Confirmed if each endpoint that has a say confirms a fact of the chain, and at least one does.
 * What gives money away is not decided by one node's word. An endpoint that lacks the data, or
 * returns malformed data, has no say. Nor has one of another chain.
 *
 * Nothing is decided while an endpoint is behind: blocks above its head may be made up by another.
 * Nor while one does not answer: it may rest for a moment. One that is stuck, or silent, for ten
 * minutes holds up nothing. One may be silent about one kind of question alone.
 */
export async function askEach(
  electorate: Electorate,
  question: Question,
  ask: (endpoint: RpcEndpointHandle, head: BlockHeader) => Promise<Word>,
): Promise<Vote> {
  const { network, context } = electorate;
  const answers = await Promise.all(
    network.rpc.endpoints.map(async (endpoint) => {
      const ofEndpoint = silences.get(endpoint) ?? new Map<Question | "head", Silence>();
      silences.set(endpoint, ofEndpoint);
      let head: BlockHeader | undefined;
      try {
        head = parseBlockHeader(await endpoint.request(blockByNumber("latest")));
        ofEndpoint.delete("head");
        if (head === undefined) return { head, word: undefined };
        const word = await ask(endpoint, head);
        ofEndpoint.delete(question);
        return { head, word };
      } catch (error) {
        const subject = head === undefined ? "head" : question;
        return { head, word: faultOf(electorate, { endpoint, ofEndpoint, subject, error }) };
      }
    }),
  );
  const heads = answers.flatMap(({ head }) => head ?? []);
  const now = context.ledger.now();
  const words = answers.map(({ head, word }) =>
    word === "behind" && head && isStuck(head, heads, now) ? undefined : word,
  );
  const [isConfirmed, isDenied] = [words.includes(true), words.includes(false)];
  if (isConfirmed && isDenied) return "disputed";
  if (words.includes("behind")) return "undecided";
  if (isDenied) return "denied";
  return isConfirmed ? "confirmed" : "undecided";
}

/** True if the vote of `askEach` is `confirmed`. */
export async function isConfirmed(...asked: Parameters<typeof askEach>): Promise<boolean> {
  return (await askEach(...asked)) === "confirmed";
}

function faultOf(
  { network: { network }, context: { clock, logger } }: Electorate,
  failed: {
    endpoint: RpcEndpointHandle;
    ofEndpoint: Map<Question | "head", Silence>;
    subject: Question | "head";
    error: unknown;
  },
): Word {
  const { endpoint, ofEndpoint, subject, error } = failed;
  if (!(error instanceof RpcError || error instanceof z.ZodError)) throw error;
  if (error instanceof RpcClosedError) return "behind";
  if (!(error instanceof RpcUnavailableError) || !error.retryable) return undefined;
  const now = clock.now();
  const known = ofEndpoint.get(subject);
  const maxGap = maxGapMs[subject === "head" ? "head" : "question"];
  const silence =
    known && now - known.at < maxGap
      ? { ...known, at: now }
      : { since: now, at: now, warnedAt: Number.NEGATIVE_INFINITY };
  ofEndpoint.set(subject, silence);
  const isLeftOut = now - silence.since >= maxSilenceMs;
  // The first failure alone may be a moment's.
  if (silence.since < now && now - silence.warnedAt >= warnEveryMs) {
    silence.warnedAt = now;
    logger.warn(
      { network, endpoint: endpoint.endpoint, question: subject },
      isLeftOut
        ? "an endpoint has not answered for ten minutes; it has no say about refunds"
        : "refunds wait for an endpoint that does not answer",
    );
  }
  return isLeftOut ? undefined : "behind";
}
