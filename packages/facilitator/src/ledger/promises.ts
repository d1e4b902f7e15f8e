import type { AuthorizationId, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import type { Kysely, Transaction } from "kysely";
import { type LedgerPayment, toLedgerPayment } from "./ledger-payment.ts";
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

interface PromisedSum {
  key: string;
  value: bigint;
  /** The block that executed it; `undefined` while it is open. */
  blockNumber: bigint | undefined;
}

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
  const sums: PromisedSum[] = [];
  for (const network of new Set(requests.map(({ id }) => id.network))) {
    sums.push(...(await sumsOn(network)));
  }
  const byKey = new Map<string, PromisedSum[]>();
  for (const sum of sums) count(sum);

  function count(sum: PromisedSum): void {
    const known = byKey.get(sum.key);
    if (known) known.push(sum);
    else byKey.set(sum.key, [sum]);
  }

  async function sumsOn(network: Network): Promise<PromisedSum[]> {
    const readings = requests.flatMap(({ id, balance }) =>
      balance && id.network === network
        ? { payer: id.payer, block: Number(balance.blockNumber) }
        : [],
    );
    if (readings.length === 0) return [];
    const oldest = Math.min(...readings.map(({ block }) => block));
    const payers = [...new Set(readings.map(({ payer }) => payer))];
    let query = transaction
      .selectFrom("payments")
      .select(["network", "asset", "payer", "block_number"])
      .select((select) => dialect.amount.sum(select.ref("value")).as("sum"))
      .where("payer", "in", dialect.among(payers))
      .where("network", "=", network)
      .where((where) =>
        where.or([
          where("state", "in", openStates),
          where.and([where("state", "=", is("confirmed")), where("block_number", ">", oldest)]),
        ]),
      )
      .groupBy(["network", "asset", "payer", "block_number"]);
    if (spent.length > 0) query = query.where("id", "not in", spent);
    const rows = await query.execute();
    return rows.map((row) => ({
      key: purse(row),
      value: dialect.amount.decode(row.sum),
      blockNumber: row.block_number === null ? undefined : BigInt(row.block_number),
    }));
  }

  return {
    fits({ id, value, balance }, counted) {
      if (balance === undefined) return true;
      const promised = (byKey.get(purse(id)) ?? []).reduce(
        (total, sum) =>
          sum.blockNumber === undefined || sum.blockNumber > balance.blockNumber
            ? total + sum.value
            : total,
        0n,
      );
      return promised - counted + value <= balance.amount;
    },
    add({ id, value }, counted) {
      count({ key: purse(id), value: value - counted, blockNumber: undefined });
    },
  };
}

/** The open payments of a payer, oldest first. */
export async function findPromised(
  options: Purse & { db: Kysely<LedgerSchema>; dialect: Dialect; limit: number },
): Promise<LedgerPayment[]> {
  const { db, dialect, network, asset, payer, limit } = options;
  const rows = await db
    .selectFrom("payments")
    .selectAll()
    .where("payer", "=", payer)
    .where("state", "in", openStates)
    .where("network", "=", network)
    .where("asset", "=", asset)
    .orderBy("id")
    .limit(limit)
    .execute();
  return rows.map((row) => toLedgerPayment(row, dialect));
}

function purse({ network, asset, payer }: Purse): string {
  return `${network}/${asset}/${payer}`;
}
