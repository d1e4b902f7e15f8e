import type { Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type SqlBool, sql, type Transaction } from "kysely";
import type { LedgerContext, LedgerReads } from "../ledger-context.ts";
import { takeFromRecords } from "../payments/code-records.ts";
import { identityColumns, toAuthorizationId } from "../payments/ledger-payment.ts";
import { readDatabaseNow } from "../queries/common-time.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import { isIn, type KnownBlock, notIncluded, type UndonePayment } from "./undo-blocks.ts";

/** Rows of a table in the order of their ids, the oldest first. */
interface Walk {
  table: "payments" | "transactions";
  network: Network;
  after: string;
  limit: number;
}

/** One page of a walk over everything that is in final blocks. */
export interface FinalPage {
  rows: { id: string; block: KnownBlock }[];
  /** Id to go on after; `undefined` at the end. */
  next: string | undefined;
}

/**
 * Reads the next rows by their ids, and returns those in final blocks. Without an index: it is read
 * after a reorganisation deeper than final, and never otherwise.
 */
export async function findInFinalBlocks({ db }: LedgerReads, walk: Walk): Promise<FinalPage> {
  const { table, network, after, limit } = walk;
  const rows =
    table === "payments"
      ? await db
          .selectFrom("payments")
          .select(["id", "network", "block_number", "block_hash", "final_at"])
          .where("id", ">", after)
          .orderBy("id")
          .limit(limit)
          .execute()
      : await db
          .selectFrom("transactions")
          .select(["id", "network", "block_number", "block_hash"])
          .select((row) =>
            row.case().when("state", "=", is("final")).then(1).else(null).end().as("final_at"),
          )
          .where("id", ">", after)
          .orderBy("id")
          .limit(limit)
          .execute();
  return {
    rows: rows.flatMap((row) => {
      const { id, block_number: number, block_hash: hash, final_at } = row;
      const isFinal = row.network === network && final_at !== null;
      return isFinal && number !== null && hash !== null ? [{ id, block: { number, hash } }] : [];
    }),
    next: rows.length < limit ? undefined : rows.at(-1)?.id,
  };
}

/** Payments, or transactions, whose blocks have left the chain, or never stood on it. */
export interface LeftRows {
  network: Network;
  ids: readonly string[];
  blocks: readonly KnownBlock[];
  /**
   * A block of the chain before all that have left: their authorizations were unused at its end.
   */
  unusedAtBlock: number;
}

/**
 * Takes back payments whose blocks have left the chain. `confirmed` → `submitted` with their
 * transaction, which is open again; → `queued` where it is in no such block here. They are followed
 * as after any reorganisation: sent again, found in another block, or ended. One that is not final
 * is taken back, too: a block that a node has made up far above the chain never becomes final.
 *
 * A transaction that the relayer has opened again may be settled at this moment. Its receipt then
 * names no outcome for confirmed payments. So its payments leave it: another sender's execution is
 * found by their trial. A payment whose signature retention has deleted stays, for nothing could
 * end it.
 *
 * @returns the payments that were taken back
 */
export function undoFinalPayments(
  ledger: Pick<LedgerContext, "write" | "dialect" | "now">,
  left: LeftRows,
): Promise<UndonePayment[]> {
  const { network, ids, unusedAtBlock } = left;
  if (ids.length === 0) return Promise.resolve([]);
  const { dialect } = ledger;
  return ledger.write(async (transaction) => {
    const reopened = await reopenCarriers({ transaction, dialect }, left);
    const rows = await selectLeft({ transaction, dialect }, left, reopened);
    if (rows.length === 0) return [];
    const found = rows.map(({ id }) => id);
    const now = await readDatabaseNow({ db: transaction, dialect });
    await dialect.insertMany<LedgerSchema, "deep_reversals">(
      transaction,
      "deep_reversals",
      rows.flatMap((row) =>
        row.final_at === null
          ? []
          : {
              payment_id: row.id,
              network,
              block_number: row.block_number ?? 0,
              block_hash: row.block_hash ?? "0x",
              transaction_hash: row.transaction_hash,
              final_at: row.final_at,
              reversed_at: now,
            },
      ),
      { keys: ["payment_id"], replace: reversalColumns },
    );
    await transaction
      .updateTable("payments")
      .set((set) => ({
        state: set
          .case()
          .when(isReopened(reopened))
          .then("submitted" as const)
          .else("queued" as const)
          .end(),
        transaction_id: set
          .case()
          .when(isReopened(reopened))
          .then(set.ref("transaction_id"))
          .else(null)
          .end(),
        block_number: null,
        block_hash: null,
        transaction_hash: null,
        confirmed_at: null,
        final_at: null,
        unused_at_block: sql<number>`case when unused_at_block < ${unusedAtBlock}
          then unused_at_block else ${unusedAtBlock} end`,
      }))
      .where("id", "in", dialect.among(found))
      .execute();
    await takeBackRefunds({ transaction, dialect }, found, ledger.now());
    await takeFromRecords({ transaction, owners: rows.filter(({ is_alone }) => is_alone === 1) });
    return rows.map((row) => ({
      id: row.id,
      authorization: toAuthorizationId(row),
      wasDelivered: row.delivered_at !== null,
    }));
  });
}

