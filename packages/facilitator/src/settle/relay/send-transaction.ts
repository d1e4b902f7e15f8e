import { type BroadcastOutcome, type RpcRequester, sendRawTransaction } from "@coinslot/chain";
import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { classifySendError, type SendError } from "./send-error.ts";

/** A node's answer to a transaction. */
export type SendOutcome =
  /** It is in a node's pool or further, or may be. */
  | { outcome: "sent" | "unknown" }
  /** `isByAll`: every endpoint has returned this error. */
  | { outcome: "refused"; error: SendError; isByAll: boolean };

/**
 * Refusals of several nodes, from those that say the least about the transaction to those that say
 * the most. The last ones count only where all nodes agree.
 */
const byWeight: readonly SendError[] = [
  "already_known",
  "busy",
  "unknown",
  "nonce_too_high",
  "underpriced",
  "fee_too_low",
  "insufficient_funds",
  "nonce_too_low",
  "too_large",
  "invalid",
];

interface SendOptions {
  context: SettlementContext;
  network: SettlementNetwork;
  broadcast: Broadcast;
  /** No block holds it, though it was sent before. */
  isAgain: boolean;
}

/**
 * Sends the bytes of a stored transaction. Repeating that is harmless. One endpoint gets it at
 * first. All get it where that one refuses it, or where it is sent again: a node that takes
 * transactions and passes none on, or refuses each, must not hold up a relayer. All get a call of
 * ours at once: by a false receipt, one node would keep a claim off the chain.
 *
 * @throws RpcClosedError alone.
 */
export async function sendTransaction(options: SendOptions): Promise<SendOutcome> {
  const { rpc } = options.network;
  const { endpoints } = rpc;
  const isForAll = options.isAgain || options.broadcast.content === "calls";
  const isToAll = isForAll && endpoints.length > 1;
  const outcomes = await sendTo(options, isToAll ? endpoints : [rpc]);
  const [refused] = outcomes;
  if (isToAll || refused?.outcome !== "refused") return mergeOutcomes(outcomes);
  const others = endpoints.filter(({ endpoint }) => endpoint !== refused.endpoint);
  return mergeOutcomes([refused, ...(await sendTo(options, others))]);
}

type NodeOutcome =
  | { outcome: "sent" | "unknown" | "unsent" }
  | { outcome: "refused"; error: SendError; endpoint: number };

/** The outcomes of all nodes, or of the first one that has it: no other is waited for then. */
async function sendTo(
  options: SendOptions,
  nodes: readonly RpcRequester[],
): Promise<readonly NodeOutcome[]> {
  const { hash, raw } = options.broadcast;
  const sending = nodes.map(async (node) =>
    report(options, await sendRawTransaction(node, raw, { hash })),
  );
  const taken = sending.map(async (outcome) => {
    const result = await outcome;
    return result.outcome === "sent" ? [result] : Promise.reject(new Error("not taken"));
  });
  return Promise.any(taken).catch(() => Promise.all(sending));
}

function report(
  { context, network: { network }, broadcast }: SendOptions,
  result: BroadcastOutcome,
): NodeOutcome {
  const { logger, metrics } = context;
  const transaction = broadcast.hash;
  logger.debug({ network, transaction, outcome: result.outcome }, "transaction sent");
  if (result.outcome === "accepted") return { outcome: "sent" };
  if (result.outcome !== "rejected") {
    logger.warn(
      { err: result.error, network, transaction },
      "unknown whether a node has the transaction; it is looked up, and sent again",
    );
    return { outcome: result.outcome };
  }
  const { details, endpoint } = result.error;
  const error = classifySendError(details);
  if (error === "already_known") return { outcome: "sent" };
  metrics.sendErrors.inc({ network, error });
  logger.warn({ network, transaction, endpoint, error, details }, "a node refused the transaction");
  return { outcome: "refused", error, endpoint };
}

/** A node that has it outvotes all others. One that could not be asked says nothing. */
function mergeOutcomes(outcomes: readonly NodeOutcome[]): SendOutcome {
  if (outcomes.some(({ outcome }) => outcome === "sent")) return { outcome: "sent" };
  const errors = outcomes.flatMap((each) => (each.outcome === "refused" ? each.error : []));
  const error = byWeight.find((each) => errors.includes(each));
  const isUnknown = outcomes.some(({ outcome }) => outcome === "unknown");
  if (isUnknown || error === undefined) return { outcome: "unknown" };
  const isByAll = errors.length === outcomes.length && errors.every((each) => each === error);
  return { outcome: "refused", error, isByAll };
}
