import type { Hex, TokenDomain } from "@coinslot/protocol";
import type { RefundChange } from "../ledger/refunds/move-refund.ts";
import { queueRefund } from "../ledger/refunds/queue-refund.ts";
import { findRefundedPayment, type RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { planResumed } from "../settle/fleet/plan-payments.ts";
import type { RefundReading } from "./read-chain.ts";
import type { UnsignedRefunds } from "./refund-file.ts";
import { later, looks, type RefundsContext } from "./refunds-context.ts";
import { transferOf } from "./sign-refunds.ts";
import { tokenDomain } from "./token-domain.ts";

/** A refund that the chain lets be signed now. */
export interface SignableRefund {
  row: RefundRow;
  settlement: NetworkSettlement;
  reading: RefundReading;
  value: bigint;
}

/** Signs a refund by the float here, and gives it to the engine. */
export async function signRefund(
  refunds: RefundsContext,
  signable: SignableRefund,
): Promise<RefundChange | undefined> {
  const { context, settings } = refunds;
  const { row, settlement } = signable;
  const { float, sign } = settings;
  const domain = tokenDomain(row, await refunds.readFacts(row));
  if (domain === undefined || float === undefined || sign === undefined) {
    return later(refunds, looks.waiting, { state: "waiting", cause: "chain" });
  }
  const head = await settlement.network.watcher.read(0);
  const now = Math.floor(context.now() / 1000);
  const term = settings.validForSeconds;
  // This clock may be behind the chain's. One node alone says that time: it adds a term at most.
  const from = Math.min(Math.max(Number(head.timestamp), now), now + term);
  const validBefore = BigInt(from + term);
  const unsigned = await unsignedForm(refunds, { row, domain, validBefore });
  if (unsigned === undefined)
    return later(refunds, looks.soon, { state: row.state, cause: row.cause });
  const { digest } = transferOf(float, unsigned);
  let signature: Hex;
  try {
    signature = await sign(digest);
  } catch (err) {
    context.logger.warn({ err, refund: row.id }, "the float's signer did not sign; retrying");
    return later(refunds, looks.waiting, { state: "waiting", cause: "signer" });
  }
  await context.faultPoint("refund_signed");
  return giveToEngine(refunds, { ...signable, float, validBefore, signature });
}

/** The form of a refund that is signed, here or elsewhere. */
export async function unsignedForm(
  { context }: Pick<RefundsContext, "context">,
  { row, domain, validBefore }: { row: RefundRow; domain: TokenDomain; validBefore: bigint },
): Promise<UnsignedRefunds["refunds"][number] | undefined> {
  const { ledger } = context;
  const payment = await findRefundedPayment(ledger, row.payment_id);
  if (payment === undefined) return undefined;
  const { authority, payer, nonce } = payment.authorization;
  return {
    id: row.id,
    network: row.network,
    asset: row.asset,
    domain: { name: domain.name, version: domain.version },
    payment: { ...(authority ? { authority } : {}), payer, nonce },
    n: row.n,
    amount: ledger.dialect.amount.decode(row.amount).toString(),
    validBefore: validBefore.toString(),
    ...(row.reason === null ? {} : { reason: row.reason }),
  };
}

/** Stores a signed refund with its operation, and has it planned. */
export async function giveToEngine(
  refunds: RefundsContext,
  options: SignableRefund & {
    float: `0x${string}`;
    validBefore: bigint;
    signature: Hex;
  },
): Promise<RefundChange | undefined> {
  const { context, settings } = refunds;
  const { row, settlement, reading, float, validBefore, signature } = options;
  const result = await queueRefund(context.ledger, row, {
    float,
    validBefore,
    signature,
    balance: { amount: reading.balance ?? 0n, blockNumber: reading.blockNumber },
    maxPerDay: settings.maxPerDay(row),
  });
  switch (result.outcome) {
    case "queued":
      await context.faultPoint("refund_queued");
      planResumed(settlement, result.operation);
      return undefined;
    case "changed":
      return later(refunds, looks.soon, { state: row.state, cause: row.cause });
    default:
      return later(refunds, looks.waiting, { state: "waiting", cause: result.outcome });
  }
}