const reversalColumns = [
  ...(["network", "block_number", "block_hash", "transaction_hash"] as const),
  ...(["final_at", "reversed_at"] as const),
];

interface Writing {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
}

/** → `open` for the transactions that carried these payments, in blocks that have left. */
async function reopenCarriers(
  { transaction, dialect }: Writing,
  { ids, blocks }: LeftRows,
): Promise<string[]> {
  const carriers = await transaction
    .selectFrom("payments")
    .select("transaction_id")
    .distinct()
    .where("id", "in", dialect.among(ids))
    .where("transaction_id", "is not", null)
    .execute();
  const wanted = carriers.flatMap(({ transaction_id }) => transaction_id ?? []).sort();
  if (wanted.length === 0) return [];
  const rows = await transaction
    .updateTable("transactions")
    .set(notIncluded)
    .where("id", "in", dialect.among(wanted))
    .where("state", "in", [is("settled"), is("final")])
    .where(isIn(blocks))
    .returning("id")
    .execute();
  return rows.map(({ id }) => id);
}

const leftColumns = [
  ...(["id", "transaction_id", "delivered_at", "is_alone", "block_number"] as const),
  ...(["block_hash", "transaction_hash", "final_at"] as const),
  ...identityColumns,
] as const;

/** These payments, and all others of the reopened transactions, locked. */
async function selectLeft(
  { transaction, dialect }: Writing,
  { network, ids, blocks }: LeftRows,
  reopened: readonly string[],
) {
  const left = transaction
    .selectFrom("payments")
    .select(leftColumns)
    .where("network", "=", network)
    .where("state", "=", is("confirmed"))
    .where(isIn(blocks))
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom("orders")
          .select("orders.payment_id")
          .whereRef("orders.payment_id", "=", "payments.id"),
      ),
    )
    .orderBy("id");
  const named = await left.where("id", "in", dialect.among(ids)).$call(dialect.forUpdate).execute();
  if (reopened.length === 0) return named;
  const carried = await left
    .where("transaction_id", "in", dialect.among(reopened))
    .$call(dialect.forUpdate)
    .execute();
  return [...new Map([...named, ...carried].map((row) => [row.id, row])).values()];
}

function isReopened(reopened: readonly string[]) {
  return reopened.length === 0
    ? sql<SqlBool>`1 = 0`
    : sql<SqlBool>`transaction_id in (${sql.join(reopened)})`;
}

/** `final` → `sent` for the refunds whose operations these payments are. */
async function takeBackRefunds(
  { transaction, dialect }: Writing,
  operations: readonly string[],
  now: number,
): Promise<void> {
  await transaction
    .updateTable("refunds")
    .set({ ...refundOnItsWay, next_at: now })
    .where("operation_id", "in", dialect.among(operations))
    .where("state", "=", "final")
    .execute();
}

const refundOnItsWay = {
  state: "sent",
  block_number: null,
  block_hash: null,
  confirmed_at: null,
  final_at: null,
} as const;

/**
 * `final` → `sent` for refunds that no payment of the engine has made, in blocks that have left the
 * chain. Their transaction is looked for again.
 */
export async function undoFinalRefunds(
  ledger: Pick<LedgerContext, "write" | "now">,
  { network, blocks }: Pick<LeftRows, "network" | "blocks">,
): Promise<number> {
  return ledger.write(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable("refunds")
      .set({ ...refundOnItsWay, next_at: ledger.now() })
      .where("network", "=", network)
      .where("state", "=", "final")
      .where("operation_id", "is", null)
      .where(
        "block_hash",
        "in",
        blocks.map(({ hash }) => hash),
      )
      .executeTakeFirst();
    return Number(numUpdatedRows);
  });
}

/**
 * `final` → `open` for the other transactions in blocks that have left the chain: their gas is not
 * burnt. They are sent again as they were signed, or their nonces are used.
 */
export async function undoFinalTransactions(
  ledger: Pick<LedgerContext, "write" | "dialect">,
  { network, ids, blocks }: Omit<LeftRows, "unusedAtBlock">,
): Promise<number> {
  if (ids.length === 0) return 0;
  const { numUpdatedRows } = await ledger.write((transaction) =>
    transaction
      .updateTable("transactions")
      .set(notIncluded)
      .where("id", "in", ledger.dialect.among(ids))
      .where("network", "=", network)
      .where("state", "=", is("final"))
      .where(isIn(blocks))
      .executeTakeFirst(),
  );
  return Number(numUpdatedRows);
}
