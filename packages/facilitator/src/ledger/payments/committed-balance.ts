import type { Address, AuthorizationId, Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Kysely, sql, type Transaction } from "kysely";
import type { LedgerReads } from "../ledger-context.ts";
import { type LedgerSchema, openStates } from "../schema.ts";
import { is } from "../states.ts";
import { type LedgerPayment, paymentColumns, toLedgerPayment } from "./ledger-payment.ts";
import type { ReserveRequest } from "./reserve-request.ts";

/** A request that its payer's balance has to cover. */
export type CommitmentRequest = Pick<ReserveRequest, "id" | "value" | "balance" | "order">;

/** Commitments of payers to other payments and deposits. */
export interface Commitments {
  /**
   * Returns whether the payer's balance covers this request besides its other commitments.
   * `counted` is the amount that the request's own row already adds to that.
   */
  fits(request: CommitmentRequest, counted: bigint): boolean;
  /** Number of the payer's reservations that may be running a handler, on any network. */
  running(payer: Address): number;
  /** Counts one more commitment, made in this transaction, in place of its row's present amount. */
  add(request: CommitmentRequest, counted: bigint): void;
}

/** One payer's holdings of one asset on one network. */
export type BalanceKey = Omit<AuthorizationId, "nonce">;

/**
 * Sums the commitments of these requests' payers. They are the open payments, and the deposits into
 * channels that are queued or sent. Those executed in a later block than that of the balance count,
 * too: the balance still contains them.
 *
 * A dead process's reservation counts until a process releases it. The one that took it over may
 * have settled it meanwhile. `alreadyDebited` are payments, by their ids, and deposits, by their
 * nonces, that are known to be missing in the balances.
 */
export async function findCommitments(options: {
  transaction: Transaction<LedgerSchema>;
  dialect: Dialect;
  requests: readonly CommitmentRequest[];
  alreadyDebited: readonly string[];
}): Promise<Commitments> {
  const { transaction, dialect, requests, alreadyDebited } = options;
  /**
   * Commitments by balance key and by the block that executed them; `undefined` for those that are
   * open.
   */
  const sums = new Map<string, Map<number | undefined, bigint>>();
  const running = new Map<Address, number>();
  // A request with an order runs no handler first, and without a balance commits nothing.
  const deciding = requests.filter(({ order, balance }) => !order || balance);
  const payers = [...new Set(deciding.map(({ id }) => id.payer))];
  if (payers.length > 0) {
    const oldest = oldestReadings(requests);
    const rows = await selectCommitments({
      db: transaction,
      dialect,
      payers,
      oldest,
      alreadyDebited,
    }).execute();
    for (const row of rows) {
      count(balanceKeyOf(row), dialect.amount.decode(row.value), row.block_number ?? undefined);
      if (row.state === "reserved") running.set(row.payer, (running.get(row.payer) ?? 0) + 1);
    }
  }

  function count(key: string, value: bigint, blockNumber: number | undefined): void {
    const known = sums.get(key) ?? new Map<number | undefined, bigint>();
    known.set(blockNumber, (known.get(blockNumber) ?? 0n) + value);
    sums.set(key, known);
  }

  return {
    fits({ id, value, balance }, counted) {
      if (balance === undefined) return true;
      let committed = value - counted;
      for (const [blockNumber, sum] of sums.get(balanceKeyOf(id)) ?? []) {
        if (blockNumber === undefined || blockNumber > balance.blockNumber) committed += sum;
      }
      return committed <= balance.amount;
    },
    running: (payer) => running.get(payer) ?? 0,
    add({ id, value, order }, counted) {
      count(balanceKeyOf(id), value - counted, undefined);
      // Its row's amount was reserved before, and is among those that run.
      if (!order && counted === 0n) running.set(id.payer, (running.get(id.payer) ?? 0) + 1);
    },
  };
}

