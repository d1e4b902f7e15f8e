import type { Address, AuthorizationId, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely, Transaction } from "kysely";
import { type LedgerPayment, paymentColumns, toLedgerPayment } from "./ledger-payment.ts";
import { type LedgerSchema, openStates } from "./ledger-schema.ts";
import type { ReserveRequest } from "./reserve-request.ts";
import { is } from "./states.ts";

/** What payers have promised to others already. */
export interface Promises {
  /**
   * Whether the payer's balance covers this wish besides everything promised to others; `counted` is
   * what the wish's own row already adds to that.
   */
  fits(request: ReserveRequest, counted: bigint): boolean;
  /** Counts one more promise, made in this transaction, in place of what its row adds already. */
  add(request: ReserveRequest, counted: bigint): void;
}

/** One payer's holdings of one asset on one network. */
export type Purse = Omit<AuthorizationId, "nonce">;

/**
 * Sums what the payers of these requests have promised: all that is open, and what was executed in
 * a block after the one at whose end a balance was read, for that balance still contains it.
 *
 * A dead process's reservation counts until somebody releases it: it may have been settled meanwhile
 * by whoever took it over. `spent` are payments of which it is known that they are missing in the
 * balances already.
 */
export async function findPromises(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly ReserveRequest[];
  spent: readonly string[];
}): Promise<Promises> {
  const { transaction, dialect, requests, spent } = options;
  /** Each purse's promises, by the block that executed them; `undefined` for those that are open. */
  const sums = new Map<string, Map<number | undefined, bigint>>();
  for (const network of new Set(requests.map(({ id }) => id.network))) await countOn(network);

  function count(key: string, value: bigint, blockNumber: number | undefined): void {
    const known = sums.get(key) ?? new Map<number | undefined, bigint>();
    known.set(blockNumber, (known.get(blockNumber) ?? 0n) + value);
    sums.set(key, known);
  }

  async function countOn(network: Network): Promise<void> {
    const readings = requests.flatMap(({ id, balance }) =>
      balance && id.network === network
        ? { payer: id.payer, block: Number(balance.blockNumber) }
        : [],
    );
    if (readings.length === 0) return;
    const payers = [...new Set(readings.map(({ payer }) => payer))];
    const oldest = Math.min(...readings.map(({ block }) => block));
    const rows = await selectPromises({
      db: transaction,
      dialect,
      network,
      payers,
      oldest,
      spent,
    }).execute();
    for (const row of rows) {
      count(purse(row), dialect.amount.decode(row.value), row.block_number ?? undefined);
    }
  }

  return {
    fits({ id, value, balance }, counted) {
      if (balance === undefined) return true;
      let promised = value - counted;
      for (const [blockNumber, sum] of sums.get(purse(id)) ?? []) {
        if (blockNumber === undefined || blockNumber > balance.blockNumber) promised += sum;
      }
      return promised <= balance.amount;
    },
    add({ id, value }, counted) {
      count(purse(id), value - counted, undefined);
    },
  };
}

/** What is open of these payers, and what was executed after a block. */
export function selectPromises(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  network: Network;
  payers: readonly Address[];
  oldest: number;
  spent: readonly string[];
}) {
  const { db, dialect, network, payers, oldest, spent } = options;
  let ofPayers = db
    .selectFrom("payments")
    .select(["network", "asset", "payer", "value", "block_number"])
    .where("payer", "in", dialect.among(payers))
    .where("network", "=", network);
  if (spent.length > 0) ofPayers = ofPayers.where("id", "not in", spent);
  // Two selects: for an `or`, SQLite goes through all that a payer has ever paid.
  return ofPayers
    .where("state", "in", openStates)
    .unionAll(ofPayers.where("state", "=", is("confirmed")).where("block_number", ">", oldest));
}

/** The open payments of a payer, oldest first. */
export async function findPromised(
  options: Purse & { db: Kysely<LedgerSchema>; dialect: Dialect; limit: number },
): Promise<LedgerPayment[]> {
  const { db, dialect, network, asset, payer, limit } = options;
  const rows = await db
    .selectFrom("payments")
    .select(paymentColumns)
    .where("payer", "=", payer)
    .where("state", "in", openStates)
    .where("network", "=", network)
    .where("asset", "=", asset)
    // Not by the id: PostgreSQL goes through all payments in that order if it expects to find enough soon.
    .orderBy("created_at")
    .limit(limit)
    .execute();
  return rows.map((row) => toLedgerPayment(row, dialect));
}

function purse({ network, asset, payer }: Purse): string {
  return `${network}/${asset}/${payer}`;
}
