import { RpcError } from "@coinslot/chain";
import { FacilitatorError, type Network } from "@coinslot/protocol";
import type { Ledger, ReserveWish } from "../ledger/ledger.ts";
import type { ReserveResult } from "../ledger/payments/reserve-request.ts";
import type { NetworkSettlement } from "./engine.ts";
import { readAuthorizationStates } from "./evidence/authorization-states.ts";

/** More open payments of one payer than this are not looked at: they count as promised. */
const maxLookedAt = 100;

/** The ledger, and the chains that it is held against. */
export interface AdmissionContext {
  ledger: Ledger;
  settlements: ReadonlyMap<Network, NetworkSettlement>;
}

/**
 * Reserves a payment, or returns what stands against it. Looks twice before it returns that a payer has
 * promised too much: a payment that a block has executed stays open until that block is read, and is
 * deep enough. It is missing already in a balance that was read meanwhile, and must not be promised
 * besides.
 */
export async function admitPayment(
  context: AdmissionContext,
  wish: ReserveWish,
): Promise<ReserveResult> {
  const { ledger } = context;
  const result = await ledger.reserve(wish);
  if (result.outcome !== "over_promised") return result;
  try {
    const debited = await findDebited(context, wish);
    return debited.length === 0 ? result : await ledger.reserve(wish, debited);
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    throw new FacilitatorError("The chain cannot be read at the moment", {
      kind: "unavailable",
      cause,
    });
  }
}

/** The payer's open payments which were executed, or cancelled, before its balance was read. */
async function findDebited(
  { ledger, settlements }: AdmissionContext,
  { id, balance }: ReserveWish,
): Promise<string[]> {
  const rpc = settlements.get(id.network)?.network.rpc;
  if (balance === undefined || rpc === undefined) return [];
  const open = await ledger.findPromised({ limit: maxLookedAt, ...id });
  if (open.length === 0) return [];
  const states = await readAuthorizationStates({
    rpc,
    payments: open,
    blockNumber: balance.blockNumber,
  });
  return open.flatMap((payment, index) => (states[index] === true ? payment.id : []));
}
