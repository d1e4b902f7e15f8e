import * as z from "zod";
import type { RefundRow } from "../ledger/refunds/refund-row.ts";
import type { NetworkSettlement } from "../settle/engine.ts";
import { isConfirmed } from "./is-confirmed.ts";
import { readUses } from "./read-chain.ts";

const codeSchema = z.string().regex(/^0x[0-9a-f]*$/i);

/**
 * True if a refund's token has no EIP-3009, by each endpoint that answers. The refund is its
 * operator's to send then, and goes on by itself no more. One node's reverts do not do that.
 */
export function lacksAuthorizations(
  settlement: NetworkSettlement,
  row: RefundRow,
): Promise<boolean> {
  return isConfirmed(
    settlement,
    { kind: "no EIP-3009", of: row.id },
    async (endpoint, { number: blockNumber }) => {
      const accounts = [row.payer];
      const { isUnreadable } = await readUses(endpoint, row, { accounts, blockNumber });
      if (!isUnreadable) return false;
      const params = [row.asset, `0x${blockNumber.toString(16)}`];
      const code = codeSchema.parse(await endpoint.request({ method: "eth_getCode", params }));
      // A token does not go away: a node without its code lacks the chain's state.
      return code === "0x" ? undefined : true;
    },
  );
}
