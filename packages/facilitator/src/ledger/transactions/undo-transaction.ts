import type { Address, Network } from "@coinslot/protocol";
import type { LedgerContext } from "../ledger-context.ts";
import { is } from "../states.ts";
import { notIncluded, type UndonePayment, undoPayments } from "./undo-blocks.ts";

/**
 * `settled` or `final` → `open`: a block that is not below its own leaves its nonce unused. So it
 * stands in no block, whatever a receipt has said: a node was wrong, or followed a fork that is
 * gone. Nor does one whose block is far above the chain: a node has made it up. It is sent again,
 * as it was signed.
 *
 * Its payments go back as those of a block that has left the chain, but for final ones: these stay
 * confirmed, and the transaction moves their money after all. A node that is wrong about the nonce
 * does no harm: the receipt ends the transaction as before.
 *
 * @returns the payments that were taken back; `undefined` where no such transaction has the nonce
 */
export function undoTransaction(
  ledger: Pick<LedgerContext, "write">,
  unused: {
    network: Network;
    relayer: Address;
    nonce: number;
    unusedAtBlock: number;
    /** A transaction in a block above this is in none: no node lags by as much. */
    highest: number;
  },
): Promise<UndonePayment[] | undefined> {
  const { network, relayer, nonce, unusedAtBlock, highest } = unused;
  return ledger.write(async (transaction) => {
    const included = await transaction
      .selectFrom("transactions")
      .select(["id", "hash"])
      .where("network", "=", network)
      .where("relayer", "=", relayer)
      .where("nonce", "=", nonce)
      .where("state", "in", [is("settled"), is("final")])
      .where(({ or, eb }) =>
        or([eb("block_number", "<=", unusedAtBlock), eb("block_number", ">", highest)]),
      )
      .executeTakeFirst();
    if (included === undefined) return undefined;
    const { id, hash } = included;
    const { numUpdatedRows } = await transaction
      .updateTable("transactions")
      .set(notIncluded)
      .where("id", "=", id)
      .where("state", "in", [is("settled"), is("final")])
      .executeTakeFirst();
    if (numUpdatedRows !== 1n) return undefined;
    return undoPayments(transaction, {
      network,
      matches: (where) =>
        where.and([where("transaction_id", "=", id), where("transaction_hash", "=", hash)]),
    });
  });
}
