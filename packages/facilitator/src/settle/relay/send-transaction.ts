import { sendRawTransaction } from "@coinslot/chain";
import type { Broadcast } from "../../ledger/transactions/store-transaction.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { classifySendError, type SendError } from "./send-error.ts";

/** A node's answer to a transaction. */
export type SendOutcome =
  /** It is in a node's pool or further, or may be. */
  { outcome: "sent" | "unknown" } | { outcome: "refused"; error: SendError };

/**
 * Sends the bytes of a stored transaction. Repeating that is harmless.
 *
 * @throws RpcClosedError alone.
 */
export async function sendTransaction(options: {
  context: SettlementContext;
  network: SettlementNetwork;
  broadcast: Broadcast;
}): Promise<SendOutcome> {
  const { context, network, broadcast } = options;
  const result = await sendRawTransaction(network.rpc, broadcast.raw, { hash: broadcast.hash });
  context.logger.debug(
    { network: network.network, transaction: broadcast.hash, outcome: result.outcome },
    "transaction sent",
  );
  if (result.outcome === "accepted") return { outcome: "sent" };
  if (result.outcome !== "rejected") {
    context.logger.warn(
      { err: result.error, network: network.network, transaction: broadcast.hash },
      "unknown whether a node has the transaction; it is looked up, and sent again",
    );
    return { outcome: "unknown" };
  }
  const error = classifySendError(result.error.details);
  if (error === "already_known") return { outcome: "sent" };
  context.metrics.sendErrors.inc({ network: network.network, error });
  context.logger.warn(
    { network: network.network, transaction: broadcast.hash, error, details: result.error.details },
    "a node refused the transaction",
  );
  return { outcome: "refused", error };
}
