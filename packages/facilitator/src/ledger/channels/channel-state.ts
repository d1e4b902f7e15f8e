import type { Address, Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Selectable, sql } from "kysely";
import type { ChannelStatesTable } from "../channel-chain-schema.ts";
import type { LedgerReads } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";

/** As in the index's own condition. SQLite uses it for no parameter. */
const moving = sql.lit(1);

/** A channel at one block of the chain. Amounts are in the token's smallest unit. */
export interface ChannelReading {
  /** Claimed money included. */
  balance: bigint;
  totalClaimed: bigint;
  /** `initiatedAt` in Unix seconds. */
  withdrawal: { amount: bigint; initiatedAt: number } | undefined;
  refundNonce: bigint;
  block: { number: number; hash: Hex };
}

/** The mirror of a channel. */
export interface ChannelState extends ChannelReading {
  /** At `finalAfter`; `undefined` before that was read. */
  final:
    | { balance: bigint; totalClaimed: bigint; block: { number: number; hash: Hex } }
    | undefined;
  isMoving: boolean;
  /**
   * The highest ceiling of a voucher that a claim has shown, and that covered more than it asked.
   */
  published?: bigint | undefined;
}

export function toChannelState(
  row: Selectable<ChannelStatesTable>,
  { amount: { decode } }: Dialect,
): ChannelState {
  const { withdraw_amount, withdraw_at, final_balance, final_claimed } = row;
  const { final_number, final_hash } = row;
  const isFinalRead =
    final_balance !== null &&
    final_claimed !== null &&
    final_number !== null &&
    final_hash !== null;
  return {
    balance: decode(row.balance),
    totalClaimed: decode(row.claimed),
    withdrawal:
      withdraw_amount === null || withdraw_at === null
        ? undefined
        : { amount: decode(withdraw_amount), initiatedAt: withdraw_at },
    refundNonce: decode(row.refund_nonce),
    block: { number: row.block_number, hash: row.block_hash },
    final: isFinalRead
      ? {
          balance: decode(final_balance),
          totalClaimed: decode(final_claimed),
          block: { number: final_number, hash: final_hash },
        }
      : undefined,
    isMoving: row.is_moving === 1,
    published: row.published === null ? undefined : decode(row.published),
  };
}

/** The mirror of a channel; `undefined` where its state was never read. */
export async function readChannelState(
  { db, dialect }: LedgerReads,
  key: ChannelKey,
): Promise<ChannelState | undefined> {
  const row = await db
    .selectFrom("channel_states")
    .selectAll()
    .where("network", "=", key.network)
    .where("contract", "=", key.contract)
    .where("channel_id", "=", key.channelId)
    .executeTakeFirst();
  return row && toChannelState(row, dialect);
}

/** Place of many channels. Hex in lower case. */
export interface ChannelContract {
  network: Network;
  contract: Address;
}

/** Channels whose state is read with each block, and the block of each mirror. By their ids. */
export async function findMoving(
  { db }: LedgerReads,
  { network, contract }: ChannelContract,
): Promise<{ channelId: Hex; block: { number: number; hash: Hex } }[]> {
  const rows = await db
    .selectFrom("channel_states")
    .select(["channel_id", "block_number", "block_hash"])
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("is_moving", "=", moving)
    .orderBy("channel_id")
    .execute();
  return rows.map((row) => ({
    channelId: row.channel_id,
    block: { number: row.block_number, hash: row.block_hash },
  }));
}

/**
 * Channels whose mirror is of a block above this one. No index: it is asked for after faults alone.
 */
export async function findAbove(
  { db }: LedgerReads,
  { network, contract, number }: ChannelContract & { number: number },
): Promise<{ channelId: Hex; block: { number: number; hash: Hex } }[]> {
  const rows = await db
    .selectFrom("channel_states")
    .select(["channel_id", "block_number", "block_hash"])
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("block_number", ">", number)
    .orderBy("channel_id")
    .execute();
  return rows.map((row) => ({
    channelId: row.channel_id,
    block: { number: row.block_number, hash: row.block_hash },
  }));
}

/** Those of these channels that the ledger knows: others are other sellers'. By their ids. */
export async function findKnown(
  { db, dialect }: LedgerReads,
  { network, contract, ids }: ChannelContract & { ids: readonly Hex[] },
): Promise<Hex[]> {
  if (ids.length === 0) return [];
  const rows = await db
    .selectFrom("channels")
    .select("channel_id")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "in", dialect.among(ids))
    .orderBy("channel_id")
    .execute();
  return rows.map(({ channel_id }) => channel_id);
}