/** For each network the oldest block at whose end one of the balances was read. */
function oldestReadings(requests: readonly CommitmentRequest[]): Map<Network, number> {
  const oldest = new Map<Network, number>();
  for (const { id, balance } of requests) {
    if (balance === undefined) continue;
    const block = Number(balance.blockNumber);
    oldest.set(id.network, Math.min(block, oldest.get(id.network) ?? block));
  }
  return oldest;
}

/**
 * Open payments of these payers, and those executed after a block of their network. Deposits that
 * are not final: the one that was executed has a block.
 */
export function selectCommitments(options: {
  db: Kysely<LedgerSchema>;
  dialect: Dialect;
  payers: readonly Address[];
  oldest: ReadonlyMap<Network, number>;
  alreadyDebited: readonly string[];
}) {
  const { db, dialect, payers, oldest, alreadyDebited } = options;
  let ofPayers = db
    .selectFrom("payments")
    .select(["network", "asset", "payer", "value", "block_number", "state"])
    .where("payer", "in", dialect.among(payers));
  if (alreadyDebited.length > 0) ofPayers = ofPayers.where("id", "not in", alreadyDebited);
  let commitments = ofPayers.where("state", "in", openStates);
  // A select for each: for an `or`, SQLite goes through all payments that a payer has ever made.
  for (const [network, block] of oldest) {
    commitments = commitments.unionAll(
      ofPayers
        .where("network", "=", network)
        .where("state", "=", is("confirmed"))
        .where("block_number", ">", block),
    );
  }
  const ofDeposits = openDepositsOf(db)
    .select(["network", "token as asset", "payer", "amount as value", "block_number"])
    .select(sql<"queued">`'queued'`.as("state"))
    .where("payer", "in", dialect.among(payers));
  const debited = alreadyDebited.filter((name): name is Hex => name.startsWith("0x"));
  return commitments.unionAll(
    debited.length > 0 ? ofDeposits.where("nonce", "not in", debited) : ofDeposits,
  );
}

/** The open payments of a payer, oldest first. */
export async function findCommitted(
  { db, dialect }: LedgerReads,
  { network, asset, payer, limit }: BalanceKey & { limit: number },
): Promise<LedgerPayment[]> {
  const rows = await db
    .selectFrom("payments")
    .select(paymentColumns)
    .where("payer", "=", payer)
    .where("state", "in", openStates)
    .where("network", "=", network)
    .where("asset", "=", asset)
    // Not by the id: PostgreSQL goes through all payments in that order if it expects to find
    // enough soon.
    .orderBy("created_at")
    .limit(limit)
    .execute();
  return rows.map((row) => toLedgerPayment(row, dialect));
}

/** The deposits of a payer without an outcome, oldest first, as payments are identified. */
export async function findCommittedDeposits(
  { db, dialect }: LedgerReads,
  { network, asset, payer, limit }: BalanceKey & { limit: number },
): Promise<Pick<LedgerPayment, "id" | "kind" | "authorization" | "value">[]> {
  const rows = await openDepositsOf(db)
    .select(["nonce", "amount"])
    .where("payer", "=", payer)
    .where("state", "!=", "done")
    .where("network", "=", network)
    .where("token", "=", asset)
    .orderBy("created_at")
    .limit(limit)
    .execute();
  return rows.map(({ nonce, amount }) => ({
    id: nonce,
    kind: "eip3009",
    authorization: { network, asset, payer, nonce },
    value: dialect.amount.decode(amount),
  }));
}

/**
 * Deposits that are not final. The block of an executed one is known, or it is of an older release.
 */
function openDepositsOf(db: Kysely<LedgerSchema>) {
  return (
    db
      .selectFrom("channel_deposits")
      // As in the index's own condition.
      .where(sql<boolean>`ended_at is null`)
      .where(({ or, eb }) => or([eb("state", "!=", "done"), eb("block_number", "is not", null)]))
  );
}

function balanceKeyOf({ network, asset, payer }: BalanceKey): string {
  return `${network}/${asset}/${payer}`;
}
