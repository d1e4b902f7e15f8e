import { RpcError, type RpcRequester } from "@coinslot/chain";
import { FacilitatorError, type Network } from "@coinslot/protocol";
import type { Ledger, ReserveWish } from "../ledger/ledger.ts";
import type { ReserveResult } from "../ledger/payments/reserve-request.ts";
import { readAuthorizationStates } from "./evidence/authorization-states.ts";

/** Reserves a payment, or says who or what stands against it. */
export type ReservePayment = (wish: ReserveWish) => Promise<ReserveResult>;

/** More open payments of one payer than this are not looked at: they count as promised. */
const maxLookedAt = 100;

/**
 * Creates what reserves payments, and looks twice before it says that a payer has promised too much:
 * a payment that a block has executed stays open until that block is read, and is deep enough. In a
 * balance that was read meanwhile it is missing already, and it must not be promised besides.
 */
export function createPaymentReserver(options: {
  ledger: Ledger;
  rpcOf: (network: Network) => RpcRequester | undefined;
}): ReservePayment {
  const { ledger, rpcOf } = options;

  /** The payer's open payments which were executed, or cancelled, before its balance was read. */
  async function findSpent({ id, balance }: ReserveWish): Promise<string[]> {
    const rpc = rpcOf(id.network);
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

  return async function reservePayment(wish) {
    const result = await ledger.reserve(wish);
    if (result.outcome !== "over_promised") return result;
    try {
      const spent = await findSpent(wish);
      return spent.length === 0 ? result : await ledger.reserve(wish, spent);
    } catch (cause) {
      if (!(cause instanceof RpcError)) throw cause;
      throw new FacilitatorError("The chain cannot be read at the moment", {
        kind: "unavailable",
        cause,
      });
    }
  };
}
