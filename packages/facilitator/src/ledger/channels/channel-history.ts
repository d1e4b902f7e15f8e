import type { ChannelConfig, Hex } from "@coinslot/protocol";
import type {
  ChannelClaimState,
  ChannelDepositState,
  ChannelRefundState,
} from "../channel-chain-schema.ts";
import type { LedgerReads } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";

/** A claim, refund or deposit of a channel. Amounts are in the token's smallest unit. */
export interface ChannelStep {
  kind: "claim" | "refund" | "deposit";
  state: ChannelClaimState | ChannelRefundState | ChannelDepositState;
  /** Of a claim the sum up to which it asks; of a refund what it gives, once it is known. */
  amount: bigint | undefined;
  hash: Hex | undefined;
  blockNumber: number | undefined;
  reason: string | undefined;
  /** Unix milliseconds. */
  at: number;
}

/** Charges of a day, less those that were lowered. */
export interface ChargedDay {
  /** Whole days since 1970, in UTC. */
  day: number;
  count: number;
  amount: bigint;
}

interface StepsOf extends ChannelKey {
  config: Pick<ChannelConfig, "token" | "payer">;
  limit: number;
}

/**
 * The newest claims, refunds and deposits of a channel: of deposits those that requests brought.
 * Ended claims and deposits are kept for 30 days.
 */
export async function findSteps(reads: LedgerReads, options: StepsOf): Promise<ChannelStep[]> {
  const steps = [
    ...(await findClaims(reads, options)),
    ...(await findRefunds(reads, options)),
    ...(await findDeposits(reads, options)),
  ];
  return steps.sort((one, other) => other.at - one.at).slice(0, options.limit);
}

async function findClaims(
  { db, dialect }: LedgerReads,
  { network, contract, channelId, limit }: StepsOf,
): Promise<ChannelStep[]> {
  const rows = await db
    .selectFrom("channel_claims")
    .leftJoin("transactions", "transactions.id", "channel_claims.transaction_id")
    .select(["channel_claims.state", "total_claimed", "channel_claims.created_at"])
    .select(["hash", "block_number"])
    .where("channel_claims.network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .orderBy("channel_claims.created_at", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    kind: "claim",
    state: row.state,
    amount: dialect.amount.decode(row.total_claimed),
    hash: row.hash ?? undefined,
    blockNumber: row.block_number ?? undefined,
    reason: undefined,
    at: row.created_at,
  }));
}

async function findRefunds(
  { db, dialect }: LedgerReads,
  { network, contract, channelId, limit }: StepsOf,
): Promise<ChannelStep[]> {
  const rows = await db
    .selectFrom("channel_refunds")
    .select(["state", "amount", "refunded", "hash", "reason", "created_at"])
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .orderBy("created_at", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => {
    const given = row.refunded ?? row.amount;
    return {
      kind: "refund",
      state: row.state,
      amount: given === null ? undefined : dialect.amount.decode(given),
      hash: row.hash ?? undefined,
      blockNumber: undefined,
      reason: row.reason ?? undefined,
      at: row.created_at,
    };
  });
}

/** By token and payer, whose index begins with them: few deposits are of one payer. */
async function findDeposits(
  { db, dialect }: LedgerReads,
  { network, contract, channelId, config, limit }: StepsOf,
): Promise<ChannelStep[]> {
  const rows = await db
    .selectFrom("channel_deposits")
    .select(["state", "amount", "hash", "reason", "created_at"])
    .where("network", "=", network)
    .where("token", "=", config.token)
    .where("payer", "=", config.payer)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .orderBy("created_at", "desc")
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    kind: "deposit",
    state: row.state,
    amount: dialect.amount.decode(row.amount),
    hash: row.hash ?? undefined,
    blockNumber: undefined,
    reason: row.reason ?? undefined,
    at: row.created_at,
  }));
}

/** Charges of a channel by day, the newest first. */
export async function findChargedDays(
  { db, dialect }: LedgerReads,
  { network, contract, channelId, limit }: ChannelKey & { limit: number },
): Promise<ChargedDay[]> {
  const { decode } = dialect.amount;
  const rows = await db
    .selectFrom("channel_sums")
    .select(["day", "is_reversal", "count", "amount"])
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    .orderBy("day", "desc")
    .limit(limit)
    .execute();
  const days = new Map<number, ChargedDay>();
  for (const row of rows) {
    const { day } = row;
    const known = days.get(day) ?? { day, count: 0, amount: 0n };
    const sign = row.is_reversal === 1 ? -1n : 1n;
    const count = row.is_reversal === 1 ? 0 : Number(decode(row.count));
    const amount = known.amount + sign * decode(row.amount);
    days.set(day, { day, count: known.count + count, amount });
  }
  return [...days.values()];
}
