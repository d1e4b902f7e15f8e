import type { AuthorizationId, Hex, Network } from "@coinslot/protocol";
import {
  type Expression,
  type ExpressionBuilder,
  type Kysely,
  type RawBuilder,
  type SqlBool,
  sql,
  type Transaction,
} from "kysely";
import type { LedgerContext, LedgerReads } from "../ledger-context.ts";
import { takeFromRecords } from "../payments/code-records.ts";
import { identityColumns, toAuthorizationId } from "../payments/ledger-payment.ts";
import type { LedgerSchema } from "../schema.ts";
import { is } from "../states.ts";
import { keepFinalBlocks } from "./final-blocks.ts";

/** A block that holds payments or transactions of ours which are not final yet. */
export interface KnownBlock {
  number: number;
  hash: Hex;
}

/**
 * The blocks that hold payments or transactions which are not final. Finds the next number, and
 * then the next hash of that number, along the indexes. So it costs the blocks and not their rows.
 */
export async function findBlocks({ db }: LedgerReads, network: Network): Promise<KnownBlock[]> {
  const inPayments = sql`from payments where network = ${network}
    and state = ${is("confirmed")} and final_at is null`;
  const inTransactions = sql`from transactions where network = ${network}
    and state = ${is("settled")}`;
  const payments = await readBlocks(db, inPayments);
  const transactions = await readBlocks(db, inTransactions);
  const blocks = [...payments, ...transactions];
  return [...new Map(blocks.map((block) => [`${block.number} ${block.hash}`, block])).values()];
}

/** Reads the different blocks of some rows. */
async function readBlocks(
  db: Kysely<LedgerSchema>,
  rows: RawBuilder<unknown>,
): Promise<KnownBlock[]> {
  const read = await sql<KnownBlock>`
    with recursive numbers (found_number) as (
      select (select min(block_number) ${rows})
      union all
      select (select min(block_number) ${rows} and block_number > found_number)
      from numbers where found_number is not null
    ), blocks (found_number, found_hash) as (
      select found_number, (select min(block_hash) ${rows} and block_number = found_number)
      from numbers where found_number is not null
      union all
      select found_number, (
        select min(block_hash) ${rows} and block_number = found_number and block_hash > found_hash
      ) from blocks where found_hash is not null
    )
    select found_number as number, found_hash as hash from blocks where found_hash is not null
  `.execute(db);
  return read.rows;
}

/** A payment whose block has left the chain. */
export interface UndonePayment {
  id: string;
  authorization: AuthorizationId;
  /** Its answer had gone out already. */
  wasDelivered: boolean;
}

/**
 * Takes back the outcomes of blocks that have left the chain. Their transactions are `open` again,
 * their payments `confirmed` → `submitted`, or → `queued` where no open transaction of ours carries
 * them. A `failed` payment stays so: if its transaction is included again and succeeds, it is
 * `confirmed`.
 */
export async function undoBlocks(
  { write }: Pick<LedgerContext, "write">,
  { network, blocks }: { network: Network; blocks: readonly KnownBlock[] },
): Promise<UndonePayment[]> {
  if (blocks.length === 0) return [];
  return write(async (transaction) => {
    await transaction
      .updateTable("transactions")
      .set(notIncluded)
      .where("network", "=", network)
      .where("state", "=", is("settled"))
      .where(isIn(blocks))
      .execute();
    return undoPayments(transaction, { network, matches: isIn(blocks) });
  });
}

/** A transaction of which no block is known. */
export const notIncluded = {
  state: "open",
  hash: null,
  block_number: null,
  block_hash: null,
  gas_used: null,
} as const;

/**
 * Takes back confirmed payments that are not final. Their transactions are open already, where they
 * are ours.
 */
export async function undoPayments(
  transaction: Transaction<LedgerSchema>,
  {
    network,
    matches,
  }: {
    network: Network;
    matches: (where: ExpressionBuilder<LedgerSchema, "payments">) => Expression<SqlBool>;
  },
): Promise<UndonePayment[]> {
  const rows = await transaction
    .updateTable("payments")
    .set(({ selectFrom, exists, ...set }) => ({
      state: set
        .case()
        .when(
          exists(
            selectFrom("transactions")
              .select("transactions.id")
              .whereRef("transactions.id", "=", "payments.transaction_id")
              .where("transactions.state", "=", is("open")),
          ),
        )
        .then("submitted" as const)
        .else("queued" as const)
        .end(),
      block_number: null,
      block_hash: null,
      transaction_hash: null,
      confirmed_at: null,
    }))
    .where("network", "=", network)
    .where("state", "=", is("confirmed"))
    .where("final_at", "is", null)
    .where(matches)
    .returning(["id", ...identityColumns, "delivered_at", "is_alone"])
    .execute();
  const owners = rows.filter(({ is_alone }) => is_alone === 1);
  await takeFromRecords({ transaction, owners });
  return rows.map((row) => ({
    id: row.id,
    authorization: toAuthorizationId(row),
    wasDelivered: row.delivered_at !== null,
  }));
}

/**
 * Marks the contents of these blocks as final. They have been found on the chain, deep enough. The
 * blocks are kept: a reorganisation may be deeper.
 */
export async function finaliseBlocks(
  ledger: LedgerContext,
  { network, blocks }: { network: Network; blocks: readonly KnownBlock[] },
): Promise<string[]> {
  if (blocks.length === 0) return [];
  return ledger.write(async (transaction) => {
    await transaction
      .updateTable("transactions")
      .set({ state: "final" })
      .where("network", "=", network)
      .where("state", "=", is("settled"))
      .where(isIn(blocks))
      .execute();
    const rows = await transaction
      .updateTable("payments")
      .set({ final_at: ledger.now() })
      .where("network", "=", network)
      .where("state", "=", is("confirmed"))
      .where("final_at", "is", null)
      .where(isIn(blocks))
      .returning("id")
      .execute();
    await keepFinalBlocks({ transaction, dialect: ledger.dialect }, { network, blocks });
    return rows.map(({ id }) => id);
  });
}

/**
 * True if a row is in one of these blocks. The indexes have their numbers; without them, every row
 * that is not final would be read.
 */
export function isIn(blocks: readonly KnownBlock[]) {
  const numbers = [...new Set(blocks.map(({ number }) => number))];
  const hashes = blocks.map(({ hash }) => hash);
  return (where: ExpressionBuilder<LedgerSchema, "payments" | "transactions">) =>
    where.and([where("block_number", "in", numbers), where("block_hash", "in", hashes)]);
}
