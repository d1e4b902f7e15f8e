import type { Address, AuthorizationId, Hex, Network } from "@coinslot/protocol";
import type { Dialect } from "@coinslot/storage";
import { type Selectable, sql } from "kysely";
import type { ChannelDepositState, ChannelDepositsTable } from "../channel-chain-schema.ts";
import type { LedgerReads } from "../ledger-context.ts";
import type { ChannelKey } from "./channel.ts";
import { standingOf, type TransactionStanding } from "./channel-claims.ts";
import type { ChannelContract } from "./channel-state.ts";

/** Identity of a deposit: that of its authorization. Hex in lower case. */
export interface DepositKey {
  network: Network;
  token: Address;
  payer: Address;
  nonce: Hex;
}

/** A deposit to be queued. Amounts are in the token's smallest unit. */
export interface NewDeposit extends DepositKey, ChannelKey {
  /** The account that signs the channel's vouchers. */
  signer: Address;
  amount: bigint;
  /** Unix seconds. */
  validBefore: bigint;
  payerHasCode: boolean;
  /** The call of the escrow. */
  data: Hex;
  /** The newest block of the chain. */
  sinceNumber: number;
  /** Limit of one of its transactions. */
  gas: bigint;
  /** The caller of a hosted facilitator whose gas it takes. */
  caller: string | undefined;
}

/** A deposit of the ledger. */
export interface ChannelDeposit extends Omit<NewDeposit, "data"> {
  /** `undefined` once it has ended. */
  data: Hex | undefined;
  state: ChannelDepositState;
  /** Transactions that have carried it. */
  attempts: number;
  /** The last one of them. */
  transactionId: string | undefined;
  /** Transaction that has executed it, of any sender; else the last one that carried it. */
  hash: Hex | undefined;
  reason: string | undefined;
  /** Unix milliseconds. */
  createdAt: number;
  endedAt: number | undefined;
}

/** A deposit that has not ended, with the standing of its transaction. */
export interface OpenDeposit extends ChannelDeposit {
  transaction: TransactionStanding | undefined;
}

/**
 * The deposits of a contract that have not ended, the oldest first: those without an outcome, or
 * those that are executed and not final. Behind `after`.
 */
export async function findOpenDeposits(
  { db, dialect }: LedgerReads,
  {
    network,
    contract,
    isExecuted,
    limit,
    after,
  }: ChannelContract & {
    isExecuted: boolean;
    limit: number;
    after?: Pick<ChannelDeposit, "createdAt" | "nonce" | "payer"> | undefined;
  },
): Promise<OpenDeposit[]> {
  let query = db
    .selectFrom("channel_deposits")
    .leftJoin("transactions", "transactions.id", "channel_deposits.transaction_id")
    .selectAll("channel_deposits")
    .select(["transactions.state as transaction_state", "transactions.block_number"])
    .select(({ selectFrom, exists }) =>
      exists(
        selectFrom("broadcasts")
          .select("broadcasts.hash")
          .whereRef("broadcasts.transaction_id", "=", "channel_deposits.transaction_id")
          .where("broadcasts.content", "=", "filler"),
      ).as("is_given_up"),
    )
    .select(({ selectFrom }) =>
      selectFrom("broadcasts")
        .select("broadcasts.hash")
        .whereRef("broadcasts.transaction_id", "=", "channel_deposits.transaction_id")
        .orderBy("broadcasts.created_at", "desc")
        .limit(1)
        .as("broadcast_hash"),
    )
    .where("channel_deposits.network", "=", network)
    .where("channel_deposits.contract", "=", contract)
    // As in the conditions of the indexes.
    .where(sql<boolean>`channel_deposits.ended_at is null`)
    .where(
      isExecuted
        ? sql<boolean>`channel_deposits.state = 'done'`
        : sql<boolean>`channel_deposits.state in ('queued', 'sent')`,
    )
    .orderBy("channel_deposits.created_at")
    .orderBy("channel_deposits.nonce")
    .orderBy("channel_deposits.payer")
    .limit(limit);
  if (after !== undefined) {
    const { createdAt, nonce, payer } = after;
    query = query.where(({ eb, and, or }) =>
      or([
        eb("channel_deposits.created_at", ">", createdAt),
        and([
          eb("channel_deposits.created_at", "=", createdAt),
          or([
            eb("channel_deposits.nonce", ">", nonce),
            and([
              eb("channel_deposits.nonce", "=", nonce),
              eb("channel_deposits.payer", ">", payer),
            ]),
          ]),
        ]),
      ]),
    );
  }
  const rows = await query.execute();
  return rows.map((row) => ({
    ...toChannelDeposit(row, dialect, row.broadcast_hash),
    transaction: row.transaction_id === null ? undefined : standingOf(row),
  }));
}

/** A deposit by its authorization; `undefined` where the ledger has none. */
export async function readDeposit(
  { db, dialect }: LedgerReads,
  { network, token, payer, nonce }: DepositKey,
): Promise<ChannelDeposit | undefined> {
  const row = await db
    .selectFrom("channel_deposits")
    .selectAll()
    .select(({ selectFrom }) =>
      selectFrom("broadcasts")
        .select("broadcasts.hash")
        .whereRef("broadcasts.transaction_id", "=", "channel_deposits.transaction_id")
        .orderBy("broadcasts.created_at", "desc")
        .limit(1)
        .as("broadcast_hash"),
    )
    .where("network", "=", network)
    .where("token", "=", token)
    .where("payer", "=", payer)
    .where("nonce", "=", nonce)
    .executeTakeFirst();
  return row && toChannelDeposit(row, dialect, row.broadcast_hash);
}

/** Whether a deposit of the channel is under way. */
export async function isDepositPending(
  { db }: LedgerReads,
  { network, contract, channelId }: ChannelKey,
): Promise<boolean> {
  const row = await db
    .selectFrom("channel_deposits")
    .select("nonce")
    .where("network", "=", network)
    .where("contract", "=", contract)
    .where("channel_id", "=", channelId)
    // As in the index's own condition.
    .where(sql<boolean>`state in ('queued', 'sent')`)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The authorization of a deposit, by its nonce's authority. */
export function authorizationOf({ network, token, payer, nonce }: DepositKey): AuthorizationId {
  return { network, asset: token, payer, nonce };
}

function toChannelDeposit(
  row: Selectable<ChannelDepositsTable>,
  { amount: { decode } }: Dialect,
  broadcastHash: Hex | null,
): ChannelDeposit {
  return {
    network: row.network,
    token: row.token,
    payer: row.payer,
    nonce: row.nonce,
    contract: row.contract,
    channelId: row.channel_id,
    signer: row.signer,
    amount: decode(row.amount),
    validBefore: decode(row.valid_before),
    payerHasCode: row.has_code === 1,
    data: row.data ?? undefined,
    sinceNumber: row.since_number,
    gas: BigInt(row.gas),
    caller: row.caller ?? undefined,
    state: row.state,
    attempts: row.attempts,
    transactionId: row.transaction_id ?? undefined,
    hash: row.hash ?? broadcastHash ?? undefined,
    reason: row.reason ?? undefined,
    createdAt: row.created_at,
    endedAt: row.ended_at ?? undefined,
  };
}
