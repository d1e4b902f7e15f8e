import type { Address, Hex, Network } from "@coinslot/protocol";
import { type Dialect, isDatabaseError, type Lease } from "@coinslot/storage";
import { sql, type Transaction } from "kysely";
import type { LedgerContext } from "../ledger-context.ts";
import { restartCodeGas } from "../payments/code-budget.ts";
import type { LedgerPayment } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import type { BroadcastsTable } from "../transactions-schema.ts";

/** One signed form of a transaction. */
export interface Broadcast {
  hash: Hex;
  raw: Hex;
  content: BroadcastsTable["content"];
  /** Wei per gas; the gas price in a transaction of the legacy type. */
  maxFeePerGas: bigint;
  /** `undefined` in a transaction of the legacy type. */
  maxPriorityFeePerGas: bigint | undefined;
}

/** A transaction that is about to be stored. */
export interface NewTransaction {
  id: string;
  network: Network;
  relayer: Address;
  nonce: number;
  gasLimit: bigint;
  broadcast: Broadcast;
  /** The payments that it carries, as they were read; none in one that only uses a nonce up. */
  payments: readonly Pick<LedgerPayment, "id" | "fingerprint">[];
  /** Writes the rows of calls of ours, such as claims, together with it. */
  alongside?: ((transaction: Transaction<LedgerSchema>, id: string) => Promise<void>) | undefined;
}

/**
 * `lease_lost`: another process plans for this relayer now. `payments_changed`: one of the payments
 * is not queued any more, or for something else. `nonce_taken`: the nonce has been stored before.
 * Nothing was written.
 */
export type StoreOutcome = "stored" | "lease_lost" | "payments_changed" | "nonce_taken";

class StoreRefused extends Error {
  readonly outcome: StoreOutcome;

  constructor(outcome: StoreOutcome) {
    super(`The transaction was not stored: ${outcome}`);
    this.outcome = outcome;
  }
}

/**
 * `queued` → `submitted`, together with nonce, raw transaction and hash. All or nothing, before
 * anything is broadcast, and only under a held lease.
 *
 * The racers:
 * - a process that took the lease over while this one was frozen: the guard finds another epoch;
 * - another relayer's planner with the same payments: they are no longer `queued`;
 * - a nonce that was stored already: the unique index;
 * - a caller that gave a payment up for dead and had the same nonce signed for another amount or
 * recipient. The row is queued again, and its fingerprint, which identifies the authorization, is
 * another.
 */
export async function storeTransaction(
  ledger: LedgerContext,
  lease: Lease,
  record: NewTransaction,
): Promise<StoreOutcome> {
  const { dialect, leases } = ledger;
  const now = ledger.now();
  return settleOutcome(() =>
    ledger.write<StoreOutcome>(async (transaction) => {
      const { numAffectedRows } = await sql`
        insert into transactions (id, network, relayer, nonce, state, epoch, gas_limit, created_at)
        select ${record.id}, ${record.network}, ${record.relayer}, cast(${record.nonce} as bigint), 'open',
          cast(${lease.epoch} as bigint), cast(${Number(record.gasLimit)} as bigint), cast(${now} as bigint)
        where ${leases.guard(lease)}
      `.execute(transaction);
      if (numAffectedRows !== 1n) throw new StoreRefused("lease_lost");
      await insertBroadcast(transaction, { dialect, record, now });
      await record.alongside?.(transaction, record.id);
      if (record.payments.length === 0) return "stored";
      const ids = record.payments.map(({ id }) => id);
      const fingerprints = record.payments.map(({ fingerprint }) => fingerprint);
      const carried = await transaction
        .updateTable("payments")
        .set((set) => ({
          state: "submitted",
          transaction_id: record.id,
          submitted_at: now,
          carried: set("carried", "+", 1),
        }))
        .where("id", "in", dialect.among(ids))
        .where("state", "=", is("queued"))
        .where("fingerprint", "in", dialect.among(fingerprints))
        .returning(["id", "is_alone"])
        .execute();
      if (carried.length !== ids.length) throw new StoreRefused("payments_changed");
      const paymentIds = carried.flatMap(({ id, is_alone }) => (is_alone === 1 ? id : []));
      await restartCodeGas({ transaction, dialect, paymentIds });
      return "stored";
    }),
  );
}

/**
 * Stores another signed form of an open transaction: same nonce, before it is sent.
 * `payments_changed` means that the transaction is no longer open.
 */
export async function storeReplacement(
  ledger: LedgerContext,
  lease: Lease,
  record: Pick<NewTransaction, "id" | "broadcast">,
): Promise<StoreOutcome> {
  const { dialect, leases } = ledger;
  const now = ledger.now();
  return settleOutcome(() =>
    ledger.write<StoreOutcome>(async (transaction) => {
      const open = await transaction
        .selectFrom("transactions")
        .select("id")
        .where("id", "=", record.id)
        .where("state", "=", is("open"))
        .$call(dialect.forUpdate)
        .executeTakeFirst();
      if (open === undefined) throw new StoreRefused("payments_changed");
      const { rows } = await sql`select 1 as held where ${leases.guard(lease)}`.execute(
        transaction,
      );
      if (rows.length === 0) throw new StoreRefused("lease_lost");
      await insertBroadcast(transaction, { dialect, record, now });
      return "stored";
    }),
  );
}

async function insertBroadcast(
  transaction: Transaction<LedgerSchema>,
  options: { dialect: Dialect; record: Pick<NewTransaction, "id" | "broadcast">; now: number },
): Promise<void> {
  const { dialect, record, now } = options;
  const { hash, raw, content, maxFeePerGas, maxPriorityFeePerGas } = record.broadcast;
  await transaction
    .insertInto("broadcasts")
    .values({
      hash,
      transaction_id: record.id,
      raw,
      content,
      max_fee_per_gas: dialect.amount.encode(maxFeePerGas),
      max_priority_fee_per_gas:
        maxPriorityFeePerGas === undefined ? null : dialect.amount.encode(maxPriorityFeePerGas),
      created_at: now,
    })
    .execute();
}

async function settleOutcome(store: () => Promise<StoreOutcome>): Promise<StoreOutcome> {
  try {
    return await store();
  } catch (error) {
    if (error instanceof StoreRefused) return error.outcome;
    if (isDatabaseError(error, "unique-violation")) return "nonce_taken";
    throw error;
  }
}
