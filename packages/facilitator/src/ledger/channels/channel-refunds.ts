import type { Address, Hex } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Selectable, sql } from "kysely";
import type { ChannelRefundState, ChannelRefundsTable } from "../channel-chain-schema.ts";
import type { LedgerReads } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";
import { standingOf, type TransactionStanding } from "./channel-claims.ts";
import type { ChannelContract } from "./channel-state.ts";

/** The signed part of a refund, which the escrow takes while its own nonce is this one. */
export interface SignedRefund {
  nonce: bigint;
  amount: bigint;
  transactionId: string;
}

/** A refund of a channel. Amounts are in the token's smallest unit. */
export interface ChannelRefund extends ChannelKey {
  id: string;
  signer: Address;
  /** Charged so far, as the signer has signed it. */
  ceiling: bigint;
  /** `undefined`: all that is not charged. */
  asked: bigint | undefined;
  /** Block at the lock. Events after it count. */
  sinceNumber: number;
  state: ChannelRefundState;
  /** While `sent`. */
  signed: SignedRefund | undefined;
  /** Its event at the head, or the final one. */
  event: { hash: Hex; refunded: bigint } | undefined;
  reason: string | undefined;
  /** Unix milliseconds. */
  createdAt: number;
  endedAt: number | undefined;
}

/** A refund that has not ended, with the standing of its transaction. */
export interface OpenRefund extends ChannelRefund {
  transaction: TransactionStanding | undefined;
}

/** The refunds of a contract that have not ended, the oldest first, behind `after`. */
export async function findOpenRefunds(
  { db, dialect }: LedgerReads,
  {
    network,
    contract,
    limit,
    after,
  }: ChannelContract & {
    limit: number;
    after?: Pick<ChannelRefund, "createdAt" | "id"> | undefined;
  },
): Promise<OpenRefund[]> {
  let query = db
    .selectFrom("channel_refunds")
    .leftJoin("transactions", "transactions.id", "channel_refunds.transaction_id")
    .selectAll("channel_refunds")
    .select(["transactions.state as transaction_state", "transactions.block_number"])
    .select(({ selectFrom, exists }) =>
      exists(
        selectFrom("broadcasts")
          .select("broadcasts.hash")
          .whereRef("broadcasts.transaction_id", "=", "channel_refunds.transaction_id")
          .where("broadcasts.content", "=", "filler"),
      ).as("is_given_up"),
    )
    .where("channel_refunds.network", "=", network)
    .where("channel_refunds.contract", "=", contract)
    // As in the index's own condition.
    .where(sql<boolean>`channel_refunds.ended_at is null`)
    .orderBy("channel_refunds.created_at")
    .orderBy("channel_refunds.id")
    .limit(limit);
  if (after !== undefined) {
    const { createdAt, id } = after;
    query = query.where(({ eb, and, or }) =>
      or([
        eb("channel_refunds.created_at", ">", createdAt),
        and([eb("channel_refunds.created_at", "=", createdAt), eb("channel_refunds.id", ">", id)]),
      ]),
    );
  }
  const rows = await query.execute();
  return rows.map((row) => ({
    ...toChannelRefund(row, dialect),
    transaction: row.transaction_id === null ? undefined : standingOf(row),
  }));
}

/** The newest refund of a channel; `undefined` where none was ever begun. */
export async function findLastRefund(
  { db, dialect }: LedgerReads,
  { network, contract, channelId }: ChannelKey,
): Promise<ChannelRefund | undefined> {
  const row = await db
    .selectFrom("channel_refunds")
    .selectAll()
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .orderBy("created_at", "desc")
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && toChannelRefund(row, dialect);
}

/** Transactions that hold the last events of a channel's other refunds. */
export async function findOtherRefunds(
  { db }: LedgerReads,
  { network, contract, channelId, id }: ChannelKey & Pick<ChannelRefund, "id">,
): Promise<Set<Hex>> {
  const rows = await db
    .selectFrom("channel_refunds")
    .select("hash")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .where("id", "!=", id)
    .execute();
  return new Set(rows.flatMap(({ hash }) => hash ?? []));
}

/** A refund by its id. */
export async function readRefund(
  { db, dialect }: LedgerReads,
  id: string,
): Promise<ChannelRefund | undefined> {
  const row = await db
    .selectFrom("channel_refunds")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirst();
  return row && toChannelRefund(row, dialect);
}

function toChannelRefund(
  row: Selectable<ChannelRefundsTable>,
  { amount: { decode } }: Dialect,
): ChannelRefund {
  const { nonce, amount, transaction_id, hash, refunded } = row;
  const isSigned = nonce !== null && amount !== null && transaction_id !== null;
  return {
    id: row.id,
    network: row.network,
    contract: row.contract,
    channelId: row.channel_id,
    signer: row.signer,
    ceiling: decode(row.ceiling),
    asked: row.asked === null ? undefined : decode(row.asked),
    sinceNumber: row.since_number,
    state: row.state,
    signed: isSigned
      ? { nonce: decode(nonce), amount: decode(amount), transactionId: transaction_id }
      : undefined,
    event: hash === null || refunded === null ? undefined : { hash, refunded: decode(refunded) },
    reason: row.reason ?? undefined,
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
  };
}
