import { RpcError } from "@coinslot/chain";
import { FacilitatorError, type Network } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { findCommitted, findCommittedDeposits } from "../ledger/payments/committed-balance.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveResult, ReserveWish } from "../ledger/payments/reserve-request.ts";
import type { SettlementNetwork } from "./context.ts";
import { nodeIsBehind } from "./unavailable-errors.ts";

/** Maximum of a payer's open payments, and of its deposits, that are read. Others count. */
const maxLookedAt = 100;

/** The ledger, and the chains that it is compared with. */
export interface AdmissionContext {
  ledger: LedgerContext;
  settlements: ReadonlyMap<
    Network,
    { network: Partial<Pick<SettlementNetwork, "trialFloor" | "debited">> }
  >;
}

/**
 * Reserves a payment, or returns the reason against it. Reads the chain again before it returns
 * that a payer has committed too much.
 *
 * A payment that a block has executed stays open until that block is read and deep enough. A
 * balance read meanwhile lacks its amount already, so it must not count as committed besides.
 *
 * @throws FacilitatorError where the payment was tried on a block that is too old, or the chain
 * cannot be read.
 */
export async function admitPayment(
  context: AdmissionContext,
  wish: ReserveWish,
): Promise<ReserveResult> {
  const { ledger, settlements } = context;
  const { id, balance } = wish;
  const floor = settlements.get(id.network)?.network.trialFloor;
  if (balance && floor && !floor.admits(balance.blockNumber)) throw nodeIsBehind();
  const result = await reservePayment(ledger, wish);
  if (result.outcome !== "over_committed") return result;
  try {
    const debited = await findDebited(context, wish);
    return debited === undefined ? result : await reservePayment(ledger, wish, debited);
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    throw new FacilitatorError("The chain cannot be read at the moment", {
      kind: "unavailable",
      cause,
    });
  }
}

/**
 * The payer's open payments and deposits that were executed or cancelled before its balance was
 * read. `undefined` where the others alone exceed that balance.
 *
 * None is a result like any other. The outcome of an executed payment may have been recorded since
 * the refusal: it is not open any more, and the same reservation fits now.
 */
async function findDebited(
  { ledger, settlements }: AdmissionContext,
  { id, balance, value }: ReserveWish,
): Promise<readonly string[] | undefined> {
  const debited = settlements.get(id.network)?.network.debited;
  if (balance === undefined || debited === undefined) return undefined;
  const payments = [
    ...(await findCommitted(ledger, { limit: maxLookedAt, ...id })),
    ...(await findCommittedDeposits(ledger, { limit: maxLookedAt, ...id })),
  ];
  const missing = await debited.find({ payments, blockNumber: balance.blockNumber });
  const others = payments.filter(
    (payment) => payment.authorization.nonce !== id.nonce && !missing.includes(payment.id),
  );
  const committed = others.reduce((sum, payment) => sum + payment.value, value);
  return committed > balance.amount ? undefined : missing;
}
