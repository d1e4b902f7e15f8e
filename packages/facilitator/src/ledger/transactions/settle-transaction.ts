import type { Address, Network } from "@coinslot/protocol";
import type { Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import type { Inclusion } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";

/** A transaction that a block holds. */
export interface SettledTransaction {
  id: string;
  inclusion: Inclusion;
  gasUsed: bigint;
}

/** `open` → `settled`: a block holds the transaction, and every payment in it has its outcome. */
export async function settleTransaction(
  options: SettledTransaction & { transaction: Transaction<LedgerSchema> },
): Promise<void> {
  const { transaction, id, inclusion, gasUsed } = options;
  await transaction
    .updateTable("transactions")
    .set({
      state: "settled",
      hash: inclusion.transactionHash,
      block_number: inclusion.blockNumber,
      block_hash: inclusion.blockHash,
      gas_used: Number(gasUsed),
    })
    .where("id", "=", id)
    .where("state", "=", is("open"))
    .execute();
}

/**
 * `lost` → `open`: the chain waits for the nonce after all, so nothing else has used it. It carries
 * no payment any more. A token executes an authorization once, whichever transaction comes first.
 *
 * @returns whether it had been given up as lost.
 */
export function reopenTransaction(
  ledger: LedgerContext,
  { network, relayer, nonce }: { network: Network; relayer: Address; nonce: number },
): Promise<boolean> {
  return ledger.write(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable("transactions")
      .set({ state: "open" })
      .where("network", "=", network)
      .where("relayer", "=", relayer)
      .where("nonce", "=", nonce)
      .where("state", "=", is("lost"))
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  });
}

/**
 * `open` → `lost`: its nonce was used, at depth, by a transaction that is not ours. Its payments go
 * back to the queue: the token executes an authorization once, whatever happens to the lost one.
 */
export function loseTransaction(ledger: LedgerContext, id: string): Promise<void> {
  return ledger.write(async (transaction) => {
    await transaction
      .updateTable("transactions")
      .set({ state: "lost" })
      .where("id", "=", id)
      .where("state", "=", is("open"))
      .execute();
    await transaction
      .updateTable("payments")
      .set({ state: "queued", transaction_id: null })
      .where("transaction_id", "=", id)
      .where("state", "=", is("submitted"))
      .execute();
  });
}
