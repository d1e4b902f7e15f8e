import { RpcError } from "@coinslot/chain";
import { FacilitatorError, type Network } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger/ledger-context.ts";
import { findPromised } from "../ledger/payments/committed-balance.ts";
import { reservePayment } from "../ledger/payments/reserve-payments.ts";
import type { ReserveResult, ReserveWish } from "../ledger/payments/reserve-request.ts";
import type { NetworkSettlement } from "./engine.ts";
import { nodeIsBehind } from "./unavailable-errors.ts";

/** Bound on a payer's open payments that are looked at. Those beyond it count as promised. */
const maxLookedAt = 100;

/** The ledger, and the chains that it is compared with. */
export interface AdmissionContext {
  ledger: LedgerContext;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
}

/**
 * Reserves a payment, or returns the reason against it. Reads the chain again before it returns
 * that a payer has promised too much.
 *
 * A payment that a block has executed stays open until that block is read and deep enough. A
 * balance read meanwhile lacks its amount already, so it must not count as promised besides.
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
  if (result.outcome !== "over_promised") return result;
  try {
    const debited = await findDebited(context, wish);
    return debited.length === 0 ? result : await reservePayment(ledger, wish, debited);
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    throw new FacilitatorError("The chain cannot be read at the moment", {
      kind: "unavailable",
      cause,
    });
  }
}

/** The payer's open payments that were executed or cancelled before its balance was read. */
async function findDebited(
  { ledger, settlements }: AdmissionContext,
  { id, balance }: ReserveWish,
): Promise<readonly string[]> {
  const debited = settlements.get(id.network)?.network.debited;
  if (balance === undefined || debited === undefined) return [];
  const payments = await findPromised(ledger, { limit: maxLookedAt, ...id });
  return debited.find({ payments, blockNumber: balance.blockNumber });
}
