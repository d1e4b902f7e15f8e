import type { SettleErrorReason } from "@coinslot/protocol";
import { expirePayments } from "../../ledger/maintenance/expire-payments.ts";
import { type PaymentOutcomes, recordOutcomes } from "../../ledger/payments/record-outcomes.ts";
import { readCommonTime } from "../../ledger/queries/common-time.ts";
import type { OrderedPayment } from "../../ledger/queries/find-orders.ts";
import { countQueued } from "../../ledger/queries/find-queued.ts";
import { findOverdue } from "../../ledger/queries/find-watched.ts";
import { schemeOf } from "../../schemes/registry.ts";
import type { SettlementContext, SettlementNetwork } from "../context.ts";
import { readAuthorizationStates } from "../evidence/authorization-states.ts";
import { findExecutions } from "../evidence/find-executions.ts";
import { outcomeOf } from "../evidence/outcome-of.ts";

import { type FinalBlockReader, readFinalBlock } from "./final-block.ts";

type OverdueNetwork = Pick<SettlementNetwork, "network" | "rpc" | "finalAfter">;

/** Payments read in one round. */
const maxAtOnce = 500;

/**
 * Ends payments that no transaction of ours will.
 *
 * `queued` past its time → `failed`. `submitted` → `failed` once a final block's time is past
 * `validBefore` and the authorization is unused. No block can ever execute it then. A payment that
 * another sender has executed is confirmed. Without this, a transaction that is never mined would
 * hold its payers' promises for ever.
 *
 * @returns whether there are payments past their time that are still to be decided.
 * @throws RpcError when the chain is unreachable, ZodError when it returns malformed data.
 */
export async function endOverdue(options: {
  context: Pick<SettlementContext, "ledger" | "notifier" | "logger" | "now">;
  network: OverdueNetwork;
  watch: FinalBlockReader;
  head: bigint;
}): Promise<boolean> {
  const { context, network, head } = options;
  const { ledger, notifier, logger, now } = context;
  const { rpc, finalAfter } = network;
  const before = BigInt(Math.floor(now() / 1000));
  if ((await countQueued(ledger, { network: network.network, upTo: 1 })) > 0) {
    const over = BigInt(Math.floor((await readCommonTime(ledger)) / 1000));
    notifier.publish(await expirePayments(ledger, { network: network.network, before: over }));
  }
  const overdue = await findOverdue(ledger, { network: network.network, before, limit: maxAtOnce });
  if (overdue.length === 0) return false;
  const final = await readFinalBlock(options.watch, rpc, head - BigInt(finalAfter));
  if (final === undefined) return true;
  const over = overdue.filter(({ payment }) => payment.validBefore <= final.timestamp);
  if (over.length === 0) return true;

  const { unused, used } = await readStates(network, over, head);
  const outcomes: PaymentOutcomes[] = await explainUsed(network, used, head);
  outcomes.push({ failed: expirationsOf(unused) });
  const ended = await recordOutcomes(ledger, outcomes);
  notifier.publish(ended);
  if (ended.length > 0) {
    logger.warn(
      { network: network.network, payments: ended.length },
      "payments whose transaction was not mined have expired on the chain; they are ended",
    );
  }
  return ended.length < overdue.length;
}

/** One outcome for all payments that expire for the same reason: one statement records it. */
function expirationsOf(unused: readonly OrderedPayment[]) {
  const idsByReason = new Map<SettleErrorReason, string[]>();
  for (const { payment } of unused) {
    const reason = schemeOf(payment).reasons.expired;
    const ids = idsByReason.get(reason);
    if (ids) ids.push(payment.id);
    else idsByReason.set(reason, [payment.id]);
  }
  return [...idsByReason].map(([reason, ids]) => ({ ids, reason }));
}

async function readStates(
  { rpc }: OverdueNetwork,
  payments: readonly OrderedPayment[],
  head: bigint,
): Promise<{ unused: OrderedPayment[]; used: OrderedPayment[] }> {
  const states = await readAuthorizationStates({
    rpc,
    payments: payments.map(({ payment }) => payment),
    blockNumber: head,
  });
  const unused: OrderedPayment[] = [];
  const used: OrderedPayment[] = [];
  for (const [index, payment] of payments.entries()) {
    const isUsed = states[index];
    // A token that does not answer is asked again at the next round.
    if (isUsed !== undefined) (isUsed ? used : unused).push(payment);
  }
  return { unused, used };
}

async function explainUsed(
  { rpc, finalAfter }: OverdueNetwork,
  used: readonly OrderedPayment[],
  head: bigint,
): Promise<PaymentOutcomes[]> {
  const payments = used.filter(({ payment }) => payment.unusedAtBlock !== undefined);
  if (payments.length === 0) return [];
  const executions = await findExecutions({ rpc, payments, toBlock: head, finalAfter });
  const outcomes: PaymentOutcomes[] = [];
  for (const [{ payment }, execution] of executions) {
    const reason = schemeOf(payment).reasons.alreadyUsed;
    const outcome = outcomeOf(payment.id, execution, { reason });
    if (outcome) outcomes.push(outcome);
  }
  return outcomes;
}
