import type { Address, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import type { Inclusion } from "../payments/ledger-payment.ts";
import { leaseNameOf } from "../relayer-lease.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";

/** A transaction that a block holds. */
export interface SettledTransaction {
  id: string;
  inclusion: Inclusion;
  gasUsed: bigint;
  /** Wei; `undefined` where the node returned no price. */
  gasCost?: bigint | undefined;
}

/** `open` → `settled`: a block holds the transaction, and every payment in it has its outcome. */
export async function settleTransaction(
  options: SettledTransaction & { transaction: Transaction<LedgerSchema>; dialect: Dialect },
): Promise<void> {
  const { transaction, dialect, id, inclusion, gasUsed, gasCost } = options;
  await transaction
    .updateTable("transactions")
    .set({
      state: "settled",
      hash: inclusion.transactionHash,
      block_number: inclusion.blockNumber,
      block_hash: inclusion.blockHash,
      gas_used: Number(gasUsed),
      gas_cost: isStorable(gasCost) ? dialect.amount.encode(gasCost) : null,
    })
    .where("id", "=", id)
    .where("state", "=", is("open"))
    .execute();
}

/** A node may return any price. One that no chain has must not keep the transaction open. */
function isStorable(gasCost: bigint | undefined): gasCost is bigint {
  return gasCost !== undefined && gasCost < 2n ** 128n;
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

/**
 * `open` → `lost` for all transactions of a relayer without a key, once none of them carries a
 * payment: nothing depends on them, and a nonce between them may stay unused for ever. Should its
 * key come back, the chain waits for such a nonce, and the transaction is open again.
 *
 * The racer is a process that gets the key, takes the relayer's lease, and reads what is open. It
 * would wait for the nonce of one that is given up after that. So nothing is given up under a
 * lease. The lease is taken either before this, or once this has ended.
 */
export function giveUpTransactions(
  ledger: LedgerContext,
  { network, relayer }: { network: Network; relayer: Address },
): Promise<void> {
  const { dialect } = ledger;
  return ledger.write(async (transaction) => {
    const { rows } = await sql<{ is_held: number }>`
      select case when expires_at_ms > ${dialect.nowMs()} then 1 else 0 end as is_held
      from coinslot_leases where name = ${leaseNameOf({ network, relayer })} ${dialect.forShare}
    `.execute(transaction);
    if (rows.some(({ is_held }) => is_held === 1)) return;
    const open = transaction
      .selectFrom("transactions")
      .select("id")
      .where("network", "=", network)
      .where("relayer", "=", relayer)
      .where("state", "=", is("open"));
    await transaction
      .updateTable("transactions")
      .set({ state: "lost" })
      .where("id", "in", open)
      .where("state", "=", is("open"))
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom("payments")
              .select("payments.id")
              .where("payments.transaction_id", "in", open)
              .where("payments.state", "=", is("submitted")),
          ),
        ),
      )
      .execute();
  });
}
